use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// One thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let desk = orders_function::set_up_order_desk_for_queue(Env::of_process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| orders_function::handle_orders_queue_invocation(&desk, event))).await
}
