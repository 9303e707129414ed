use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use super::super::{Key, TableError, keys};
use super::of_record;
use billing::{Currency, GatewayToken, Money, ReceiptId, Refund, RefundStatus, RequestedAmount, Sku};
use dynamo::Instant;

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RefundItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
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
    code: Option<String>,
    created_date: Instant,
    lease: Instant,
    processed_date: Option<Instant>,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl From<&Refund> for RefundItem {
    fn from(refund: &Refund) -> Self {
        let Key { pk, sk } = keys::refund(&refund.account, &refund.receipt, refund.id);
        Self {
            pk,
            sk,
            refund_id: refund.id,
            sku: refund.receipt.sku.clone(),
            due_date: refund.receipt.due_on,
            gateway_payment_id: refund.payment.clone(),
            amount: refund.amount.minor(),
            currency: refund.amount.currency(),
            requested_amount: refund.requested,
            status: refund.status,
            gateway_refund_id: refund.gateway_refund.clone(),
            code: refund.code.clone(),
            created_date: Instant(refund.created_at),
            lease: Instant(refund.leased_until),
            processed_date: refund.settled_at.map(Instant),
            version: refund.version,
            ttl: refund.expires,
        }
    }
}

impl TryFrom<RefundItem> for Refund {
    type Error = TableError;

    fn try_from(item: RefundItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        Ok(Self {
            id: item.refund_id,
            account,
            receipt: ReceiptId { due_on: item.due_date, subscription, sku: item.sku },
            payment: item.gateway_payment_id,
            amount: Money::new(item.amount, item.currency),
            requested: item.requested_amount,
            status: item.status,
            gateway_refund: item.gateway_refund_id,
            code: item.code,
            created_at: item.created_date.0,
            leased_until: item.lease.0,
            settled_at: item.processed_date.map(|at| at.0),
            expires: item.ttl,
            version: item.version,
        })
    }
}
