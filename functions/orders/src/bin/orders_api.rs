use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_http::{Error, run};
use orders_api::OrdersApi;
use rest::TokenRules;

// One thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let (env, clock) = (Env::process(), Arc::new(SystemClock));
    let desk = orders_function::set_up(env, clock.clone()).await?;
    run(rest::behind_api_gateway(OrdersApi::new(desk, clock).router(), TokenRules::read(env)?)).await
}
