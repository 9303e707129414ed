use std::sync::Arc;

use clock::SystemClock;
use config::Env;
use lambda_http::{Error, run};
use orders_api::{OrdersApi, StoredPayments};
use rest::TokenRules;
use store::TableConfig;

// One thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let (env, clock) = (Env::process(), Arc::new(SystemClock));
    let desk = orders_function::set_up(env, clock.clone()).await?;
    let payments = TableConfig::read(env)?.connect_with(desk.table.client().clone());
    let api = OrdersApi::new(desk, Arc::new(StoredPayments(payments)), clock);
    run(api_gateway::behind_api_gateway(api.router(), TokenRules::read(env)?)).await
}
