//! Stripe's checkout pages: Checkout Sessions in setup mode ("Save payment details with Checkout" in Stripe's
//! documentation).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{RequestFailure, Stripe};
use crate::{CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayError};
use billing::{GatewayToken, PaymentMethod};

/// A Checkout Session, in the response that creates it.
#[derive(Debug, Deserialize)]
struct CreatedSession {
    id: GatewayToken,
    /// The URL of the checkout page.
    #[serde(default)]
    url: Option<String>,
    /// The time at which the Checkout Session expires, in seconds since 1970.
    expires_at: i64,
}

/// A Checkout Session with its current status and, expanded, the payment method that the customer entered.
#[derive(Debug, Deserialize)]
struct EnteredSession {
    /// `None` if Stripe returns no status (stripe-node, `types/Checkout/Sessions.d.ts`: it can be `null`).
    #[serde(default)]
    status: Option<SessionStatus>,
    #[serde(default)]
    customer: Option<GatewayToken>,
    #[serde(default)]
    setup_intent: Option<SetupIntent>,
}

/// The status of a Checkout Session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SessionStatus {
    Open,
    Complete,
    Expired,
}

/// The object of a Checkout Session that contains the entered payment method.
#[derive(Debug, Deserialize)]
struct SetupIntent {
    #[serde(default)]
    payment_method: Option<SetupPaymentMethod>,
}

/// The payment method that the customer entered on the checkout page.
#[derive(Debug, Deserialize)]
struct SetupPaymentMethod {
    id: GatewayToken,
    /// The time at which the payment method was created, in seconds since 1970.
    created: i64,
}

/// Returns the parameters of a new Checkout Session ("Create a Checkout Session" in Stripe's API reference).
fn session_parameters(request: &CheckoutPageRequest) -> Vec<(&'static str, String)> {
    let mut parameters = vec![
        ("mode", "setup".to_owned()),
        ("payment_method_types[0]", "card".to_owned()),
        ("success_url", request.return_url.clone()),
        ("cancel_url", request.return_url.clone()),
        ("client_reference_id", request.account.to_string()),
        ("metadata[dueday_account]", request.account.to_string()),
        ("metadata[dueday_setup]", request.setup.to_string()),
    ];
    parameters.extend(match &request.customer {
        Some(customer) => vec![("customer", customer.to_string())],
        None => vec![("customer_creation", "always".to_owned()), ("customer_email", request.email.as_str().to_owned())],
    });
    parameters
}

impl Stripe {
    /// Creates a Checkout Session with the idempotency key `key`.
    async fn create_session(
        &self,
        request: &CheckoutPageRequest,
        key: String,
    ) -> Result<CreatedSession, RequestFailure> {
        let create = self.http.post(self.api_url("checkout/sessions")).form(&session_parameters(request));
        self.send(create.header("Idempotency-Key", key)).await
    }
}

#[async_trait]
impl CheckoutPages for Stripe {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        let created = self.create_session(request, format!("setup-{}", request.setup)).await;
        let session = match created {
            // Stripe does not know the customer: it was deleted, or is the customer of another gateway. Send the
            // request again without a customer, so that the Checkout Session creates a new customer.
            Err(RequestFailure::Refused(_, error)) if error.is_missing("customer") && request.customer.is_some() => {
                let without_customer = CheckoutPageRequest { customer: None, ..request.clone() };
                self.create_session(&without_customer, format!("setup-{}-new", request.setup)).await?
            }
            created => created?,
        };
        let expires_at = DateTime::<Utc>::from_timestamp(session.expires_at, 0);
        match (session.url, expires_at) {
            (Some(url), Some(expires_at)) => Ok(CheckoutPage { id: session.id, url, expires_at }),
            _ => Err(GatewayError::Unknown {
                reason: format!("the Checkout EnteredSession {} has no URL or no valid expiry time", session.id),
            }),
        }
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        let read = self.http.get(self.api_url(&format!("checkout/sessions/{id}")));
        let session: EnteredSession = self.send(read.query(&[("expand[]", "setup_intent.payment_method")])).await?;
        let entered = session.setup_intent.and_then(|intent| intent.payment_method);
        let given_at = entered.as_ref().and_then(|entered| DateTime::<Utc>::from_timestamp(entered.created, 0));
        match (session.status, session.customer, entered, given_at) {
            (Some(SessionStatus::Open) | None, ..) => Ok(CheckoutPageState::Open),
            (Some(SessionStatus::Expired), ..) => Ok(CheckoutPageState::Expired),
            (Some(SessionStatus::Complete), Some(customer), Some(entered), Some(given_at)) => {
                let payment_method = PaymentMethod { customer, payment_method: entered.id };
                Ok(CheckoutPageState::Complete { payment_method, given_at })
            }
            (Some(SessionStatus::Complete), ..) => Err(GatewayError::Unknown {
                reason: format!(
                    "the complete Checkout EnteredSession {id} has no customer, or no payment method with a creation time"
                ),
            }),
        }
    }
}
