//! The setup of a payment method: a customer enters a card on a checkout page of the gateway.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use crate::records::payment::PaymentMethod;
use crate::values::ids::{AccountId, GatewayToken, SubscriptionId};

/// The setup of a payment method: the checkout page of the gateway on which a customer enters a payment method, and the
/// entered payment method.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaymentMethodSetup {
    /// The id of the setup. Everyone who knows the id can open the web page to which the customer returns, and from there
    /// the checkout page. So logs, events and the action log contain the [public name](PaymentMethodSetup::public_name).
    pub id: Ulid,
    pub account: AccountId,
    /// The gateway's identifier of the checkout page.
    pub page: GatewayToken,
    /// The URL of the checkout page.
    pub url: String,
    /// The subscriptions that will use the payment method; `None` for all subscriptions of the account that are not
    /// cancelled.
    pub subscriptions: Option<Vec<SubscriptionId>>,
    pub created_at: DateTime<Utc>,
    /// When the checkout page expires.
    pub expires_at: DateTime<Utc>,
    /// The payment method that the customer entered; `None` until the customer has entered a payment method. All of
    /// `subscriptions` get this payment method.
    pub payment_method: Option<PaymentMethod>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

impl PaymentMethodSetup {
    /// Returns the name of the setup in logs, events and the action log: `setup-` and the first 32 hexadecimal digits of the
    /// SHA-256 hash of its id. The name opens no web page.
    pub fn public_name(&self) -> String {
        let digits: String =
            Sha256::digest(self.id.to_string()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("setup-{digits}")
    }
}
