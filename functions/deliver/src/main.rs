use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A single thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging_with_layer(embedded_metrics::create_metrics_layer());
    let deliveries = deliver_function::set_up_delivery_handler(Env::of_process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| deliver_function::handle_deliver_invocation(&deliveries, event))).await
}
