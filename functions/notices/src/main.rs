// The compiler's default recursion limit is too low for the nested futures that send a notice.
#![recursion_limit = "256"]

use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A single thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging_with_layer(embedded_metrics::create_metrics_layer());
    let notices = notices_function::set_up_notices(Env::of_process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| notices_function::handle_notices_invocation(&notices, event))).await
}
