//! The checkout page on which a customer chooses a test card, for the sandbox and for the stand-in for Stripe.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use billing::GatewayToken;
use minijinja::{Environment, context};
use serde::Deserialize;

/// The form that the checkout page submits.
#[derive(Deserialize)]
struct CardForm {
    payment_method: GatewayToken,
}

/// The payment methods on the checkout page, with their labels. Both the sandbox and the stand-in for Stripe accept
/// these payment methods.
const TEST_CARDS: [(&str, &str); 7] = [
    ("pm_card_visa", "Visa, succeeds"),
    ("pm_card_mastercard", "Mastercard, succeeds"),
    (
        "pm_card_visa_chargeDeclinedInsufficientFunds",
        "Visa, declined for insufficient funds (soft decline, charged again later)",
    ),
    ("pm_card_visa_chargeDeclined", "Visa, declined (soft decline, charged again later)"),
    ("pm_card_visa_chargeDeclinedLostCard", "Visa, reported lost (hard decline, not charged again)"),
    ("pm_card_authenticationRequired", "Visa, the bank requires authentication (soft decline, charged again later)"),
    ("pm_usBankAccount_success", "Bank account, succeeds two days later"),
];

/// The content security policy of the checkout page: the page may use inline styles but load nothing, and no other web
/// page may embed it in a frame.
///
/// The policy has no directive `form-action`, because Chromium also applies that directive to every redirect after the
/// form. The response to the form is a redirect to the API, and the API may redirect to the merchant's own web page.
/// The gateway does not know the origin of that web page, so it could not list the origin in the directive.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/// The referrer policy of the checkout page. The policy hides the URL of the checkout page from all other origins,
/// because anyone who knows the URL can enter a card. The policy `no-referrer` would also do this, but the browser
/// would then send `Origin: null` with the form, which the guard of the local server refuses.
const REFERRER_POLICY: &str = "same-origin";

/// Returns the checkout page, with a link back to `return_url`.
pub fn render_card_page(return_url: &str) -> Response {
    let page = Environment::new()
        .render_named_str(
            "card_page.html",
            include_str!("card_page.html"),
            context! { cards => TEST_CARDS, return_url },
        )
        .expect("the template's names are given");
    let headers =
        [(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY), (header::REFERRER_POLICY, REFERRER_POLICY)];
    (headers, Html(page)).into_response()
}

/// Returns the payment method in the submitted form `body`; `None` if it is missing or invalid.
pub fn submitted_payment_method(body: &str) -> Option<GatewayToken> {
    let uri = format!("/?{body}").parse().ok()?;
    let form = axum::extract::Query::<CardForm>::try_from_uri(&uri).ok()?;
    Some(form.0.payment_method)
}

/// Returns a redirect to `return_url`.
pub fn redirect_to_return_url(return_url: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, return_url)]).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_lets_the_browser_send_the_origin_and_follow_redirects_to_other_origins() {
        let page = render_card_page("http://127.0.0.1:7878/back");
        let header = |name: header::HeaderName| page.headers()[name].to_str().unwrap();
        assert_eq!(header(header::REFERRER_POLICY), "same-origin");
        let policy = header(header::CONTENT_SECURITY_POLICY);
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("form-action"), "{policy}");
    }
}
