//! The gateway's process: it accepts every charge, after as long as it is told to take.

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
use gateways::{ACCOUNT, ChargeAnswer, ChargeRequest, PAYMENTS};
use tokio::net::TcpListener;

use crate::Failure;

#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Milliseconds that each charge takes
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
}

#[derive(Clone)]
struct Gateway {
    made: Arc<AtomicU64>,
    delay: Duration,
}

pub async fn serve(args: &GatewayArgs) -> Result<(), Failure> {
    let gateway = Gateway { made: Arc::default(), delay: Duration::from_millis(args.delay_ms) };
    let routes = Router::new()
        .route(PAYMENTS, post(charge))
        .route(ACCOUNT, get(account))
        .route("/made", get(async |State(gateway): State<Gateway>| gateway.made.load(Ordering::Relaxed).to_string()))
        .with_state(gateway);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true))), routes).await?)
}

async fn account() -> Json<GatewayAccount> {
    Json(GatewayAccount { kind: "stub".to_owned(), account: "stub".to_owned(), live: false })
}

async fn charge(State(gateway): State<Gateway>, Json(request): Json<ChargeRequest>) -> Json<ChargeAnswer> {
    if !gateway.delay.is_zero() {
        tokio::time::sleep(gateway.delay).await;
    }
    let number = gateway.made.fetch_add(1, Ordering::Relaxed);
    Json(ChargeAnswer::Succeeded(Payment {
        id: format!("pay_{number}").parse().expect("a payment's id"),
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
