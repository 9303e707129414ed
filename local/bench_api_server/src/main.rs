//! Serves the HTTP API for `bench api`, as the command `dueday` serves it: with the same router, server, runtime and
//! allocator. Environment variables select the table and the gateway. Prints the URL when the server is ready.

use std::sync::Arc;

use api::Api;
use axum::Extension;
use charging::{ChargeConfig, SIGN_UP_GATEWAY_TIMEOUT};
use clock::SystemClock;
use config::Env;
use emulator::ServerLimits;
use gateways::HttpGateway;
use mail::Merchant;
use mimalloc::MiMalloc;
use rest::{Caller, Role};
use store::{TableConfig, load_sdk_config};
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

/// The error that ends the server.
type Failure = Box<dyn std::error::Error + Send + Sync>;

// The command `dueday` uses the same allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_env_filter(EnvFilter::new("warn")).with_writer(std::io::stderr).init();
    let (env, clock) = (Env::of_process(), Arc::new(SystemClock));
    let config = TableConfig::read(env)?;
    let merchant = Merchant::read(env)?;
    let gateway = std::env::var("DUEDAY_GATEWAY").map_err(|error| format!("DUEDAY_GATEWAY: {error}"))?;
    let gateway = HttpGateway::new(&gateway, SIGN_UP_GATEWAY_TIMEOUT);
    let table = config.connect(&load_sdk_config().await);
    let api = Api::new(table, &config, merchant, clock).await?;
    let api = api.with_gateway(Arc::new(gateway), &ChargeConfig::read(env)?);
    let routes = rest::complete_router(api.routes()).layer(Extension(Caller::Operator(Role::Admin)));
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(emulator::serve_http(listener, routes, ServerLimits::default()).await?)
}
