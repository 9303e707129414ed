use std::sync::Arc;

use lambda_runtime::{Error, run, service_fn};
use mimalloc::MiMalloc;
use shared::clock::SystemClock;
use shared::config::Env;

// A row takes more than a thousand small allocations, nearly all of them by the SDK.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let reminders = reminders::set_up(Env::process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| reminders::remind(&reminders, event))).await
}
