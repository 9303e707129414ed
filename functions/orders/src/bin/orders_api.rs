use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use clock::{Clock as _, SystemClock};
use config::Env;
use lambda_http::Error;
use mail::MERCHANT;
use orders_api::OrdersApi;
use rest::{Problem, TokenRules};
use store::TableConfig;

// One thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let (env, clock) = (Env::of_process(), Arc::new(SystemClock));
    let desk = orders_function::set_up_order_desk(env, clock.clone()).await?;
    let payments = TableConfig::read(env)?.connect_with(desk.table.client().clone());
    let api = OrdersApi::new(desk, payments.clone(), &env.required_text(&MERCHANT)?, clock.clone());
    // The entries of the action log are stored for the time that the policy of the payments table says.
    let refresh_policy = move |request: Request, next: Next| {
        let (payments, now) = (payments.clone(), clock.now());
        async move {
            match payments.refresh_policy(now).await {
                Ok(()) => next.run(request).await,
                Err(error) => Problem::from(error).into_response(),
            }
        }
    };
    let router = api.router().layer(from_fn(refresh_policy));
    api_gateway::serve_router_in_lambda(api_gateway::add_api_gateway_middlewares(router, TokenRules::read(env)?)).await
}
