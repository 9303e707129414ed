use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::items::subscription_of_record;
use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{Card, Currency, EmailAddress, GatewayToken, Label, Money, Receipt, Reversal, Sku};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReceiptItem {
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
    refunded_date: Option<Instant>,
    reversed_date: Option<Instant>,
    reversed_amount: Option<i64>,
    /// The time at which the receipt expires. Not serialized here: `Table::build_record_item` sets it when the receipt is
    /// written.
    #[serde(rename = "TTL", skip_serializing)]
    #[allow(dead_code)]
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

impl Entity<PaymentsSchema> for Receipt {
    type Attributes = ReceiptItem;

    fn key(&self) -> Key {
        keys::key_of_receipt(&self.account, &self.id())
    }

    fn attributes(&self) -> ReceiptItem {
        ReceiptItem {
            email: self.email.clone(),
            sku: self.sku.clone(),
            product_name: self.product_name.clone(),
            due_date: self.due_on,
            processed_date: Instant(self.processed_at),
            processed_amount: self.amount.minor(),
            currency: self.amount.currency(),
            gateway_payment_id: self.payment.clone(),
            gateway_customer_id: self.customer.clone(),
            card: self.card.as_ref().map(CardItem::from),
            refunded_amount: Some(self.refunded.minor()).filter(|minor| *minor != 0),
            refunded_date: self.refunded_at.map(Instant),
            reversed_date: self.reversal.map(|reversal| Instant(reversal.at)),
            reversed_amount: self.reversal.map(|reversal| reversal.amount.minor()),
            ttl: 0,
        }
    }

    fn read(key: Key, item: ReceiptItem) -> Result<Self, TableError> {
        let (account, subscription) = subscription_of_record(key)?;
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
            // After all its refunds have failed, a receipt still contains the date of a refund request: ignore this
            // date.
            refunded_at: item
                .refunded_date
                .filter(|_| item.refunded_amount.unwrap_or(0) > 0)
                .map(|Instant(requested_at)| requested_at),
            reversal: item
                .reversed_date
                .zip(item.reversed_amount)
                .map(|(Instant(at), minor)| Reversal { at, amount: Money::new(minor, item.currency) }),
        })
    }
}
