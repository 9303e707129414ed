//! The five kinds of requests that are measured.

use billing::{AccountId, SubscriptionId};
use chrono::{Datelike as _, NaiveDate};
use reqwest::Method;
use serde_json::{Value, json};
use ulid::Ulid;

/// The number of accounts over which a set of requests is distributed.
pub const ACCOUNTS: usize = 20;
/// The number of subscriptions that a list of an account's subscriptions contains.
pub const LISTED_SUBSCRIPTIONS: usize = 10;
/// The number of receipts that a list of an account's receipts contains. The account has two subscriptions with six
/// receipts each.
pub const LISTED_RECEIPTS: usize = 12;
/// The amount of new subscriptions, in minor units.
pub const AMOUNT: i64 = 1299;
/// The amount to which subscriptions are changed, in minor units.
pub const CHANGED_AMOUNT: i64 = 1499;
/// The product name to which subscriptions are changed.
pub const CHANGED_NAME: &str = "Gold plan, yearly price";
/// The payment day of new subscriptions.
pub const PAYMENT_DAY: i64 = 15;

/// A kind of request that the benchmark measures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RequestKind {
    /// A request that creates a subscription without a charge.
    Create,
    /// A request that lists the subscriptions of an account.
    List,
    /// A request that changes a subscription, with the header `If-Match`.
    Change,
    /// A request that lists the receipts of an account.
    Receipts,
    /// A request that creates a subscription, and charges its first payment.
    SignUp,
}

impl RequestKind {
    pub const ALL: [Self; 5] = [Self::Create, Self::List, Self::Change, Self::Receipts, Self::SignUp];

    /// Returns the description of the request in the table of results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create a subscription",
            Self::List => "list 10 subscriptions",
            Self::Change => "change with If-Match",
            Self::Receipts => "list 12 receipts",
            Self::SignUp => "sign up with charge_now",
        }
    }

    /// Returns the number of measured requests of this kind. Fewer sign-ups are measured, because a sign-up takes
    /// several times as long as any other request.
    pub fn measured_request_count(self, requests: usize) -> usize {
        if self == Self::SignUp { requests.div_ceil(3) } else { requests }
    }
}

/// A request to a server.
#[derive(Clone, Debug)]
pub struct BenchmarkRequest {
    pub method: Method,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<String>,
}

impl BenchmarkRequest {
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), headers: Vec::new(), body: None }
    }

    /// Creates a request with a body. The body is sent as JSON.
    pub fn with_body(method: Method, path: impl Into<String>, body: impl ToString) -> Self {
        let request = Self { method, path: path.into(), headers: Vec::new(), body: Some(body.to_string()) };
        request.with_header("content-type", "application/json")
    }

    pub fn with_header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

/// The requests of one measurement, including the warm-up requests before the measurement.
#[derive(Clone, Copy, Debug)]
pub struct BenchmarkLoad {
    pub kind: RequestKind,
    /// The number of requests that are in progress at the same time.
    pub in_flight: usize,
    /// The number of requests, including the warm-up requests.
    pub count: usize,
}

impl BenchmarkLoad {
    /// Returns the name of this set, which is unique among the sets of one server.
    pub fn name(&self) -> String {
        format!("{:?}-{}", self.kind, self.in_flight)
    }

    /// Returns the accounts that the requests use. The accounts are created before the measurement.
    pub fn account_ids(&self) -> Vec<AccountId> {
        (0..ACCOUNTS).map(|n| self.account_id(n)).collect()
    }

    /// Returns the account of the request or subscription with the number `n`.
    pub fn account_id(&self, n: usize) -> AccountId {
        format!("{}-{:02}", self.name(), n % ACCOUNTS).parse().expect("a valid account id")
    }

    /// Returns the id of the `n`th subscription that exists before the requests are sent.
    pub fn subscription_id(&self, n: usize) -> SubscriptionId {
        let number = u128::try_from(n + 100_000 * (self.in_flight + 1_000 * self.kind as usize)).unwrap_or_default();
        SubscriptionId::new(Ulid::from_parts(1_000_000, number))
    }

    /// Returns the requests, in order. `today` is the current date.
    pub fn requests(&self, today: NaiveDate) -> Vec<BenchmarkRequest> {
        (0..self.count).map(|n| self.request(n, today)).collect()
    }

    /// Returns the request with the index `n`, counted from 0.
    fn request(&self, n: usize, today: NaiveDate) -> BenchmarkRequest {
        let subscriptions = format!("/accounts/{}/subscriptions", self.account_id(n));
        match self.kind {
            RequestKind::Create => BenchmarkRequest::with_body(Method::POST, subscriptions, new_subscription_body(n)),
            RequestKind::List => BenchmarkRequest::get(subscriptions),
            RequestKind::Receipts => BenchmarkRequest::get(format!("/accounts/{}/receipts", self.account_id(n))),
            RequestKind::Change => {
                let body = json!({ "amount": CHANGED_AMOUNT, "product_name": CHANGED_NAME });
                let path = format!("{subscriptions}/{}", self.subscription_id(n));
                BenchmarkRequest::with_body(Method::PATCH, path, body).with_header("if-match", "\"1\"")
            }
            RequestKind::SignUp => {
                let body = sign_up_body(n, today);
                let key = format!("order-{}-{n}", self.in_flight);
                BenchmarkRequest::with_body(Method::POST, subscriptions, body).with_header("idempotency-key", key)
            }
        }
    }
}

/// Returns the body that creates the subscription number `n`.
pub fn new_subscription_body(n: usize) -> Value {
    json!({
        "sku": "gold",
        "product_name": "Gold plan",
        "payment_day": PAYMENT_DAY,
        "amount": AMOUNT,
        "currency": "EUR",
        "payment_method": { "customer": format!("cus_{n}"), "payment_method": "pm_card_visa" },
    })
}

/// Returns the body of the sign-up number `n`, whose first payment is charged on `today`.
pub fn sign_up_body(n: usize, today: NaiveDate) -> Value {
    let mut body = new_subscription_body(n);
    body["payment_day"] = today.day().into();
    body["first_payment_date"] = today.to_string().into();
    body["charge_now"] = true.into();
    body
}
