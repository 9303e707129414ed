use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::items::{GatewayText, subscription_of_record};
use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{Currency, GatewayToken, Money, ReceiptId, Refund, RefundStatus, RequestedAmount, Sku};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RefundItem {
    refund_id: Ulid,
    #[serde(rename = "SKU")]
    sku: Sku,
    due_date: chrono::NaiveDate,
    gateway_payment_id: GatewayToken,
    amount: i64,
    currency: Currency,
    requested_amount: Option<RequestedAmount>,
    status: RefundStatus,
    gateway_refund_id: Option<GatewayToken>,
    code: Option<GatewayText>,
    created_date: Instant,
    lease: Instant,
    processed_date: Option<Instant>,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Entity<PaymentsSchema> for Refund {
    type Attributes = RefundItem;

    fn key(&self) -> Key {
        keys::key_of_refund(&self.account, &self.receipt, self.id)
    }

    fn attributes(&self) -> RefundItem {
        RefundItem {
            refund_id: self.id,
            sku: self.receipt.sku.clone(),
            due_date: self.receipt.due_on,
            gateway_payment_id: self.payment.clone(),
            amount: self.amount.minor(),
            currency: self.amount.currency(),
            requested_amount: self.requested,
            status: self.status,
            gateway_refund_id: self.gateway_refund.clone(),
            code: self.code.as_deref().map(GatewayText::from),
            created_date: Instant(self.created_at),
            lease: Instant(self.leased_until),
            processed_date: self.settled_at.map(Instant),
            version: self.version,
            ttl: self.expires,
        }
    }

    fn read(key: Key, item: RefundItem) -> Result<Self, TableError> {
        let (account, subscription) = subscription_of_record(key)?;
        Ok(Self {
            id: item.refund_id,
            account,
            receipt: ReceiptId { due_on: item.due_date, subscription, sku: item.sku },
            payment: item.gateway_payment_id,
            amount: Money::new(item.amount, item.currency),
            requested: item.requested_amount,
            status: item.status,
            gateway_refund: item.gateway_refund_id,
            code: item.code.map(String::from),
            created_at: item.created_date.0,
            leased_until: item.lease.0,
            settled_at: item.processed_date.map(|at| at.0),
            expires: item.ttl,
            version: item.version,
        })
    }
}
