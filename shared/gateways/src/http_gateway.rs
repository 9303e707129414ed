//! The client of a gateway with the HTTP API of docs/gateways.md: a merchant's own gateway, or a sandbox in another
//! process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::contradiction::check_payments_are_consistent;
use super::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayError,
    GatewayRefund, PaymentGateway, RefundRequest, RefundResponse, Refunds,
};
use billing::{GatewayAccount, GatewayToken, Payment};
use clock::Clock;

/// The path of payments. POST with a [`ChargeRequest`] makes a charge and returns a [`ChargeResponse`]. GET with a
/// [`ListQuery`] returns a list of [`Payment`]s. GET with the id of a payment appended to the path returns this
/// [`Payment`], or status 404.
pub const PAYMENTS_PATH: &str = "/v1/payments";

/// The path of checkout pages. POST with a [`CheckoutPageRequest`] opens one and returns a [`CheckoutPage`]. GET with
/// the id of a checkout page appended to the path returns its [`CheckoutPageState`].
pub const CHECKOUT_PAGES_PATH: &str = "/v1/pages";

/// The path of refunds. POST with a [`RefundRequest`] makes a refund and returns a [`RefundResponse`]. GET with the id
/// of a payment appended to the path returns a list of this payment's [`GatewayRefund`]s.
pub const REFUNDS_PATH: &str = "/v1/refunds";

/// The path of the account. GET returns a [`GatewayAccount`].
pub const ACCOUNT_PATH: &str = "/v1/account";

/// The request header with the simulated time of a client. The sandbox uses it instead of the current time for this
/// request, similar to Stripe's test clocks.
pub const CLOCK_HEADER: &str = "sandbox-clock";

/// The query parameters of the list of a customer's payments: the customer, and the earliest creation time of a
/// payment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListQuery {
    pub customer: GatewayToken,
    pub since: DateTime<Utc>,
}

/// A client of the gateway at a URL.
#[derive(Clone, Debug)]
pub struct HttpGateway {
    http: reqwest::Client,
    payments: String,
    pages: String,
    refunds: String,
    account: String,
    /// The simulated time to send in the header [`CLOCK_HEADER`]; `None` to leave the header out.
    clock: Option<Arc<dyn Clock>>,
}

impl HttpGateway {
    /// Returns a client of the gateway at `url`. A request waits at most `timeout` for its response.
    ///
    /// # Panics
    /// If the HTTP client cannot be created.
    pub fn new(url: &str, timeout: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(timeout).no_proxy().build().expect("an HTTP client");
        let at = |path: &str| format!("{}{path}", url.trim_end_matches('/'));
        Self {
            http,
            payments: at(PAYMENTS_PATH),
            pages: at(CHECKOUT_PAGES_PATH),
            refunds: at(REFUNDS_PATH),
            account: at(ACCOUNT_PATH),
            clock: None,
        }
    }

    /// Returns this client, changed so that it sends the time of `clock` in the header [`CLOCK_HEADER`] of each
    /// request.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Adds the header [`CLOCK_HEADER`] to `request` if this client has a simulated clock.
    fn with_clock_header(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.clock {
            Some(clock) => request.header(CLOCK_HEADER, clock.now().to_rfc3339()),
            None => request,
        }
    }
}

/// Reads the JSON body of a successful response. Returns a [`GatewayError`] if the response has another status, or if
/// there was no response.
async fn read_response<T: DeserializeOwned>(
    result: Result<reqwest::Response, reqwest::Error>,
) -> Result<T, GatewayError> {
    let unknown = |error: reqwest::Error| GatewayError::Unknown { reason: error.without_url().to_string() };
    let response = result.map_err(unknown)?;
    match response.status() {
        status if status.is_success() => response.json().await.map_err(unknown),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(GatewayError::Unusable { reason: status.to_string() })
        }
        StatusCode::TOO_MANY_REQUESTS => Err(GatewayError::Throttled { retry_after: retry_after(&response) }),
        status => Err(GatewayError::Unknown { reason: status.to_string() }),
    }
}

/// Returns the time that the gateway asks us to wait, from the header `Retry-After` in whole seconds. Returns `None` if
/// the header is missing or contains a date, which is the other format that HTTP allows.
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[async_trait]
impl PaymentGateway for HttpGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        read_response(self.http.get(&self.account).send().await).await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let response =
            read_response(self.with_clock_header(self.http.post(&self.payments).json(request)).send().await).await;
        match response.and_then(ChargeResponse::from_json) {
            Ok(response) => response,
            Err(GatewayError::Unknown { reason }) => ChargeResponse::Unknown { reason },
            Err(GatewayError::Throttled { retry_after }) => ChargeResponse::Throttled { retry_after },
            Err(GatewayError::Unusable { reason }) => ChargeResponse::Unusable { reason },
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let query = ListQuery { customer: customer.clone(), since };
        let listed =
            read_response(self.with_clock_header(self.http.get(&self.payments).query(&query)).send().await).await?;
        check_payments_are_consistent(listed)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let response = self.with_clock_header(self.http.get(format!("{}/{id}", self.payments))).send().await;
        if response.as_ref().is_ok_and(|response| response.status() == StatusCode::NOT_FOUND) {
            return Ok(None);
        }
        read_response(response).await.map(Some)
    }
}

#[async_trait]
impl CheckoutPages for HttpGateway {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        read_response(self.with_clock_header(self.http.post(&self.pages).json(request)).send().await).await
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        read_response(self.with_clock_header(self.http.get(format!("{}/{id}", self.pages))).send().await).await
    }
}

#[async_trait]
impl Refunds for HttpGateway {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let result = self.with_clock_header(self.http.post(&self.refunds).json(request)).send().await;
        read_response(result).await.unwrap_or_else(RefundResponse::Unknown)
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        read_response(self.with_clock_header(self.http.get(format!("{}/{payment}", self.refunds))).send().await).await
    }
}
