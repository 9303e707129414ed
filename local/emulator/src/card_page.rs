//! The web page on which a customer gives a test card, for the sandbox and for the stand-in for Stripe.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use billing::GatewayToken;
use minijinja::{Environment, context};
use serde::Deserialize;

#[derive(Deserialize)]
struct Given {
    payment_method: GatewayToken,
}

/// The cards that it has: those that are known to both.
const CARDS: [(&str, &str); 7] = [
    ("pm_card_visa", "Visa that is charged"),
    ("pm_card_mastercard", "Mastercard that is charged"),
    ("pm_card_visa_chargeDeclinedInsufficientFunds", "Visa without enough money: it is tried again"),
    ("pm_card_visa_chargeDeclined", "Visa that is declined: it is tried again"),
    ("pm_card_visa_chargeDeclinedLostCard", "Visa that was lost: it is declined for good"),
    ("pm_card_authenticationRequired", "Visa whose bank wants the customer to confirm: it is tried again"),
    ("pm_usBankAccount_success", "Bank account, charged two days later"),
];

/// Lets the page use its own style and load nothing else, and keeps other pages from framing it.
///
/// It has no `form-action`: Chromium applies that directive to every redirect after the form as well. The form is answered with a redirect
/// to the API, which may redirect to the merchant's own page, an origin that the gateway does not know.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/// Keeps the address of the page, with which a card can be given, from all other origins. The browser still sends the page's
/// `Origin` with the form; with `no-referrer` it would send `Origin: null`, which the guard refuses.
const REFERRER_POLICY: &str = "same-origin";

/// Returns the page. Its link back leads to `return_url`.
pub fn show(return_url: &str) -> Response {
    let page = Environment::new()
        .render_named_str("card_page.html", include_str!("card_page.html"), context! { cards => CARDS, return_url })
        .expect("the template's names are given");
    let headers =
        [(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY), (header::REFERRER_POLICY, REFERRER_POLICY)];
    (headers, Html(page)).into_response()
}

/// What was given by the form that `body` is of.
pub fn given(body: &str) -> Option<GatewayToken> {
    let uri = format!("/?{body}").parse().ok()?;
    let given = axum::extract::Query::<Given>::try_from_uri(&uri).ok()?;
    Some(given.0.payment_method)
}

/// The way back.
pub fn leave(return_url: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, return_url)]).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_lets_the_browser_send_the_origin_and_follow_redirects_to_other_origins() {
        let page = show("http://127.0.0.1:7878/back");
        let header = |name: header::HeaderName| page.headers()[name].to_str().unwrap();
        assert_eq!(header(header::REFERRER_POLICY), "same-origin");
        let policy = header(header::CONTENT_SECURITY_POLICY);
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("form-action"), "{policy}");
    }
}
