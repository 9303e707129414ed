use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{Key, TableError, keys};
use super::of_record;
use billing::{Card, Currency, EmailAddress, GatewayToken, Label, Money, Receipt, Reversal, Sku};
use dynamo::{Instant, expiry};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReceiptItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    email: Option<EmailAddress>,
    #[serde(rename = "SKU")]
    sku: Sku,
    product_name: Label,
    due_date: NaiveDate,
    processed_date: Instant,
    processed_amount: i64,
    currency: Currency,
    gateway_payment_id: GatewayToken,
    gateway_customer_id: Option<GatewayToken>,
    card: Option<CardItem>,
    refunded_amount: Option<i64>,
    reversed_date: Option<Instant>,
    reversed_amount: Option<i64>,
    #[serde(rename = "TTL")]
    ttl: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CardItem {
    brand: String,
    last4: String,
}

impl From<&Card> for CardItem {
    fn from(card: &Card) -> Self {
        Self { brand: card.brand().to_owned(), last4: card.last4().to_owned() }
    }
}

impl ReceiptItem {
    pub fn new(receipt: &Receipt, kept: TimeDelta) -> Self {
        let id = receipt.id();
        let Key { pk, sk } = keys::receipt(&receipt.account, &id);
        Self {
            pk,
            sk,
            email: receipt.email.clone(),
            sku: id.sku,
            product_name: receipt.product_name.clone(),
            due_date: receipt.due_on,
            processed_date: Instant(receipt.processed_at),
            processed_amount: receipt.amount.minor(),
            currency: receipt.amount.currency(),
            gateway_payment_id: receipt.payment.clone(),
            gateway_customer_id: receipt.customer.clone(),
            card: receipt.card.as_ref().map(CardItem::from),
            refunded_amount: Some(receipt.refunded.minor()).filter(|minor| *minor != 0),
            reversed_date: receipt.reversal.map(|reversal| Instant(reversal.at)),
            reversed_amount: receipt.reversal.map(|reversal| reversal.amount.minor()),
            ttl: expiry(receipt.processed_at, kept),
        }
    }

    /// When it expires, in seconds since 1970.
    pub fn ttl(&self) -> i64 {
        self.ttl
    }

    /// Whether it is no longer shown at `now`.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.ttl <= now.timestamp()
    }
}

impl TryFrom<ReceiptItem> for Receipt {
    type Error = TableError;

    fn try_from(item: ReceiptItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        Ok(Self {
            account,
            subscription,
            sku: item.sku,
            product_name: item.product_name,
            email: item.email,
            due_on: item.due_date,
            amount: Money::new(item.processed_amount, item.currency),
            payment: item.gateway_payment_id,
            customer: item.gateway_customer_id,
            card: item.card.and_then(|card| Card::new(&card.brand, &card.last4).ok()),
            processed_at: item.processed_date.0,
            refunded: Money::new(item.refunded_amount.unwrap_or(0), item.currency),
            reversal: item
                .reversed_date
                .zip(item.reversed_amount)
                .map(|(Instant(at), minor)| Reversal { at, amount: Money::new(minor, item.currency) }),
        })
    }
}
