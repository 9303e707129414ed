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
    let comparison = reconcile_function::set_up_daily_comparison(Env::of_process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| reconcile_function::compare_days_with_gateway(&comparison, event))).await
}
