use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// One thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let desk = orders_function::set_up_for_queue(Env::process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| orders_function::handle(&desk, event))).await
}
