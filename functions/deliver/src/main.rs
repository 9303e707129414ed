use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let deliveries = deliver_function::set_up(Env::process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| deliver_function::handle(&deliveries, event))).await
}
