use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};
use mimalloc::MiMalloc;

// A row takes more than a thousand small allocations, nearly all of them by the SDK.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let payments = payments_function::set_up(Env::process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| payments_function::charge(&payments, event))).await
}
