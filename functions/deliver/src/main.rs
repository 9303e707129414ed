use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A single thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init_with(embedded_metrics::layer_of_function());
    let deliveries = deliver_function::set_up(Env::process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| deliver_function::handle(&deliveries, event))).await
}
