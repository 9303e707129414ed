use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_http::Error;

// A Lambda function with 256 MB has less than one CPU core, so more threads would not help.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    api_gateway::serve_router_in_lambda(
        sandbox_function::set_up_sandbox_router(Env::of_process(), Arc::new(SystemClock)).await?,
    )
    .await
}
