// The futures of one notice are nested deeper than the compiler follows by default.
#![recursion_limit = "256"]

use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let notices = notices_function::set_up(Env::process(), Arc::new(SystemClock)).await?;
    run(service_fn(|event| notices_function::handle(&notices, event))).await
}
