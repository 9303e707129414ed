//! The process of the benchmark's payment gateway, which accepts every charge after a configured delay and counts the
//! charges.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use billing::{GatewayAccount, Payment, PaymentStatus};
use chrono::Utc;
use clap::Args;
use gateways::{ACCOUNT_PATH, ChargeRequest, ChargeResponse, PAYMENTS_PATH};
use tokio::net::TcpListener;

use crate::Failure;

#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Duration of each charge in milliseconds
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
}

/// The state of the server that imitates a payment gateway: the number of charges so far, and the delay of each charge.
#[derive(Clone)]
struct GatewayState {
    charge_count: Arc<AtomicU64>,
    delay: Duration,
}

/// Prints the URL of the gateway, and serves the gateway until the process is killed.
pub async fn serve_gateway(args: &GatewayArgs) -> Result<(), Failure> {
    let gateway = GatewayState { charge_count: Arc::default(), delay: Duration::from_millis(args.delay_ms) };
    let routes = Router::new()
        .route(PAYMENTS_PATH, post(accept_charge))
        .route(ACCOUNT_PATH, get(respond_with_gateway_account))
        .route(
            "/made",
            get(async |State(gateway): State<GatewayState>| gateway.charge_count.load(Ordering::Relaxed).to_string()),
        )
        .with_state(gateway);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true))), routes).await?)
}

/// Responds with the description of the gateway account, which Dueday reads before it charges.
async fn respond_with_gateway_account() -> Json<GatewayAccount> {
    Json(GatewayAccount { kind: "stub".to_owned(), account: "stub".to_owned(), live: false })
}

/// Waits for the configured delay, counts the charge, and responds with a successful payment.
async fn accept_charge(
    State(gateway): State<GatewayState>,
    Json(request): Json<ChargeRequest>,
) -> Json<ChargeResponse> {
    if !gateway.delay.is_zero() {
        tokio::time::sleep(gateway.delay).await;
    }
    let number = gateway.charge_count.fetch_add(1, Ordering::Relaxed);
    Json(ChargeResponse::Succeeded(Payment {
        id: format!("pay_{number}").parse().expect("a valid payment id"),
        table: request.table,
        account: request.account,
        subscription: request.subscription,
        due_on: request.due_on,
        attempt_no: request.attempt_no,
        amount: request.amount,
        status: PaymentStatus::Succeeded,
        card: None,
        created_at: Utc::now(),
    }))
}
