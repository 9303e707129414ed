use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::items::GatewayText;
use crate::items::subscription_of_record;
use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{Currency, Dispute, DisputeStatus, GatewayToken, Money, ReceiptId, Sku};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DisputeItem {
    dispute_id: GatewayToken,
    #[serde(rename = "SKU")]
    sku: Sku,
    due_date: chrono::NaiveDate,
    gateway_payment_id: GatewayToken,
    payment_method: GatewayToken,
    amount: i64,
    currency: Currency,
    reason: GatewayText,
    status: DisputeStatus,
    created_date: Instant,
    processed_date: Option<Instant>,
    version: u64,
}

impl Entity<PaymentsSchema> for Dispute {
    type Attributes = DisputeItem;

    fn key(&self) -> Key {
        keys::key_of_dispute(&self.account, &self.receipt, &self.id)
    }

    fn attributes(&self) -> DisputeItem {
        DisputeItem {
            dispute_id: self.id.clone(),
            sku: self.receipt.sku.clone(),
            due_date: self.receipt.due_on,
            gateway_payment_id: self.payment.clone(),
            payment_method: self.payment_method.clone(),
            amount: self.amount.minor(),
            currency: self.amount.currency(),
            reason: self.reason.as_str().into(),
            status: self.status,
            created_date: Instant(self.opened_at),
            processed_date: self.closed_at.map(Instant),
            version: self.version,
        }
    }

    fn read(key: Key, item: DisputeItem) -> Result<Self, TableError> {
        let (account, subscription) = subscription_of_record(key)?;
        Ok(Self {
            id: item.dispute_id,
            account,
            receipt: ReceiptId { due_on: item.due_date, subscription, sku: item.sku },
            payment: item.gateway_payment_id,
            payment_method: item.payment_method,
            amount: Money::new(item.amount, item.currency),
            reason: item.reason.into(),
            status: item.status,
            opened_at: item.created_date.0,
            closed_at: item.processed_date.map(|at| at.0),
            version: item.version,
        })
    }
}
