//! The stored payments and checkout pages of a sandbox.

use chrono::{DateTime, Utc};
use gateways::{ChargeRequest, CheckoutPage};
use serde::{Deserialize, Serialize};

use crate::test_payment_methods;
use billing::{GatewayToken, Payment, PaymentStatus};

/// A checkout page as it was opened, before the customer entered a payment method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenedCheckoutPage {
    pub id: GatewayToken,
    /// The customer who will own the payment method.
    pub customer: GatewayToken,
    pub return_url: String,
    pub expires_at: DateTime<Utc>,
}

impl OpenedCheckoutPage {
    /// Converts this checkout page to the wire format of the gateway. The URL of the checkout page begins with the base
    /// URL `url`.
    pub fn into_checkout_page(self, url: &str) -> CheckoutPage {
        CheckoutPage { url: format!("{url}/pages/{}", self.id), id: self.id, expires_at: self.expires_at }
    }
}

/// A payment method that a customer entered on a checkout page, and the time at which it was entered.
pub type EnteredPaymentMethod = (GatewayToken, DateTime<Utc>);

/// A payment as it was made: the request that made the payment, and the status in the first response.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LedgerPayment {
    pub id: GatewayToken,
    #[serde(flatten)]
    pub request: ChargeRequest,
    /// The status in the first response.
    pub status: PaymentStatus,
    pub created_at: DateTime<Utc>,
}

impl LedgerPayment {
    /// Converts this payment to the wire format of the gateway, with `status` as its current status.
    pub fn payment(&self, status: PaymentStatus) -> Payment {
        Payment {
            id: self.id.clone(),
            table: self.request.table,
            account: self.request.account.clone(),
            subscription: self.request.subscription,
            due_on: self.request.due_on,
            attempt_no: self.request.attempt_no,
            amount: self.request.amount,
            status,
            card: test_payment_methods::card_of_payment_method(&self.request.payment_method.payment_method)
                .map(Box::new),
            created_at: self.created_at,
        }
    }
}
