use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{AccountId, Currency, Finding, FindingReason, GatewayToken, Money, ResolvedFinding, Sku, SubscriptionId};
use dynamo::{Entity, Instant};
use dynamo::{Item, Key, TableError};

/// The attributes of a finding. Its item is stored in the partition of its account. While the finding is open, a copy
/// is stored in the list of open findings.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FindingItem {
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

impl Entity<PaymentsSchema> for Finding {
    type Attributes = FindingItem;

    fn key(&self) -> Key {
        keys::key_of_finding(self)
    }

    fn attributes(&self) -> FindingItem {
        FindingItem {
            account: self.account.clone(),
            subscription: self.subscription,
            sku: self.sku.clone(),
            due_date: self.due_on,
            gateway_payment_id: self.payment.clone(),
            amount: self.amount.minor(),
            currency: self.amount.currency(),
            reason: self.reason,
            blocks: self.blocks,
            created_date: Instant(self.found_at),
            processed_date: self.resolved.as_ref().map(|resolved| Instant(resolved.at)),
            resolution: self.resolved.as_ref().map(|resolved| resolved.reason.clone()),
            version: self.version,
        }
    }

    fn read(stored: Key, item: FindingItem) -> Result<Self, TableError> {
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
        if stored != finding.key() && stored != keys::key_of_open_finding(&finding) {
            return Err(TableError::unreadable(stored, "its key does not match its attributes"));
        }
        Ok(finding)
    }
}

/// Returns the copy of `finding` for the list of open findings.
pub fn open_finding_item(finding: &Finding) -> Item {
    let mut item = finding.to_item();
    item.extend(keys::key_of_open_finding(finding).attributes());
    item
}
