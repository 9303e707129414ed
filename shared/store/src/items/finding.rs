use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{Key, TableError, keys};
use billing::{AccountId, Currency, Finding, FindingReason, GatewayToken, Money, ResolvedFinding, Sku, SubscriptionId};
use dynamo::Instant;

/// A finding's attributes. They stand twice: in the account, and while it is open in the list of open findings.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FindingItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    account: AccountId,
    subscription: SubscriptionId,
    #[serde(rename = "SKU")]
    sku: Sku,
    due_date: NaiveDate,
    gateway_payment_id: GatewayToken,
    amount: i64,
    currency: Currency,
    reason: FindingReason,
    blocks: bool,
    created_date: Instant,
    processed_date: Option<Instant>,
    resolution: Option<String>,
    version: u64,
}

impl FindingItem {
    /// The attributes of `finding` under `key`.
    pub fn at(key: Key, finding: &Finding) -> Self {
        Self {
            pk: key.pk,
            sk: key.sk,
            account: finding.account.clone(),
            subscription: finding.subscription,
            sku: finding.sku.clone(),
            due_date: finding.due_on,
            gateway_payment_id: finding.payment.clone(),
            amount: finding.amount.minor(),
            currency: finding.amount.currency(),
            reason: finding.reason,
            blocks: finding.blocks,
            created_date: Instant(finding.found_at),
            processed_date: finding.resolved.as_ref().map(|resolved| Instant(resolved.at)),
            resolution: finding.resolved.as_ref().map(|resolved| resolved.reason.clone()),
            version: finding.version,
        }
    }
}

impl TryFrom<FindingItem> for Finding {
    type Error = TableError;

    fn try_from(item: FindingItem) -> Result<Self, TableError> {
        let resolved = item.processed_date.zip(item.resolution);
        let finding = Self {
            account: item.account,
            subscription: item.subscription,
            sku: item.sku,
            due_on: item.due_date,
            payment: item.gateway_payment_id,
            amount: Money::new(item.amount, item.currency),
            reason: item.reason,
            blocks: item.blocks,
            found_at: item.created_date.0,
            resolved: resolved.map(|(at, reason)| ResolvedFinding { at: at.0, reason }),
            version: item.version,
        };
        let (key, stored) = (keys::finding(&finding), Key { pk: item.pk, sk: item.sk });
        if stored != key && stored != keys::open_finding(&finding) {
            return Err(TableError::unreadable(stored, "its key is not that of its payment"));
        }
        Ok(finding)
    }
}
