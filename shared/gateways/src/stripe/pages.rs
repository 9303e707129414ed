//! Stripe's pages: Checkout Sessions in setup mode ("Save payment details with Checkout" in Stripe's documentation).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{Failed, Stripe};
use crate::{GatewayError, Page, PageRequest, PageState, PaymentMethodPages};
use billing::{GatewayToken, PaymentMethod};

/// A Checkout Session as it is created.
#[derive(Debug, Deserialize)]
struct Opened {
    id: GatewayToken,
    /// Where it is open.
    #[serde(default)]
    url: Option<String>,
    /// Seconds since 1970.
    expires_at: i64,
}

/// A Checkout Session as it stands, with what was given written out.
#[derive(Debug, Deserialize)]
struct Session {
    status: Status,
    #[serde(default)]
    customer: Option<GatewayToken>,
    #[serde(default)]
    setup_intent: Option<SetupIntent>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Open,
    Complete,
    Expired,
}

#[derive(Debug, Deserialize)]
struct SetupIntent {
    #[serde(default)]
    payment_method: Option<Given>,
}

#[derive(Debug, Deserialize)]
struct Given {
    id: GatewayToken,
    /// Seconds since 1970.
    created: i64,
}

/// The parameters of a session ("Create a Checkout Session" in Stripe's API reference).
fn parameters(request: &PageRequest) -> Vec<(&'static str, String)> {
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
    async fn open(&self, request: &PageRequest, key: String) -> Result<Opened, Failed> {
        let create = self.http.post(self.at("checkout/sessions")).form(&parameters(request));
        self.send(create.header("Idempotency-Key", key)).await
    }
}

#[async_trait]
impl PaymentMethodPages for Stripe {
    async fn open_page(&self, request: &PageRequest) -> Result<Page, GatewayError> {
        let opened = self.open(request, format!("setup-{}", request.setup)).await;
        let session = match opened {
            // The customer was deleted there, or is of another gateway: the page makes a new one.
            Err(Failed::Refused(_, error)) if error.is_of("customer") && request.customer.is_some() => {
                let without = PageRequest { customer: None, ..request.clone() };
                self.open(&without, format!("setup-{}-new", request.setup)).await?
            }
            opened => opened?,
        };
        let expires_at = DateTime::<Utc>::from_timestamp(session.expires_at, 0);
        match (session.url, expires_at) {
            (Some(url), Some(expires_at)) => Ok(Page { id: session.id, url, expires_at }),
            _ => Err(GatewayError::Unknown { reason: format!("{} has no address", session.id) }),
        }
    }

    async fn page_state(&self, id: &GatewayToken) -> Result<PageState, GatewayError> {
        let read = self.http.get(self.at(&format!("checkout/sessions/{id}")));
        let session: Session = self.send(read.query(&[("expand[]", "setup_intent.payment_method")])).await?;
        let given = session.setup_intent.and_then(|intent| intent.payment_method);
        let given_at = given.as_ref().and_then(|given| DateTime::<Utc>::from_timestamp(given.created, 0));
        match (session.status, session.customer, given, given_at) {
            (Status::Open, ..) => Ok(PageState::Open),
            (Status::Expired, ..) => Ok(PageState::Expired),
            (Status::Complete, Some(customer), Some(given), Some(given_at)) => {
                let payment_method = PaymentMethod { customer, payment_method: given.id };
                Ok(PageState::Complete { payment_method, given_at })
            }
            (Status::Complete, ..) => {
                Err(GatewayError::Unknown { reason: format!("{id} does not say what was given") })
            }
        }
    }
}
