//! The sandbox gateway as a server: a process of its own, or beside the rest of a local system.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use clock::{Clock as _, SystemClock};
use gateways::{
    ACCOUNT, CLOCK, ChargeAnswer, ChargeRequest, ListQuery, PAGES, PAYMENTS, Page, PageRequest, PageState,
    PaymentGateway, REFUNDS, RefundAnswer, RefundMade, RefundRequest, Sandbox,
};

use crate::card_page;

/// The routes that a `HttpGateway` speaks to.
pub fn gateway_router(sandbox: Arc<Sandbox>) -> Router {
    Router::new()
        .route(ACCOUNT, get(account))
        .route(PAYMENTS, post(charge).get(list))
        .route(&format!("{PAYMENTS}/{{id}}"), get(payment))
        .route(PAGES, post(open_page))
        .route(&format!("{PAGES}/{{id}}"), get(page_state))
        .route(REFUNDS, post(refund))
        .route(&format!("{REFUNDS}/{{payment}}"), get(refunds_of))
        // For the customer, in a browser.
        .route("/pages/{id}", get(show_page).post(give))
        .with_state(sandbox)
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

async fn payment(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Path(id): Path<GatewayToken>,
) -> Result<Json<Payment>, Failed> {
    let now = clock(&headers)?.unwrap_or_else(|| SystemClock.now());
    let payment = sandbox.payment_at(&id, now).map_err(failed)?;
    payment.map(Json).ok_or_else(|| (StatusCode::NOT_FOUND, "there is no such payment".to_owned()))
}

async fn open_page(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Json(request): Json<PageRequest>,
) -> Result<Json<Page>, Failed> {
    // The server's own name, as whoever asks knows it.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let now = clock(&headers)?.unwrap_or_else(|| SystemClock.now());
    sandbox.open_at(&request, &format!("http://{host}"), now).map(Json).map_err(failed)
}

async fn refund(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Json(request): Json<RefundRequest>,
) -> Result<Json<RefundAnswer>, Failed> {
    let now = clock(&headers)?.unwrap_or_else(|| SystemClock.now());
    sandbox.refund_at(&request, now).map(Json).map_err(failed)
}

async fn refunds_of(State(sandbox): State<Arc<Sandbox>>, Path(payment): Path<GatewayToken>) -> Json<Vec<RefundMade>> {
    Json(sandbox.refunds_made(&payment))
}

async fn page_state(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Path(id): Path<GatewayToken>,
) -> Result<Json<PageState>, Failed> {
    let now = clock(&headers)?.unwrap_or_else(|| SystemClock.now());
    sandbox.page_at(&id, now).map(|(_, state)| Json(state)).ok_or_else(no_page)
}

async fn show_page(State(sandbox): State<Arc<Sandbox>>, Path(id): Path<GatewayToken>) -> Result<Response, Failed> {
    match sandbox.page_at(&id, SystemClock.now()).ok_or_else(no_page)? {
        (opened, PageState::Open) => Ok(card_page::show(&opened.return_url)),
        (opened, PageState::Complete { .. } | PageState::Expired) => Ok(card_page::leave(&opened.return_url)),
    }
}

async fn give(
    State(sandbox): State<Arc<Sandbox>>,
    Path(id): Path<GatewayToken>,
    body: String,
) -> Result<Response, Failed> {
    let now = SystemClock.now();
    let (opened, _) = sandbox.page_at(&id, now).ok_or_else(no_page)?;
    if let Some(payment_method) = card_page::given(&body) {
        sandbox.give_at(&id, &payment_method, now).map_err(failed)?;
    }
    Ok(card_page::leave(&opened.return_url))
}

fn no_page() -> Failed {
    (StatusCode::NOT_FOUND, "there is no such page".to_owned())
}

fn clock(headers: &HeaderMap) -> Result<Option<DateTime<Utc>>, Failed> {
    let Some(value) = headers.get(CLOCK) else { return Ok(None) };
    let now = value.to_str().ok().and_then(|text| text.parse().ok());
    now.map(Some).ok_or_else(|| (StatusCode::BAD_REQUEST, format!("{CLOCK} must be an instant")))
}

fn failed(error: impl std::error::Error) -> Failed {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
