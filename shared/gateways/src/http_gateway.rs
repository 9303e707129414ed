//! A merchant's own gateway, or a sandbox that runs elsewhere, reached by HTTP as docs/gateways.md describes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::contradiction::unless_contradictory;
use super::{
    ChargeAnswer, ChargeRequest, GatewayError, Page, PageRequest, PageState, PaymentGateway, PaymentMethodPages,
    RefundAnswer, RefundMade, RefundRequest, Refunds,
};
use billing::{GatewayAccount, GatewayToken, Payment};
use clock::Clock;

/// Where a sandbox takes charges (POST a [`ChargeRequest`], answered by an [`ChargeAnswer`]) and lists payments
/// (GET with a [`ListQuery`], answered by a list of [`Payment`]s; with a payment's id behind it, answered by that [`Payment`] or 404).
pub const PAYMENTS: &str = "/v1/payments";

/// Where a sandbox opens pages (POST a [`PageRequest`], answered by a [`Page`]) and, with a page's id behind it, says what has become
/// of one (GET, answered by a [`PageState`]).
pub const PAGES: &str = "/v1/pages";

/// Where a sandbox gives back (POST a [`RefundRequest`], answered by a [`RefundAnswer`]) and, with a payment's id behind it, lists the
/// refunds of one (GET, answered by a list of [`RefundMade`]s).
pub const REFUNDS: &str = "/v1/refunds";

/// Where a sandbox says whose account it is (GET, answered by a [`GatewayAccount`]).
pub const ACCOUNT: &str = "/v1/account";

/// The header by which a client that plays other days tells the sandbox its time: Stripe's test clocks, a request long.
pub const CLOCK: &str = "sandbox-clock";

/// Which payments to list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListQuery {
    pub customer: GatewayToken,
    pub since: DateTime<Utc>,
}

/// The gateway at a URL.
#[derive(Clone, Debug)]
pub struct HttpGateway {
    http: reqwest::Client,
    payments: String,
    pages: String,
    refunds: String,
    account: String,
    clock: Option<Arc<dyn Clock>>,
}

impl HttpGateway {
    /// The gateway at `url`, given at most `timeout` to answer.
    ///
    /// # Panics
    /// If the machine's HTTP client cannot be set up at all.
    pub fn new(url: &str, timeout: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(timeout).no_proxy().build().expect("an HTTP client");
        let at = |path: &str| format!("{}{path}", url.trim_end_matches('/'));
        Self { http, payments: at(PAYMENTS), pages: at(PAGES), refunds: at(REFUNDS), account: at(ACCOUNT), clock: None }
    }

    /// The same gateway, which takes the time from `clock`.
    pub fn on_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    fn timed(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.clock {
            Some(clock) => request.header(CLOCK, clock.now().to_rfc3339()),
            None => request,
        }
    }
}

async fn read<T: DeserializeOwned>(sent: Result<reqwest::Response, reqwest::Error>) -> Result<T, GatewayError> {
    let unknown = |error: reqwest::Error| GatewayError::Unknown { reason: error.without_url().to_string() };
    let response = sent.map_err(unknown)?;
    match response.status() {
        status if status.is_success() => response.json().await.map_err(unknown),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(GatewayError::Unusable { reason: status.to_string() })
        }
        StatusCode::TOO_MANY_REQUESTS => Err(GatewayError::Throttled { retry_after: retry_after(&response) }),
        status => Err(GatewayError::Unknown { reason: status.to_string() }),
    }
}

/// What a response says of when to ask again, in whole seconds. (It may be a date too, which gateways do not send.)
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[async_trait]
impl PaymentGateway for HttpGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        read(self.http.get(&self.account).send().await).await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let answer = read(self.timed(self.http.post(&self.payments).json(request)).send().await).await;
        match answer.and_then(ChargeAnswer::from_json) {
            Ok(answer) => answer,
            Err(GatewayError::Unknown { reason }) => ChargeAnswer::Unknown { reason },
            Err(GatewayError::Throttled { retry_after }) => ChargeAnswer::Throttled { retry_after },
            Err(GatewayError::Unusable { reason }) => ChargeAnswer::Unusable { reason },
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let query = ListQuery { customer: customer.clone(), since };
        let listed = read(self.timed(self.http.get(&self.payments).query(&query)).send().await).await?;
        unless_contradictory(listed)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let response = self.timed(self.http.get(format!("{}/{id}", self.payments))).send().await;
        if response.as_ref().is_ok_and(|response| response.status() == StatusCode::NOT_FOUND) {
            return Ok(None);
        }
        read(response).await.map(Some)
    }
}

#[async_trait]
impl PaymentMethodPages for HttpGateway {
    async fn open_page(&self, request: &PageRequest) -> Result<Page, GatewayError> {
        read(self.timed(self.http.post(&self.pages).json(request)).send().await).await
    }

    async fn page_state(&self, id: &GatewayToken) -> Result<PageState, GatewayError> {
        read(self.timed(self.http.get(format!("{}/{id}", self.pages))).send().await).await
    }
}

#[async_trait]
impl Refunds for HttpGateway {
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let asked = self.timed(self.http.post(&self.refunds).json(request)).send().await;
        read(asked).await.unwrap_or_else(RefundAnswer::NotKnown)
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        read(self.timed(self.http.get(format!("{}/{payment}", self.refunds))).send().await).await
    }
}
