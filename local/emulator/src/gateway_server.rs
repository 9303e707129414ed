//! The HTTP server of the sandbox gateway, which `dueday` runs in its own process or together with other servers.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use clock::{Clock, SystemClock};
use gateways::{
    ACCOUNT_PATH, CHECKOUT_PAGES_PATH, CLOCK_HEADER, ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest,
    CheckoutPageState, GatewayKeys, GatewayRefund, ListQuery, PAYMENTS_PATH, PaymentGateway, REFUNDS_PATH,
    RefundRequest, RefundResponse, Sandbox, SignedRequest,
};

use crate::card_page;

/// The largest accepted body of a request. The requests of Dueday are smaller.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Returns the routes that `HttpGateway` calls, and the checkout page for the customer's browser. The routes accept
/// requests without signatures.
pub fn gateway_router(sandbox: Arc<Sandbox>) -> Router {
    api_routes().merge(checkout_page_routes()).with_state(sandbox)
}

/// Returns the same routes as [`gateway_router`]. Every request, except those of the customer's browser, must be signed
/// with one of `keys`, at most five minutes before or after the time of `clock`; otherwise the response is 401.
pub fn signed_gateway_router(sandbox: Arc<Sandbox>, keys: GatewayKeys, clock: Arc<dyn Clock>) -> Router {
    let verification = from_fn_with_state((keys, clock), verify_signature);
    api_routes().route_layer(verification).merge(checkout_page_routes()).with_state(sandbox)
}

fn api_routes() -> Router<Arc<Sandbox>> {
    Router::new()
        .route(ACCOUNT_PATH, get(get_account))
        .route(PAYMENTS_PATH, post(charge).get(list_payments))
        .route(&format!("{PAYMENTS_PATH}/{{id}}"), get(get_payment))
        .route(CHECKOUT_PAGES_PATH, post(open_checkout_page))
        .route(&format!("{CHECKOUT_PAGES_PATH}/{{id}}"), get(checkout_page_state))
        .route(REFUNDS_PATH, post(refund))
        .route(&format!("{REFUNDS_PATH}/{{payment}}"), get(list_refunds))
}

fn checkout_page_routes() -> Router<Arc<Sandbox>> {
    Router::new().route("/pages/{id}", get(show_page).post(submit_card))
}

/// Passes signed requests on, and responds to all others with 401.
async fn verify_signature(
    State((keys, clock)): State<(GatewayKeys, Arc<dyn Clock>)>,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY_BYTES).await;
    let body = body.map_err(|error| (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()))?;
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let signed = SignedRequest { method: parts.method.as_str(), target, body: &body };
    let verified = keys.verify(&signed, &parts.headers, clock.now());
    verified.map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))?;
    Ok(next.run(Request::from_parts(parts, body.into())).await)
}

/// The status and the text of an error response.
type ErrorResponse = (StatusCode, String);

async fn get_account(State(sandbox): State<Arc<Sandbox>>) -> Result<Json<GatewayAccount>, ErrorResponse> {
    sandbox.account().await.map(Json).map_err(internal_error)
}

async fn charge(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Json(request): Json<ChargeRequest>,
) -> Result<Json<ChargeResponse>, ErrorResponse> {
    match time_of_caller(&headers)? {
        None => Ok(Json(sandbox.charge(&request).await)),
        Some(now) => sandbox.charge_at(&request, now).map(Json).map_err(internal_error),
    }
}

async fn list_payments(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<Payment>>, ErrorResponse> {
    match time_of_caller(&headers)? {
        None => sandbox.payments_of(&query.customer, query.since).await.map(Json).map_err(internal_error),
        Some(now) => sandbox.payments_at(&query.customer, query.since, now).map(Json).map_err(internal_error),
    }
}

async fn get_payment(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Path(id): Path<GatewayToken>,
) -> Result<Json<Payment>, ErrorResponse> {
    let now = time_of_caller(&headers)?.unwrap_or_else(|| SystemClock.now());
    let payment = sandbox.payment_at(&id, now).map_err(internal_error)?;
    payment.map(Json).ok_or_else(|| (StatusCode::NOT_FOUND, "the payment does not exist".to_owned()))
}

async fn open_checkout_page(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Json(request): Json<CheckoutPageRequest>,
) -> Result<Json<CheckoutPage>, ErrorResponse> {
    // The URL of the checkout page contains the host name that the caller uses for this server.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let now = time_of_caller(&headers)?.unwrap_or_else(|| SystemClock.now());
    sandbox.open_page_at(&request, &format!("http://{host}"), now).map(Json).map_err(internal_error)
}

async fn refund(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Json(request): Json<RefundRequest>,
) -> Result<Json<RefundResponse>, ErrorResponse> {
    let now = time_of_caller(&headers)?.unwrap_or_else(|| SystemClock.now());
    sandbox.refund_at(&request, now).map(Json).map_err(internal_error)
}

async fn list_refunds(
    State(sandbox): State<Arc<Sandbox>>,
    Path(payment): Path<GatewayToken>,
) -> Json<Vec<GatewayRefund>> {
    Json(sandbox.refunds_made(&payment))
}

async fn checkout_page_state(
    State(sandbox): State<Arc<Sandbox>>,
    headers: HeaderMap,
    Path(id): Path<GatewayToken>,
) -> Result<Json<CheckoutPageState>, ErrorResponse> {
    let now = time_of_caller(&headers)?.unwrap_or_else(|| SystemClock.now());
    sandbox.page_at(&id, now).map(|(_, state)| Json(state)).ok_or_else(page_not_found)
}

async fn show_page(
    State(sandbox): State<Arc<Sandbox>>,
    Path(id): Path<GatewayToken>,
) -> Result<Response, ErrorResponse> {
    match sandbox.page_at(&id, SystemClock.now()).ok_or_else(page_not_found)? {
        (opened, CheckoutPageState::Open) => Ok(card_page::render(&opened.return_url)),
        (opened, CheckoutPageState::Complete { .. } | CheckoutPageState::Expired) => {
            Ok(card_page::redirect_to(&opened.return_url))
        }
    }
}

async fn submit_card(
    State(sandbox): State<Arc<Sandbox>>,
    Path(id): Path<GatewayToken>,
    body: String,
) -> Result<Response, ErrorResponse> {
    let now = SystemClock.now();
    let (opened, _) = sandbox.page_at(&id, now).ok_or_else(page_not_found)?;
    if let Some(payment_method) = card_page::submitted_payment_method(&body) {
        sandbox.complete_page_at(&id, &payment_method, now).map_err(internal_error)?;
    }
    Ok(card_page::redirect_to(&opened.return_url))
}

fn page_not_found() -> ErrorResponse {
    (StatusCode::NOT_FOUND, "the checkout page does not exist".to_owned())
}

/// Returns the caller's current time from the header `CLOCK_HEADER`; `None` if the request has no such header.
fn time_of_caller(headers: &HeaderMap) -> Result<Option<DateTime<Utc>>, ErrorResponse> {
    let Some(value) = headers.get(CLOCK_HEADER) else { return Ok(None) };
    let now = value.to_str().ok().and_then(|text| text.parse().ok());
    now.map(Some).ok_or_else(|| {
        (StatusCode::BAD_REQUEST, format!("{CLOCK_HEADER} must be an instant such as 2027-01-31T06:00:00Z"))
    })
}

fn internal_error(error: impl std::error::Error) -> ErrorResponse {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
