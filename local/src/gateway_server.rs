//! The sandbox gateway as a server: a process of its own, or beside the rest of a local system.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use shared::billing::Payment;
use shared::gateway::{Answer, ChargeRequest, ListQuery, LookUpError, PAYMENTS, PaymentGateway, Sandbox};

/// The routes that a `SandboxClient` speaks to.
pub fn gateway_router(sandbox: Arc<Sandbox>) -> Router {
    Router::new().route(PAYMENTS, post(charge).get(list)).with_state(sandbox)
}

async fn charge(State(sandbox): State<Arc<Sandbox>>, Json(request): Json<ChargeRequest>) -> Json<Answer> {
    Json(sandbox.charge(&request).await)
}

async fn list(
    State(sandbox): State<Arc<Sandbox>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<Payment>>, (StatusCode, String)> {
    let listed = sandbox.payments_of(&query.customer, query.since).await;
    listed.map(Json).map_err(|error: LookUpError| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
