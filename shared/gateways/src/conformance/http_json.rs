//! Checks of the JSON of a gateway over HTTP that the types of the other checks cannot express: unknown fields, and
//! amounts that are not integers.

use chrono::{SecondsFormat, TimeDelta};
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::PromiseVerdict;
use super::running_check::{
    CheckResult, ConformanceCheck, FIRST_CHARGE_NO, PARTLY_REFUNDED_CHARGE_NO, UNKNOWN_FIELD_CHARGE_NO,
    broken_by_gateway_error, broken_promise, ensure_promise, unexpected_response,
};
use crate::{
    CHECKOUT_PAGES_PATH, ChargeResponse, HttpGateway, LISTS_PATH, PAYMENTS_PATH, REFUNDS_PATH, RefundResponse,
};

/// The name of a field and of a query parameter that no version of Dueday uses.
const UNKNOWN_NAME: &str = "conformance_check_unknown";

/// Returns `request` as JSON.
fn request_to_json(request: &impl Serialize) -> CheckResult<Value> {
    serde_json::to_value(request).map_err(|error| broken_promise(error.to_string()))
}

/// Returns `request` as JSON, with a field that the gateway does not know.
fn with_unknown_field(request: &impl Serialize) -> CheckResult<Value> {
    let mut json = request_to_json(request)?;
    json[UNKNOWN_NAME] = json!({"nested": [1, "2"]});
    Ok(json)
}

/// Returns the first value of a field `amount` in `json` that is not an integer.
fn find_wrong_amount(json: &Value) -> Option<&Value> {
    match json {
        Value::Array(items) => items.iter().find_map(find_wrong_amount),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match name.as_str() {
            "amount" if !value.is_i64() => Some(value),
            _ => find_wrong_amount(value),
        }),
        _ => None,
    }
}

/// Returns whether `status` means that the gateway does not offer an optional list.
fn is_missing_list(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED)
}

impl ConformanceCheck<'_> {
    /// Sends a POST request with `body` to `path`, and returns the JSON of the response.
    async fn post(&self, client: &HttpGateway, path: &str, body: &Value) -> CheckResult<Value> {
        let sent = self.repeat_if_throttled(async || client.post_json(path, body).await).await;
        let (status, json) = sent.map_err(broken_by_gateway_error)?;
        ensure_promise(status.is_success(), || format!("POST {path} got the status {status}"))?;
        Ok(json)
    }

    /// Sends a GET request with the parameters `query` to `path`, and returns the JSON of the response. Returns JSON
    /// `null` if `path` is an optional list that the gateway does not offer.
    async fn get(&self, client: &HttpGateway, path: &str, query: &[(&str, &str)]) -> CheckResult<Value> {
        let sent = self.repeat_if_throttled(async || client.get_json(path, query).await).await;
        let (status, json) = sent.map_err(broken_by_gateway_error)?;
        if path.starts_with(LISTS_PATH) && is_missing_list(status) {
            return Ok(Value::Null);
        }
        ensure_promise(status.is_success(), || format!("GET {path} got the status {status}"))?;
        Ok(json)
    }

    /// Returns the paths of all lists, each with its query parameters. The values of the parameters are `since`, a time
    /// before this check, and `now`.
    fn list_requests<'a>(
        &'a self,
        since: &'a str,
        now: &'a str,
    ) -> impl Iterator<Item = (String, Vec<(&'a str, &'a str)>)> {
        let customer = self.parameters.customer.as_str();
        let of_customer = (PAYMENTS_PATH.to_owned(), vec![("customer", customer), ("since", since)]);
        let range = move |name: &str| (format!("{LISTS_PATH}/{name}"), vec![("from", since), ("to", now)]);
        [of_customer].into_iter().chain(["payments", "refunds", "disputes"].map(range))
    }

    /// Returns a time before this check, and a time after the current time, as query parameters.
    fn list_times(&self) -> [String; 2] {
        let day = TimeDelta::days(1);
        [self.started_at - day, self.now() + day].map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }

    /// Checks that the gateway ignores unknown fields of a charge, a refund and a checkout page, and unknown query
    /// parameters of each list.
    pub async fn check_unknown_fields(&self, client: &HttpGateway) -> CheckResult {
        self.send_unknown_fields(client).await.map_err(|verdict| match verdict {
            PromiseVerdict::Broken(how) => broken_promise(format!(
                "{how}, when the request had the unknown field or query parameter {UNKNOWN_NAME}: ignore unknown \
                 names, because later versions of Dueday may add some"
            )),
            other => other,
        })
    }

    /// Sends the requests of [`Self::check_unknown_fields`].
    async fn send_unknown_fields(&self, client: &HttpGateway) -> CheckResult {
        let charge = with_unknown_field(&self.charge_request(UNKNOWN_FIELD_CHARGE_NO))?;
        let response = ChargeResponse::from_json(self.post(client, PAYMENTS_PATH, &charge).await?);
        let payment = match response.map_err(broken_by_gateway_error)? {
            ChargeResponse::Succeeded(payment) => self.record_payment(UNKNOWN_FIELD_CHARGE_NO, &payment),
            other => return Err(unexpected_response("a success", other)),
        };
        let refund = with_unknown_field(&self.refund_request(10, &payment, 501))?;
        let response = self.post(client, REFUNDS_PATH, &refund).await?;
        match serde_json::from_value(response.clone()) {
            Ok(RefundResponse::Made(made)) => self.record_refund(&made.id),
            _ => return Err(unexpected_response("a refund", response)),
        }
        let page = with_unknown_field(&self.checkout_page_request())?;
        self.post(client, CHECKOUT_PAGES_PATH, &page).await?;
        let [since, now] = self.list_times();
        for (path, mut query) in self.list_requests(&since, &now) {
            query.push((UNKNOWN_NAME, "1"));
            self.get(client, &path, &query).await?;
        }
        Ok(())
    }

    /// Checks that every amount in the responses about payments and refunds is an integer in JSON.
    pub async fn check_integer_amounts(&self, client: &HttpGateway) -> CheckResult {
        let ensure_integers = |request: &str, json: &Value| match find_wrong_amount(json) {
            Some(amount) => Err(broken_promise(format!(
                "the response to {request} has the amount {amount}: write integers in minor units, such as 1299"
            ))),
            None => Ok(()),
        };
        let charge = request_to_json(&self.charge_request(FIRST_CHARGE_NO))?;
        ensure_integers("a charge", &self.post(client, PAYMENTS_PATH, &charge).await?)?;
        let [since, now] = self.list_times();
        for (path, query) in self.list_requests(&since, &now) {
            ensure_integers(&format!("GET {path}"), &self.get(client, &path, &query).await?)?;
        }
        let paid = self.make_payment(PARTLY_REFUNDED_CHARGE_NO).await?;
        let refund = request_to_json(&self.first_refund_request(&paid))?;
        ensure_integers("a refund", &self.post(client, REFUNDS_PATH, &refund).await?)?;
        for path in [format!("{PAYMENTS_PATH}/{}", paid.id), format!("{REFUNDS_PATH}/{}", paid.id)] {
            ensure_integers(&format!("GET {path}"), &self.get(client, &path, &[]).await?)?;
        }
        Ok(())
    }
}
