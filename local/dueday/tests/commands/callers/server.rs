//! Starts the server `dueday --auth`, creates accounts and tokens, and sends requests with these tokens.

use std::path::Path;

use chrono::{DateTime, Datelike as _, Utc};
use emulator::{LOCAL_AUDIENCE, LOCAL_ISSUER, TokenIssuer};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::orders::import_places;
use crate::process::wait_for;
use crate::terminal::{dueday, output};

/// The response to a request of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    pub status: u16,
    pub content_type: String,
    /// The header `WWW-Authenticate`.
    pub challenge: Option<String>,
    pub text: String,
}

impl Response {
    /// Returns the body as JSON; null if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Returns the status code, kind and detail of the problem, such as `404 not-found there is no such account`.
    pub fn problem(&self) -> String {
        let json = self.json();
        let text = |name: &str| json[name].as_str().unwrap_or("-").replace("urn:dueday:problem:", "");
        format!("{} {} {}", self.status, text("type"), text("detail"))
    }
}

/// The id of an account, and the ids of its subscription, receipt and order.
#[derive(Clone, Debug)]
pub struct Ids {
    pub account: String,
    pub subscription: String,
    pub receipt: String,
    pub order: String,
}

/// A running `dueday --auth`, killed when dropped.
pub struct Server {
    server: crate::server::Server,
    folder: TempDir,
    client: reqwest::Client,
    /// The token of an operator with the role admin.
    pub operator: String,
}

impl Server {
    /// Starts a server on a new data folder.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = crate::server::Server::start(folder.path(), &["--auth"]);
        let operator = create_token(folder.path(), &["--role", "admin"]);
        Self { server, folder, client: reqwest::Client::new(), operator }
    }

    /// Returns the token that `dueday token` creates with `arguments`.
    pub fn token(&self, arguments: &[&str]) -> String {
        create_token(self.folder.path(), arguments)
    }

    /// Sets `setting` to `value` with `dueday settings set`.
    pub fn set_setting(&self, setting: &str, value: &str) {
        let (code, stdout, stderr) = output(dueday(self.data()).args(["settings", "set", setting, value]));
        assert_eq!(code, 0, "{stdout}{stderr}");
    }

    /// Returns the data folder.
    pub fn data(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a token with `claims`, signed with the key of the server. Adds the claims of the local issuer (`iss`,
    /// `aud`, `iat`, `exp`) that `claims` does not contain. A claim that is null in `claims` is left out.
    pub fn sign(&self, claims: &Value) -> String {
        let key = std::fs::read_to_string(self.folder.path().join("token-key.pem")).unwrap();
        sign_with(&TokenIssuer::new(&key).unwrap(), claims)
    }

    /// Sends a request. `authorization` is the value of the header `Authorization`. A body is sent as JSON.
    pub async fn send(
        &self,
        authorization: Option<&str>,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Response {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.server.api_url));
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if *method != Method::GET {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (status, content_type) = (response.status().as_u16(), header(CONTENT_TYPE).unwrap_or_default());
        let challenge = header(WWW_AUTHENTICATE);
        Response { status, content_type, challenge, text: response.text().await.unwrap() }
    }

    /// Sends a request with the token of the operator, and asserts that the request succeeds. Returns the JSON body of
    /// the response.
    pub async fn send_as_operator(&self, method: Method, path: &str, body: Value) -> Value {
        let authorization = format!("Bearer {}", self.operator);
        let body = Some(body).filter(|body| !body.is_null());
        let response = self.send(Some(&authorization), &method, path, body.as_ref()).await;
        assert!(response.status < 300, "{method} {path}: {response:?}");
        response.json()
    }

    /// Stores the items without which no order of a paid month is placed: a region, a warehouse, a product and a SKU.
    pub async fn create_sku_and_warehouse(&self) {
        import_places(tempfile::tempdir().unwrap().path(), self.data());
        let warehouse = json!({"name": "Amsterdam", "region": "eu"});
        self.send_as_operator(Method::PUT, "/warehouses/ams", warehouse).await;
        self.send_as_operator(Method::PUT, "/products/beans", json!({"name": "House Blend"})).await;
        self.send_as_operator(Method::PUT, "/skus/gold", json!({"lines": [{"product": "beans", "quantity": 1}]})).await;
    }

    /// Creates accounts, each with a subscription whose first payment is paid and has an order. Returns the ids of each
    /// account and of its items.
    pub async fn sign_up<const N: usize>(&self, accounts: [&str; N]) -> [Ids; N] {
        let today = Utc::now().date_naive();
        for account in accounts {
            let email = format!("{account}@example.com");
            self.send_as_operator(
                Method::PUT,
                &format!("/accounts/{account}"),
                json!({"email": email, "name": account}),
            )
            .await;
            let subscription = json!({
                "sku": "gold", "product_name": "Gold plan", "payment_day": today.day(), "amount": 1299, "currency": "EUR",
                "payment_method": {"customer": format!("cus_{account}"), "payment_method": "pm_card_visa"},
                "first_payment_date": today,
            });
            self.send_as_operator(Method::POST, &format!("/accounts/{account}/subscriptions"), subscription).await;
        }
        let (code, stdout, stderr) = output(dueday(self.folder.path()).args(["run", "payments"]));
        assert_eq!(code, 0, "{stdout}{stderr}");
        let mut all = Vec::new();
        for account in accounts {
            // The server places the order after it has read the event of the payment.
            let first = async |list: &str| {
                wait_for(list, async || {
                    let authorization = format!("Bearer {}", self.operator);
                    let listed = self.send(Some(&authorization), &Method::GET, &format!("/{list}"), None).await;
                    listed.json()["data"][0]["id"].as_str().map(str::to_owned)
                })
                .await
            };
            all.push(Ids {
                account: account.to_owned(),
                subscription: first(&format!("accounts/{account}/subscriptions")).await,
                receipt: first(&format!("accounts/{account}/receipts")).await,
                order: first(&format!("customers/{account}/orders")).await,
            });
        }
        all.try_into().unwrap()
    }
}

/// Returns a token with `claims`, signed by `issuer`. Adds the claims of the local issuer (`iss`, `aud`, `iat`, `exp`)
/// that `claims` does not contain. A claim that is null in `claims` is left out.
pub fn sign_with(issuer: &TokenIssuer, claims: &Value) -> String {
    let now: DateTime<Utc> = Utc::now();
    let mut all = json!({
        "iss": LOCAL_ISSUER, "aud": LOCAL_AUDIENCE, "iat": now.timestamp() - 60, "exp": now.timestamp() + 3_600,
    });
    for (name, value) in claims.as_object().unwrap() {
        all[name.as_str()] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    issuer.sign(&all)
}

/// Returns the token that `dueday token` creates with `arguments` for the data folder `folder`.
fn create_token(folder: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = output(dueday(folder).arg("token").args(arguments));
    assert_eq!(code, 0, "{stderr}");
    stdout.trim_end().to_owned()
}
