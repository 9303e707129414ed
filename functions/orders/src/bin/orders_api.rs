use std::sync::Arc;

use lambda_http::{Error, run};
use orders::OrdersApi;
use rest::Claims;
use shared::clock::SystemClock;
use shared::config::Env;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let (env, clock) = (Env::process(), Arc::new(SystemClock));
    let desk = orders::set_up(env, clock.clone()).await?;
    run(rest::behind_gateway(OrdersApi::new(desk, clock).router(), Claims::read(env)?)).await
}
