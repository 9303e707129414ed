//! Checkout pages: the web pages of a gateway on which customers enter their payment methods.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{GatewayError, PaymentGateway};
use billing::{AccountId, EmailAddress, GatewayToken, PaymentMethod};

/// A request for a checkout page on which a customer enters a payment method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckoutPageRequest {
    /// The id of the payment method setup. A repeated request with the same id returns the same checkout page.
    pub setup: Ulid,
    pub account: AccountId,
    pub email: EmailAddress,
    /// The gateway's customer who will own the payment method. `None` if the customer does not exist at the gateway
    /// yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<GatewayToken>,
    /// The URL to which the gateway redirects the customer from the checkout page, whether the customer entered a
    /// payment method or cancelled.
    pub return_url: String,
}

/// An open checkout page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckoutPage {
    pub id: GatewayToken,
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

/// The state of a checkout page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckoutPageState {
    /// The customer has not entered a payment method yet.
    Open,
    /// The customer entered this payment method at `given_at`. It may be charged without the customer being present.
    Complete { payment_method: PaymentMethod, given_at: DateTime<Utc> },
    /// The checkout page expired before the customer entered a payment method.
    Expired,
}

/// A payment processor that hosts checkout pages, on which customers enter their payment methods. No card data reaches
/// this software.
#[async_trait]
pub trait CheckoutPages: PaymentGateway {
    /// Opens a checkout page, or returns the checkout page that was opened before for the same payment method setup.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response. The gateway may nevertheless have opened a checkout page, which
    /// is never used and expires.
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError>;

    /// Returns the state of the checkout page `id`.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError>;
}
