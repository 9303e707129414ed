use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let erasures = erase_function::set_up_eraser(Env::of_process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| erase_function::erase_requested_accounts(&erasures, event))).await
}
