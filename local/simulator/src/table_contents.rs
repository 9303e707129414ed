//! The data that the checker and the tests read: all items of the table, and the gateway's ledger.

use std::collections::HashMap;

use billing::PaymentStatus;
use chrono::{DateTime, NaiveDate, Utc};
use sandbox::LedgerEntry;
use store::{Table, TableError};

use crate::stored_items::{
    Attributes, StoredAttempt, StoredKey, StoredReceipt, StoredRun, StoredSubscription, StoredWaiver, SubscriptionName,
    read_text_attribute,
};

/// A successful charge in the gateway's ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerCharge {
    /// The gateway's id of the payment.
    pub payment: String,
    pub subscription: SubscriptionName,
    pub due: NaiveDate,
    /// The charged amount in minor units.
    pub amount: i64,
    pub currency: String,
    /// The instant at which the gateway created the payment.
    pub created_at: DateTime<Utc>,
    /// The instant at which the payment succeeded.
    pub at: DateTime<Utc>,
}

/// All items of the table, and the payments in the gateway's ledger.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableContents {
    pub subscriptions: Vec<StoredSubscription>,
    pub receipts: Vec<StoredReceipt>,
    pub attempts: Vec<StoredAttempt>,
    pub waivers: Vec<StoredWaiver>,
    pub runs: Vec<StoredRun>,
    pub charges: Vec<LedgerCharge>,
    /// The number of declined payments in the gateway's ledger.
    pub declined: usize,
    /// The number of payments in the gateway's ledger that are still processing.
    pub processing: usize,
    /// The keys of the items that cannot be read: items of an unknown kind, and items with a missing or invalid
    /// attribute.
    pub unreadable: Vec<String>,
}

impl TableContents {
    /// Reads all items of `table` and all entries of `ledger`.
    ///
    /// # Errors
    /// [`TableError`] if the table cannot be read.
    pub async fn read(table: &Table, ledger: &[LedgerEntry]) -> Result<Self, TableError> {
        let mut contents = Self::default();
        for item in table.scan().await? {
            if contents.add_item(&item).is_none() {
                let part = |name| read_text_attribute(&item, name).unwrap_or_default();
                contents.unreadable.push(format!("{} {}", part("PK"), part("SK")));
            }
        }
        contents.add_ledger(ledger);
        Ok(contents)
    }

    /// Adds one item of the table to these contents. Returns `None` if the item cannot be read.
    fn add_item(&mut self, item: &Attributes) -> Option<()> {
        let key = StoredKey::from_item(item)?;
        match key.kind()? {
            "SUB" => self.subscriptions.push(StoredSubscription::from_item(&key, item)?),
            "REC" => self.receipts.push(StoredReceipt::from_item(&key, item)?),
            "WAV" => self.waivers.push(StoredWaiver::from_item(&key, item)?),
            "ATT" => self.attempts.push(StoredAttempt::from_item(&key, item)?),
            "SHARD" => self.runs.push(StoredRun::from_item(&key, item)),
            // The sum of a day's charges, which the payment batch compares with its ceilings (the daily limits on
            // charges).
            "CHARGED" => {}
            // An entry of the action log.
            "ACTION" => {}
            "ACC" => key.account().map(|_| ())?,
            _ if ["CTL", "IDEM", "CODE", "AUDIT", "AUDITS", "RECONCILED", "ERASURES"]
                .iter()
                .any(|kind| key.has_partition_kind(kind)) => {}
            _ => return None,
        }
        Some(())
    }

    /// Adds the successful payments in `ledger`, and counts its declined and processing payments.
    fn add_ledger(&mut self, ledger: &[LedgerEntry]) {
        let mut ended = HashMap::new();
        for entry in ledger {
            if let LedgerEntry::Resolved { id, status, at } = entry {
                ended.insert(id, (status, *at));
            }
        }
        for entry in ledger {
            let LedgerEntry::Payment(made) = entry else { continue };
            let (status, at) = ended.get(&made.id).copied().unwrap_or((&made.status, made.created_at));
            match status {
                PaymentStatus::Declined(_) => self.declined += 1,
                PaymentStatus::Processing => self.processing += 1,
                PaymentStatus::Succeeded => self.charges.push(LedgerCharge {
                    payment: made.id.to_string(),
                    subscription: (made.request.account.to_string(), made.request.subscription.to_string()),
                    due: made.request.due_on,
                    amount: made.request.amount.minor(),
                    currency: made.request.amount.currency().to_string(),
                    created_at: made.created_at,
                    at,
                }),
            }
        }
    }
}
