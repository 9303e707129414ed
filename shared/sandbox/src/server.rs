//! The HTTP routes of the sandbox gateway. On one machine, the command `dueday` serves these routes in its own process;
//! on AWS, the Lambda function `sandbox` serves them.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use clock::Clock;
use gateways::{
    ACCOUNT_PATH, CHECKOUT_PAGES_PATH, CLOCK_HEADER, ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest,
    CheckoutPageState, CustomerPaymentsQuery, GatewayDispute, GatewayRefund, GatewaySigningKeys, LISTS_PATH, ListPage,
    PAYMENTS_PATH, REFUNDS_PATH, RefundRequest, RefundResponse, SignedRequestParts, TimeRange, TimeRangeQuery,
};

use crate::card_page;
use crate::store::{CheckoutPageAddress, SandboxStore, StoreError};

/// The largest accepted body of a request. The requests of Dueday are smaller.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The sandbox that the routes serve.
type SharedSandboxStore = Arc<dyn SandboxStore>;

/// Returns the routes that `HttpGateway` calls, and the checkout page for the customer's browser. The routes accept
/// requests without signatures.
pub fn gateway_router(sandbox: SharedSandboxStore) -> Router {
    api_routes().merge(checkout_page_routes()).with_state(sandbox)
}

/// Returns the same routes as [`gateway_router`]. Every request, except the requests of the customer's browser, must be
/// signed with one of `keys`, at most five minutes before or after the time of `clock`; otherwise the response is 401.
pub fn signed_gateway_router(sandbox: SharedSandboxStore, keys: GatewaySigningKeys, clock: Arc<dyn Clock>) -> Router {
    let verification = from_fn_with_state((keys, clock), verify_signature);
    api_routes().route_layer(verification).merge(checkout_page_routes()).with_state(sandbox)
}

/// Returns the routes that `HttpGateway` calls.
fn api_routes() -> Router<SharedSandboxStore> {
    Router::new()
        .route(ACCOUNT_PATH, get(get_account))
        .route(PAYMENTS_PATH, post(create_charge).get(list_payments))
        .route(&format!("{PAYMENTS_PATH}/{{id}}"), get(get_payment))
        .route(CHECKOUT_PAGES_PATH, post(open_checkout_page))
        .route(&format!("{CHECKOUT_PAGES_PATH}/{{id}}"), get(get_checkout_page_state))
        .route(REFUNDS_PATH, post(create_refund))
        .route(&format!("{REFUNDS_PATH}/{{payment}}"), get(list_refunds))
        .route(&format!("{LISTS_PATH}/payments"), get(list_payments_in_range))
        .route(&format!("{LISTS_PATH}/refunds"), get(list_refunds_in_range))
        .route(&format!("{LISTS_PATH}/disputes"), get(list_disputes_in_range))
}

/// Returns the routes that the customer's browser calls.
fn checkout_page_routes() -> Router<SharedSandboxStore> {
    Router::new().route("/pages/{id}", get(show_checkout_page).post(submit_card))
}

/// A middleware that passes requests with a valid signature to the routes, and responds to all other requests with 401.
async fn verify_signature(
    State((keys, clock)): State<(GatewaySigningKeys, Arc<dyn Clock>)>,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY_BYTES).await;
    let body = body.map_err(|error| (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()))?;
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let signed = SignedRequestParts { method: parts.method.as_str(), target, body: &body };
    let verified = keys.verify(&signed, &parts.headers, clock.now());
    verified.map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))?;
    Ok(next.run(Request::from_parts(parts, body.into())).await)
}

/// The status and the text of an error response.
type ErrorResponse = (StatusCode, String);

async fn get_account(State(sandbox): State<SharedSandboxStore>) -> Result<Json<GatewayAccount>, ErrorResponse> {
    sandbox.account().await.map(Json).map_err(internal_error)
}

async fn create_charge(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Json(request): Json<ChargeRequest>,
) -> Result<Json<ChargeResponse>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    sandbox.charge(&request, now).await.map(Json).map_err(internal_error)
}

async fn list_payments(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Query(query): Query<CustomerPaymentsQuery>,
) -> Result<Json<Vec<Payment>>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    sandbox.payments(&query.customer, query.since, now).await.map(Json).map_err(internal_error)
}

async fn get_payment(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Path(id): Path<GatewayToken>,
) -> Result<Json<Payment>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    let payment = sandbox.payment(&id, now).await.map_err(internal_error)?;
    payment.map(Json).ok_or_else(|| (StatusCode::NOT_FOUND, "the payment does not exist".to_owned()))
}

async fn open_checkout_page(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Json(request): Json<CheckoutPageRequest>,
) -> Result<Json<CheckoutPage>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    let url = match sandbox.checkout_page_address() {
        // The URL of the checkout page contains the host name to which the caller has sent this request.
        CheckoutPageAddress::HostOfRequest => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            format!("http://{host}")
        }
        CheckoutPageAddress::OriginOfReturnUrl => origin_of_url(&request.return_url)
            .ok_or_else(|| (StatusCode::BAD_REQUEST, "return_url must be an https URL".to_owned()))?,
    };
    sandbox.open_page(&request, now).await.map(|opened| Json(opened.into_checkout_page(&url))).map_err(internal_error)
}

/// Returns the scheme and the host of `url`; `None` if `url` has no scheme or no host.
fn origin_of_url(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

async fn create_refund(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Json(request): Json<RefundRequest>,
) -> Result<Json<RefundResponse>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    sandbox.refund(&request, now).await.map(Json).map_err(internal_error)
}

async fn list_refunds(
    State(sandbox): State<SharedSandboxStore>,
    Path(payment): Path<GatewayToken>,
) -> Result<Json<Vec<GatewayRefund>>, ErrorResponse> {
    sandbox.refunds(&payment).await.map(Json).map_err(internal_error)
}

async fn list_payments_in_range(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Query(TimeRangeQuery { from, to, after }): Query<TimeRangeQuery>,
) -> Result<Json<ListPage<Payment>>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    let page = sandbox.payments_in_range(&TimeRange { from, to }, after.as_deref(), now).await;
    page.map(Json).map_err(internal_error)
}

async fn list_refunds_in_range(
    State(sandbox): State<SharedSandboxStore>,
    Query(TimeRangeQuery { from, to, after }): Query<TimeRangeQuery>,
) -> Result<Json<ListPage<(GatewayToken, GatewayRefund)>>, ErrorResponse> {
    let page = sandbox.refunds_in_range(&TimeRange { from, to }, after.as_deref()).await;
    page.map(Json).map_err(internal_error)
}

/// Returns an empty list: no bank disputes a payment of the sandbox.
async fn list_disputes_in_range(Query(_): Query<TimeRangeQuery>) -> Json<ListPage<GatewayDispute>> {
    Json(ListPage::last(Vec::new()))
}

async fn get_checkout_page_state(
    State(sandbox): State<SharedSandboxStore>,
    headers: HeaderMap,
    Path(id): Path<GatewayToken>,
) -> Result<Json<CheckoutPageState>, ErrorResponse> {
    let now = time_of_request(sandbox.as_ref(), &headers)?;
    let page = sandbox.checkout_page_with_state(&id, now).await.map_err(internal_error)?;
    page.map(|(_, state)| Json(state)).ok_or_else(checkout_page_not_found)
}

/// Returns the checkout page. If it is not open any more, redirects the browser to the return URL.
async fn show_checkout_page(
    State(sandbox): State<SharedSandboxStore>,
    Path(id): Path<GatewayToken>,
) -> Result<Response, ErrorResponse> {
    let page = sandbox.checkout_page_with_state(&id, sandbox.now()).await.map_err(internal_error)?;
    match page.ok_or_else(checkout_page_not_found)? {
        (opened, CheckoutPageState::Open) => Ok(card_page::render_card_page(&opened.return_url)),
        (opened, CheckoutPageState::Complete { .. } | CheckoutPageState::Expired) => {
            Ok(card_page::redirect_to_return_url(&opened.return_url))
        }
    }
}

/// Stores the payment method that the customer submitted, and redirects the browser to the return URL.
async fn submit_card(
    State(sandbox): State<SharedSandboxStore>,
    Path(id): Path<GatewayToken>,
    body: String,
) -> Result<Response, ErrorResponse> {
    let now = sandbox.now();
    let page = sandbox.checkout_page_with_state(&id, now).await.map_err(internal_error)?;
    let (opened, _) = page.ok_or_else(checkout_page_not_found)?;
    if let Some(payment_method) = card_page::submitted_payment_method(&body) {
        sandbox.complete_page(&id, &payment_method, now).await.map_err(internal_error)?;
    }
    Ok(card_page::redirect_to_return_url(&opened.return_url))
}

fn checkout_page_not_found() -> ErrorResponse {
    (StatusCode::NOT_FOUND, "the checkout page does not exist".to_owned())
}

/// Returns the caller's current time from the header `CLOCK_HEADER`, or the time of `sandbox` if the request has no
/// such header.
fn time_of_request(sandbox: &dyn SandboxStore, headers: &HeaderMap) -> Result<DateTime<Utc>, ErrorResponse> {
    let Some(value) = headers.get(CLOCK_HEADER) else { return Ok(sandbox.now()) };
    let now = value.to_str().ok().and_then(|text| text.parse().ok());
    now.ok_or_else(|| {
        (StatusCode::BAD_REQUEST, format!("{CLOCK_HEADER} must be an instant such as 2027-01-31T06:00:00Z"))
    })
}

/// Logs `error`, and returns an error response with status 500.
fn internal_error(error: StoreError) -> ErrorResponse {
    tracing::error!(%error, error_type = "Store", "the sandbox could not read or write its payments");
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
