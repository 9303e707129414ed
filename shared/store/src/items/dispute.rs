use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{Key, TableError, keys};
use super::of_record;
use billing::{Currency, Dispute, DisputeStatus, GatewayToken, Money, ReceiptId, Sku};
use dynamo::Instant;

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DisputeItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    dispute_id: GatewayToken,
    #[serde(rename = "SKU")]
    sku: Sku,
    due_date: chrono::NaiveDate,
    gateway_payment_id: GatewayToken,
    payment_method: GatewayToken,
    amount: i64,
    currency: Currency,
    reason: String,
    status: DisputeStatus,
    created_date: Instant,
    processed_date: Option<Instant>,
    version: u64,
}

impl From<&Dispute> for DisputeItem {
    fn from(dispute: &Dispute) -> Self {
        let Key { pk, sk } = keys::dispute(&dispute.account, &dispute.receipt, &dispute.id);
        Self {
            pk,
            sk,
            dispute_id: dispute.id.clone(),
            sku: dispute.receipt.sku.clone(),
            due_date: dispute.receipt.due_on,
            gateway_payment_id: dispute.payment.clone(),
            payment_method: dispute.payment_method.clone(),
            amount: dispute.amount.minor(),
            currency: dispute.amount.currency(),
            reason: dispute.reason.clone(),
            status: dispute.status,
            created_date: Instant(dispute.opened_at),
            processed_date: dispute.closed_at.map(Instant),
            version: dispute.version,
        }
    }
}

impl TryFrom<DisputeItem> for Dispute {
    type Error = TableError;

    fn try_from(item: DisputeItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        Ok(Self {
            id: item.dispute_id,
            account,
            receipt: ReceiptId { due_on: item.due_date, subscription, sku: item.sku },
            payment: item.gateway_payment_id,
            payment_method: item.payment_method,
            amount: Money::new(item.amount, item.currency),
            reason: item.reason,
            status: item.status,
            opened_at: item.created_date.0,
            closed_at: item.processed_date.map(|at| at.0),
            version: item.version,
        })
    }
}
