use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};
use mimalloc::MiMalloc;

// The allocator mimalloc is faster than the default allocator. This matters because processing a row makes more than
// 1,000 small allocations, nearly all of them in the AWS SDK.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// A Lambda function with 256 MB has less than one CPU core, so more threads would not help.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging_with_layer(embedded_metrics::create_metrics_layer());
    let payments = payments_function::set_up_payment_batch(Env::of_process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| payments_function::charge_due_payments(&payments, event))).await
}
