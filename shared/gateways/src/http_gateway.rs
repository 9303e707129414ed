//! The client of a gateway with the HTTP API of docs/gateways.md: a merchant's own gateway, or a sandbox in another
//! process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::amount_rules::AccountWithAmountRules;
use super::list_page::ListedItem;
use super::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayDispute,
    GatewayError, GatewayRefund, GatewaySigningKeys, IamSigner, ListPage, PaymentGateway, RefundRequest,
    RefundResponse, Refunds, SignedRequestParts, TimeRange, UnreadableObject,
};
use billing::{AmountRules, GatewayAccount, GatewayToken, Payment, SigningSecret};
use clock::Clock;
use config::CurrentSecret;

/// The path of payments. POST with a [`ChargeRequest`] makes a charge and returns a [`ChargeResponse`]. GET with a
/// [`CustomerPaymentsQuery`] returns a list of [`Payment`]s. GET with the id of a payment appended to the path returns
/// this [`Payment`], or status 404 if there is no such payment.
pub const PAYMENTS_PATH: &str = "/v1/payments";

/// The path of checkout pages. POST with a [`CheckoutPageRequest`] opens a checkout page and returns a
/// [`CheckoutPage`]. GET with the id of a checkout page appended to the path returns its [`CheckoutPageState`].
pub const CHECKOUT_PAGES_PATH: &str = "/v1/pages";

/// The path of refunds. POST with a [`RefundRequest`] makes a refund and returns a [`RefundResponse`]. GET with the id
/// of a payment appended to the path returns a list of this payment's [`GatewayRefund`]s.
pub const REFUNDS_PATH: &str = "/v1/refunds";

/// The path of the lists of all payments, refunds or disputes of a time range. GET with `/payments`, `/refunds` or
/// `/disputes` appended to the path, and with a [`TimeRangeQuery`], returns a [`ListPage`]. These lists are optional: a
/// gateway without them returns status 404.
pub const LISTS_PATH: &str = "/v1/lists";

/// The path of the account. GET returns a [`GatewayAccount`], to which a merchant's own gateway may add the amounts that
/// it can charge (docs/gateways.md).
pub const ACCOUNT_PATH: &str = "/v1/account";

/// The request header with the simulated time of a client. The sandbox uses it instead of the current time for this
/// request, similar to Stripe's test clocks.
pub const CLOCK_HEADER: &str = "sandbox-clock";

/// The query parameters of the list of a customer's payments: the customer, and the earliest creation time of a
/// payment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CustomerPaymentsQuery {
    pub customer: GatewayToken,
    pub since: DateTime<Utc>,
}

/// The query parameters of a list of a time range: the start and the end (exclusive) of the range, and the position
/// after which the list page begins. The position is absent for the first list page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimeRangeQuery {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A client of the gateway at a URL.
#[derive(Clone, Debug)]
pub struct HttpGateway {
    http: reqwest::Client,
    payments: String,
    pages: String,
    refunds: String,
    lists: String,
    account: String,
    /// The clock whose time is sent in the header [`CLOCK_HEADER`]; `None` to leave the header out.
    clock: Option<Arc<dyn Clock>>,
    /// The keys and the clock for signatures; `None` if requests are not signed.
    signing: Option<Arc<RequestSigning>>,
    /// The signer for a gateway that AWS IAM protects, and the clock for the signed times; `None` for another gateway.
    iam: Option<(IamSigner, Arc<dyn Clock>)>,
}

/// The keys that sign the requests, and the clock for the signed times.
#[derive(Debug)]
struct RequestSigning {
    keys: CurrentSecret<GatewaySigningKeys>,
    clock: Arc<dyn Clock>,
}

impl HttpGateway {
    /// Returns a client of the gateway at `url`, which does not sign its requests. A request waits at most `timeout`
    /// for its response.
    ///
    /// # Panics
    /// If the HTTP client cannot be created.
    pub fn new(url: &str, timeout: Duration) -> Self {
        // Follow no redirects, because a redirect could lead to a server without encryption.
        let http = reqwest::Client::builder().timeout(timeout).no_proxy().redirect(Policy::none());
        let at = |path: &str| format!("{}{path}", url.trim_end_matches('/'));
        Self {
            http: http.build().expect("an HTTP client"),
            payments: at(PAYMENTS_PATH),
            pages: at(CHECKOUT_PAGES_PATH),
            refunds: at(REFUNDS_PATH),
            lists: at(LISTS_PATH),
            account: at(ACCOUNT_PATH),
            clock: None,
            signing: None,
            iam: None,
        }
    }

    /// Returns this client, changed so that it sends the time of `clock` in the header [`CLOCK_HEADER`] of each
    /// request.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Returns this client, changed so that it signs each request with `keys`, at the time of `clock`.
    pub fn with_keys(self, keys: CurrentSecret<GatewaySigningKeys>, clock: Arc<dyn Clock>) -> Self {
        Self { signing: Some(Arc::new(RequestSigning { keys, clock })), ..self }
    }

    /// Returns this client, changed so that `signer` signs each request for AWS IAM, at the time of `clock`.
    pub fn with_iam(self, signer: IamSigner, clock: Arc<dyn Clock>) -> Self {
        Self { iam: Some((signer, clock)), ..self }
    }

    /// Requests one page of the gateway's list `name` (such as `payments`), restricted to objects that were created in
    /// `range`, and reads its objects with `read`, which returns `None` for an object of another program. Returns `None`
    /// if the gateway does not offer this list.
    async fn list_range<T: ListedItem>(
        &self,
        name: &str,
        read: impl Fn(&Value) -> Option<Result<T, UnreadableObject>>,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<T>>, GatewayError> {
        let query = TimeRangeQuery { from: range.from, to: range.to, after: after.map(str::to_owned) };
        let response = self.send_signed(self.http.get(format!("{}/{name}", self.lists)).query(&query)).await?;
        match response.status() {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => Ok(None),
            _ => Ok(Some(read_response::<ListPage<Value>>(response).await?.read_items(read))),
        }
    }

    /// Sends `request`. If AWS IAM protects the gateway, first signs it for IAM.
    async fn execute(&self, mut request: reqwest::Request) -> Result<Response, GatewayError> {
        if let Some((signer, clock)) = &self.iam {
            signer.sign(&mut request, clock.now()).await?;
        }
        self.http.execute(request).await.map_err(unknown_outcome_error)
    }

    /// Signs `request` if this client has keys, sends it, and reads the JSON body of the response. If the gateway
    /// refuses the signature and the keys have been replaced, sends the request again with the new keys: the refused
    /// request has changed nothing.
    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, GatewayError> {
        read_response(self.send_signed(request).await?).await
    }

    /// Sends `request` like [`Self::send`], but returns the response without reading it. Its status may be an error.
    async fn send_signed(&self, request: RequestBuilder) -> Result<Response, GatewayError> {
        let request = match &self.clock {
            Some(clock) => request.header(CLOCK_HEADER, clock.now().to_rfc3339()),
            None => request,
        };
        let request = request.build().map_err(unknown_outcome_error)?;
        let Some(RequestSigning { keys: secret, clock }) = self.signing.as_deref() else {
            return self.execute(request).await;
        };
        let keys = secret.get().await.map_err(|error| GatewayError::Unusable { reason: error.to_string() })?;
        let again = request.try_clone();
        let response = self.execute_signed(request, &keys, clock.as_ref()).await?;
        let (StatusCode::UNAUTHORIZED, Some(again)) = (response.status(), again) else { return Ok(response) };
        match secret.get_replacement(&keys).await {
            Some(newer) => self.execute_signed(again, &newer, clock.as_ref()).await,
            None => Ok(response),
        }
    }

    /// Sends `request`, signed with `keys` at the time of `clock`.
    async fn execute_signed(
        &self,
        mut request: reqwest::Request,
        keys: &GatewaySigningKeys,
        clock: &dyn Clock,
    ) -> Result<Response, GatewayError> {
        sign_request(&mut request, keys, clock.now(), clock);
        self.execute(request).await
    }

    /// Sends a POST request with the JSON `body` to `path`, such as [`PAYMENTS_PATH`]. Returns the status and the JSON
    /// of the response, for the conformance check: `body` may have fields that no type has.
    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Result<(StatusCode, Value), GatewayError> {
        read_json_response(self.send_signed(self.http.post(self.url_of(path)).json(body)).await?).await
    }

    /// Sends a GET request with the parameters `query` to `path`. Returns the status and the JSON of the response.
    pub(crate) async fn get_json(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(StatusCode, Value), GatewayError> {
        read_json_response(self.send_signed(self.http.get(self.url_of(path)).query(query)).await?).await
    }

    /// Returns the URL of `path` at this gateway.
    fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.account.strip_suffix(ACCOUNT_PATH).unwrap_or(&self.account))
    }

    /// Sends two requests that `forgery` describes, one with and one without a body. The requests change nothing, even
    /// if the gateway accepts them. Returns the statuses of the responses; `None` if this client has no keys.
    pub(crate) async fn send_forged(&self, forgery: Forgery) -> Result<Option<[StatusCode; 2]>, GatewayError> {
        let Some(RequestSigning { keys: secret, clock }) = self.signing.as_deref() else { return Ok(None) };
        let keys = secret.get().await.map_err(|error| GatewayError::Unusable { reason: error.to_string() })?;
        let refund = json!({"refund": clock.ulid(), "payment": "no_such_payment", "amount": 1, "currency": "EUR"});
        let mut statuses = [StatusCode::OK; 2];
        let requests = [self.http.get(&self.account), self.http.post(&self.refunds).json(&refund)];
        for (status, request) in statuses.iter_mut().zip(requests) {
            let mut request = request.build().map_err(unknown_outcome_error)?;
            forgery.forge_request(&mut request, &keys, clock.as_ref());
            *status = self.execute(request).await?.status();
        }
        Ok(Some(statuses))
    }
}

/// A request that a gateway must refuse, because its signature is missing or not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forgery {
    Unsigned,
    /// Signed with another key.
    WrongKey,
    /// Signed six minutes ago.
    Old,
    // In the next three variants, the signature is valid, but was made for another method, path or body.
    OtherMethod,
    OtherPath,
    OtherBody,
}

/// Writes the end of a text that begins with "a request", such as "a request without a signature".
impl fmt::Display for Forgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsigned => "without a signature",
            Self::WrongKey => "with the signature of another key",
            Self::Old => "that was signed six minutes ago",
            Self::OtherMethod => "with the signature of another method",
            Self::OtherPath => "with the signature of another path and query",
            Self::OtherBody => "with the signature of another body",
        })
    }
}

impl Forgery {
    /// Gives `request` the wrong signature of this forgery, or no signature. `keys` are the keys that the gateway
    /// accepts.
    fn forge_request(self, request: &mut reqwest::Request, keys: &GatewaySigningKeys, clock: &dyn Clock) {
        let now = clock.now();
        let mut signed = request.try_clone().expect("the body is held in memory");
        match self {
            Self::Unsigned => return,
            Self::WrongKey => {
                return sign_request(
                    request,
                    &GatewaySigningKeys::from(SigningSecret::new(clock.random_secret())),
                    now,
                    clock,
                );
            }
            Self::Old => return sign_request(request, keys, now - TimeDelta::minutes(6), clock),
            Self::OtherMethod => *signed.method_mut() = Method::PUT,
            Self::OtherPath => signed.url_mut().set_query(Some("other")),
            Self::OtherBody => *signed.body_mut() = Some("{}".into()),
        }
        sign_request(&mut signed, keys, now, clock);
        *request.headers_mut() = signed.headers().clone();
    }
}

/// Signs `request` with `keys` at the time `at`: adds the headers that contain the signatures. `clock` creates the
/// unique id of the request.
fn sign_request(request: &mut reqwest::Request, keys: &GatewaySigningKeys, at: DateTime<Utc>, clock: &dyn Clock) {
    let url = request.url();
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
    let signed = SignedRequestParts { method: request.method().as_str(), target: &target, body };
    let headers = keys.sign(&signed, &clock.ulid().to_string(), at);
    for (name, value) in headers {
        request.headers_mut().insert(name, value.parse().expect("the characters are those of base64 and numbers"));
    }
}

/// Reads a payment from `object`. Returns `None` if the object names no subscription: another program made the payment.
/// An object with an unreadable subscription may be a payment of this software. If it were ignored, a look-up could find
/// no payment, and the month would be charged again.
fn read_own_payment(object: &Value) -> Option<Result<Payment, UnreadableObject>> {
    object.get("subscription").filter(|subscription| !subscription.is_null())?;
    let table = || object["table"].as_str()?.parse().ok();
    let unreadable = |error| UnreadableObject { table: table(), ..UnreadableObject::new(object, None, error) };
    Some(Payment::deserialize(object).map_err(unreadable))
}

/// Reads a pair of a payment's id and a refund from `pair`. Returns `None` if the pair names no payment.
fn read_listed_refund(pair: &Value) -> Option<Result<(GatewayToken, GatewayRefund), UnreadableObject>> {
    let payment: GatewayToken = pair[0].as_str()?.parse().ok()?;
    Some(match GatewayRefund::deserialize(&pair[1]) {
        Ok(refund) => Ok((payment, refund)),
        Err(error) => Err(UnreadableObject::new(&pair[1], Some(payment), error)),
    })
}

/// Reads a dispute from `object`. Returns `None` if the dispute names no payment.
fn read_listed_dispute(object: &Value) -> Option<Result<GatewayDispute, UnreadableObject>> {
    let payment: GatewayToken = object["payment"].as_str()?.parse().ok()?;
    Some(GatewayDispute::deserialize(object).map_err(|error| UnreadableObject::new(object, Some(payment), error)))
}

/// Returns the error for a request that got no readable response, so that its outcome is unknown.
fn unknown_outcome_error(error: reqwest::Error) -> GatewayError {
    GatewayError::Unknown { reason: error.without_url().to_string() }
}

/// Reads the JSON body of a successful response. Returns a [`GatewayError`] if the response has another status.
async fn read_response<T: DeserializeOwned>(response: Response) -> Result<T, GatewayError> {
    match response.status() {
        status if status.is_success() => response.json().await.map_err(unknown_outcome_error),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(GatewayError::Unusable { reason: status.to_string() })
        }
        StatusCode::TOO_MANY_REQUESTS => Err(GatewayError::Throttled { retry_after: retry_after_header(&response) }),
        status => Err(GatewayError::Unknown { reason: status.to_string() }),
    }
}

/// Returns the status and the JSON body of a response. The JSON is `null` if the response is an error or its body is not
/// JSON.
async fn read_json_response(response: Response) -> Result<(StatusCode, Value), GatewayError> {
    match response.status() {
        status if status.is_success() => Ok((status, response.json().await.unwrap_or_default())),
        StatusCode::TOO_MANY_REQUESTS => Err(GatewayError::Throttled { retry_after: retry_after_header(&response) }),
        status => Ok((status, Value::Null)),
    }
}

/// Returns the time that the gateway asks us to wait, from the header `Retry-After` in whole seconds. Returns `None` if
/// the header is missing or contains a date, which is the other format that HTTP allows.
fn retry_after_header(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[async_trait]
impl PaymentGateway for HttpGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.send(self.http.get(&self.account)).await
    }

    async fn amount_rules(&self) -> Result<AmountRules, GatewayError> {
        self.send::<AccountWithAmountRules>(self.http.get(&self.account)).await?.amount_rules()
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let response = self.send(self.http.post(&self.payments).json(request)).await;
        response.and_then(ChargeResponse::from_json).unwrap_or_else(ChargeResponse::from)
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let query = CustomerPaymentsQuery { customer: customer.clone(), since };
        let listed: Vec<Value> = self.send(self.http.get(&self.payments).query(&query)).await?;
        ListPage::last(listed).read_items(read_own_payment).into_complete_items()
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let response = self.send_signed(self.http.get(format!("{}/{id}", self.payments))).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        read_response(response).await.map(Some)
    }
}

#[async_trait]
impl CheckoutPages for HttpGateway {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        self.send(self.http.post(&self.pages).json(request)).await
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        self.send(self.http.get(format!("{}/{id}", self.pages))).await
    }
}

#[async_trait]
impl Refunds for HttpGateway {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let result = self.send(self.http.post(&self.refunds).json(request)).await;
        result.unwrap_or_else(RefundResponse::Unknown)
    }

    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        let listed: Vec<Value> = self.send(self.http.get(format!("{}/{payment}", self.refunds))).await?;
        let pairs = listed.into_iter().map(|refund| json!([payment, refund])).collect();
        let refunds = ListPage::last(pairs).read_items(read_listed_refund).into_complete_items()?;
        Ok(refunds.into_iter().map(|(_, refund)| refund).collect())
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        self.list_range("payments", read_own_payment, range, after).await
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        self.list_range("refunds", read_listed_refund, range, after).await
    }

    async fn disputes_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        self.list_range("disputes", read_listed_dispute, range, after).await
    }
}
