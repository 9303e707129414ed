//! The page on which a customer gives a test card: of the sandbox, and of the stand-in for Stripe.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::{Environment, context};
use serde::Deserialize;
use shared::billing::GatewayToken;

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

/// The page, from which one goes on to `return_url`.
pub fn show(return_url: &str) -> Response {
    let page = Environment::new()
        .render_named_str("card_page.html", include_str!("card_page.html"), context! { cards => CARDS, return_url })
        .expect("the template's names are given");
    let headers = [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
        // Its address is all that whoever opens it needs.
        (header::REFERRER_POLICY, "no-referrer"),
    ];
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
