//! Gateways over HTTP with flaws in their JSON, for the tests of `gateway check`.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use gateways::{CHECKOUT_PAGES_PATH, LISTS_PATH, PAYMENTS_PATH, REFUNDS_PATH};
use serde_json::{Value, json};

/// A flaw in the JSON or the query parameters of a gateway, which its name describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpFlaw {
    /// Every amount in a response has a decimal point, such as `1299.0`.
    WritesAmountsAsFloats,
    WritesAmountsOfRangeListsAsFloats,
    /// Amounts in responses are decimal amounts of the major unit, such as `12.99`.
    WritesAmountsInMajorUnits,
    RefusesUnknownFieldsOfCharges,
    RefusesUnknownFieldsOfRefunds,
    RefusesUnknownFieldsOfCheckoutPages,
    RefusesUnknownParametersOfLists,
    RefusesUnknownParametersOfRangeLists,
    /// A refund in another currency refunds the same number of minor units in the currency of the payment.
    IgnoresCurrencyOfRefunds,
}

/// The fields and query parameters that a gateway with a flaw knows.
const KNOWN_NAMES: [&str; 20] = [
    "idempotency_key",
    "table",
    "account",
    "subscription",
    "sku",
    "due_on",
    "attempt_no",
    "amount",
    "currency",
    "customer",
    "payment_method",
    "refund",
    "payment",
    "setup",
    "email",
    "return_url",
    "since",
    "from",
    "to",
    "after",
];

/// Returns `routes`, the routes of a gateway without a flaw, changed by `flaw`.
pub fn with_flaw(routes: Router, flaw: HttpFlaw) -> Router {
    routes.layer(from_fn_with_state(flaw, respond_with_flaw))
}

/// Passes `request` to the gateway without a flaw, and changes the request or its response.
async fn respond_with_flaw(State(flaw): State<HttpFlaw>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut body = to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().to_owned();
    let has_unknown_field = serde_json::from_slice::<Value>(&body)
        .is_ok_and(|body| body.as_object().is_some_and(|fields| fields.keys().any(|name| !is_known(name))));
    let names = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let has_unknown_parameter = names.map(|(name, _)| name).any(|name| !is_known(name));
    let is_refused = match flaw {
        HttpFlaw::RefusesUnknownFieldsOfCharges => has_unknown_field && path == PAYMENTS_PATH,
        HttpFlaw::RefusesUnknownFieldsOfRefunds => has_unknown_field && path == REFUNDS_PATH,
        HttpFlaw::RefusesUnknownFieldsOfCheckoutPages => has_unknown_field && path == CHECKOUT_PAGES_PATH,
        HttpFlaw::RefusesUnknownParametersOfLists => has_unknown_parameter && path == PAYMENTS_PATH,
        HttpFlaw::RefusesUnknownParametersOfRangeLists => has_unknown_parameter && path.starts_with(LISTS_PATH),
        _ => false,
    };
    if is_refused {
        return (StatusCode::BAD_REQUEST, "the request contains an unknown field").into_response();
    }
    let mut requested_currency = None;
    if flaw == HttpFlaw::IgnoresCurrencyOfRefunds && path == REFUNDS_PATH && parts.method == Method::POST {
        let mut refund: Value = serde_json::from_slice(&body).unwrap();
        requested_currency = Some(std::mem::replace(&mut refund["currency"], json!("EUR")));
        body = refund.to_string().into();
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    let (mut parts, response) = next.run(Request::from_parts(parts, body.into())).await.into_parts();
    let response = to_bytes(response, usize::MAX).await.unwrap();
    let Ok(mut json) = serde_json::from_slice::<Value>(&response) else {
        return Response::from_parts(parts, response.into());
    };
    match flaw {
        HttpFlaw::WritesAmountsAsFloats => change_amounts(&mut json, 1.0),
        HttpFlaw::WritesAmountsOfRangeListsAsFloats if path.starts_with(LISTS_PATH) => change_amounts(&mut json, 1.0),
        HttpFlaw::WritesAmountsInMajorUnits => change_amounts(&mut json, 100.0),
        _ => {}
    }
    if let (Some(currency), Some(made)) = (requested_currency, json.get_mut("made")) {
        made["currency"] = currency;
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(json.to_string()))
}

/// Returns whether a gateway with a flaw knows the field or query parameter `name`.
fn is_known(name: &str) -> bool {
    KNOWN_NAMES.contains(&name)
}

/// Divides every amount in `json` by `divisor`. The result is a number with a decimal point.
fn change_amounts(json: &mut Value, divisor: f64) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| change_amounts(item, divisor)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_i64().filter(|_| name == "amount") {
                    Some(amount) => *value = json!(amount as f64 / divisor),
                    None => change_amounts(value, divisor),
                }
            }
        }
        _ => {}
    }
}
