//! The items of the sandbox's table, and their keys.
//!
//! | item | PK | SK |
//! |---|---|---|
//! | the gateway account | `ACCOUNT` | `ACCOUNT` |
//! | a payment with its refunds | `PAY#<payment>` | `PAYMENT` |
//! | the entry of a payment in its customer's list | `CUS#<customer>` | `PAY#<payment>` |
//! | an idempotency key | `KEY#<key>` | `KEY` |
//! | a refund, so that its id is used only once | `REF#<refund>` | `REFUND` |
//! | a checkout page | `PAGE#<page>` | `PAGE` |

use chrono::{DateTime, TimeDelta, Utc};
use dynamo::{Item, Key, TIME_TO_LIVE, expiry_timestamp, n, to_item};
use gateways::{ChargeRequest, RefundRequest};
use sandbox::{EnteredPaymentMethod, LedgerPayment, OpenedCheckoutPage};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use billing::GatewayToken;

/// How long the item of an idempotency key is stored. This is longer than the 24 hours for which the sandbox remembers
/// the key.
const KEY_RETENTION: TimeDelta = TimeDelta::hours(48);

/// Returns the key with the partition key `pk` and the sort key `sk`.
fn build_key(pk: String, sk: impl Into<String>) -> Key {
    Key { pk, sk: sk.into() }
}

/// Returns the key of the gateway account.
pub fn account_key() -> Key {
    build_key("ACCOUNT".to_owned(), "ACCOUNT")
}

/// The sort key of every payment.
pub const PAYMENT_SORT_KEY: &str = "PAYMENT";

/// Returns the key of the payment `id`.
pub fn payment_key(id: &GatewayToken) -> Key {
    build_key(format!("PAY#{id}"), PAYMENT_SORT_KEY)
}

/// Returns the partition key under which the payments of `customer` are listed.
pub fn customer_partition(customer: &GatewayToken) -> String {
    format!("CUS#{customer}")
}

/// The prefix of the sort keys of the payments in a customer's list.
pub const LISTED_PAYMENT_PREFIX: &str = "PAY#";

/// Returns the key of the item that stores the idempotency key of `request`.
pub fn idempotency_key(request: &ChargeRequest) -> Key {
    build_key(format!("KEY#{}", request.idempotency_key), "KEY")
}

/// Returns the key of the refund `id`.
pub fn refund_key(id: Ulid) -> Key {
    build_key(format!("REF#{id}"), "REFUND")
}

/// Returns the key of the checkout page `id`.
pub fn page_key(id: &GatewayToken) -> Key {
    build_key(format!("PAGE#{id}"), "PAGE")
}

/// Returns the item that contains `value` and has the key `key`.
fn build_item(key: Key, value: &impl Serialize) -> Item {
    let mut item = to_item(value);
    item.extend(key.attributes());
    item
}

/// The gateway account.
#[derive(Debug, Serialize, Deserialize)]
pub struct SandboxAccountItem {
    pub id: String,
}

impl SandboxAccountItem {
    /// Returns the attributes of the item.
    pub fn to_item(&self) -> Item {
        build_item(account_key(), self)
    }
}

/// A payment with its refunds. Refunds are only appended.
#[derive(Debug, Serialize, Deserialize)]
pub struct PaymentItem {
    #[serde(flatten)]
    pub payment: LedgerPayment,
    pub refunds: Vec<RefundRequest>,
}

impl PaymentItem {
    /// Returns the attributes of the item.
    pub fn to_item(&self) -> Item {
        build_item(payment_key(&self.payment.id), self)
    }
}

/// Returns the item of `payment` in the list of its customer.
pub fn listed_payment_item(payment: &LedgerPayment) -> Item {
    let partition = customer_partition(&payment.request.payment_method.customer);
    build_item(build_key(partition, format!("{LISTED_PAYMENT_PREFIX}{}", payment.id)), payment)
}

/// The item of an idempotency key. It contains the id of the latest payment that was made under the key.
#[derive(Debug, Serialize, Deserialize)]
pub struct IdempotencyKeyItem {
    pub payment: GatewayToken,
}

impl IdempotencyKeyItem {
    /// Returns the attributes of the item of the idempotency key of `payment`. The item contains the id of `payment`.
    pub fn item_of_charge(payment: &LedgerPayment) -> Item {
        let mut item = build_item(idempotency_key(&payment.request), &Self { payment: payment.id.clone() });
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(payment.created_at, KEY_RETENTION)));
        item
    }
}

/// Returns the item of the refund that `request` makes.
pub fn refund_item(request: &RefundRequest) -> Item {
    build_item(refund_key(request.refund), request)
}

/// A checkout page, and the payment method that the customer has entered.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageItem {
    #[serde(flatten)]
    pub opened: OpenedCheckoutPage,
    #[serde(default, rename = "PaymentMethod", skip_serializing_if = "Option::is_none")]
    pub payment_method: Option<GatewayToken>,
    #[serde(default, rename = "GivenAt", skip_serializing_if = "Option::is_none")]
    pub given_at: Option<DateTime<Utc>>,
}

impl PageItem {
    /// Returns the attributes of the item.
    pub fn to_item(&self) -> Item {
        build_item(page_key(&self.opened.id), self)
    }

    /// Returns the payment method that the customer has entered; `None` if there is none yet.
    pub fn entered_payment_method(&self) -> Option<EnteredPaymentMethod> {
        self.payment_method.clone().zip(self.given_at)
    }
}
