//! The sandbox gateway as a server: a process of its own, or beside the rest of a local system.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use shared::billing::{GatewayAccount, Payment};
use shared::gateway::{ACCOUNT, CLOCK, ChargeAnswer, ChargeRequest, ListQuery, PAYMENTS, PaymentGateway, Sandbox};

/// The routes that a `SandboxClient` speaks to.
pub fn gateway_router(sandbox: Arc<Sandbox>) -> Router {
    Router::new().route(ACCOUNT, get(account)).route(PAYMENTS, post(charge).get(list)).with_state(sandbox)
}

type Failed = (StatusCode, String);

async fn account(State(sandbox): State<Arc<Sandbox>>) -> Result<Json<GatewayAccount>, Failed> {
    sandbox.account().await.map(Json).map_err(failed)
}

async fn charge(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Json(request): Json<ChargeRequest>,
) -> Result<Json<ChargeAnswer>, Failed> {
    match clock(&headers)? {
        None => Ok(Json(sandbox.charge(&request).await)),
        Some(now) => sandbox.charge_at(&request, now).map(Json).map_err(failed),
    }
}

async fn list(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<Payment>>, Failed> {
    match clock(&headers)? {
        None => sandbox.payments_of(&query.customer, query.since).await.map(Json).map_err(failed),
        Some(now) => sandbox.payments_at(&query.customer, query.since, now).map(Json).map_err(failed),
    }
}

fn clock(headers: &HeaderMap) -> Result<Option<DateTime<Utc>>, Failed> {
    let Some(value) = headers.get(CLOCK) else { return Ok(None) };
    let now = value.to_str().ok().and_then(|text| text.parse().ok());
    now.map(Some).ok_or_else(|| (StatusCode::BAD_REQUEST, format!("{CLOCK} must be an instant")))
}

fn failed(error: impl std::error::Error) -> Failed {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
