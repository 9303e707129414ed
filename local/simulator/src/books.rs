//! The books that the checker and the oracle read: all items of the table, and the gateway's ledger.

use std::collections::HashMap;

use billing::PaymentStatus;
use chrono::{DateTime, NaiveDate, Utc};
use gateways::Entry;
use store::{Table, TableError};

use crate::stored::{
    Attributes, StoredAttempt, StoredKey, StoredReceipt, StoredRun, StoredSubscription, StoredWaiver, Who, text,
};

/// A successful charge in the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerCharge {
    pub payment: String,
    pub who: Who,
    pub due: NaiveDate,
    pub amount: i64,
    pub currency: String,
    pub at: DateTime<Utc>,
}

/// Table and ledger.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Books {
    pub subscriptions: Vec<StoredSubscription>,
    pub receipts: Vec<StoredReceipt>,
    pub attempts: Vec<StoredAttempt>,
    pub waivers: Vec<StoredWaiver>,
    pub runs: Vec<StoredRun>,
    pub charges: Vec<LedgerCharge>,
    /// Payments that were declined, and that are still under way.
    pub declined: usize,
    pub processing: usize,
    /// Keys of the items that could not be read.
    pub unreadable: Vec<String>,
}

impl Books {
    /// Reads `table` whole and `ledger` from its first line.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn read(table: &Table, ledger: &[Entry]) -> Result<Self, TableError> {
        let mut books = Self::default();
        for item in table.scan().await? {
            if books.enter(&item).is_none() {
                let part = |name| text(&item, name).unwrap_or_default();
                books.unreadable.push(format!("{} {}", part("PK"), part("SK")));
            }
        }
        books.enter_ledger(ledger);
        Ok(books)
    }

    /// Enters one item; `None` if it is not as it should be.
    fn enter(&mut self, item: &Attributes) -> Option<()> {
        let key = StoredKey::of(item)?;
        match key.kind()? {
            "SUB" => self.subscriptions.push(StoredSubscription::read(&key, item)?),
            "REC" => self.receipts.push(StoredReceipt::read(&key, item)?),
            "WAV" => self.waivers.push(StoredWaiver::read(&key, item)?),
            "ATT" => self.attempts.push(StoredAttempt::read(&key, item)?),
            "SHARD" => self.runs.push(StoredRun::read(&key, item)),
            // What was charged on a day, which ceilings are held against.
            "CHARGED" => {}
            "ACC" => key.account().map(|_| ())?,
            _ if key.is_of("CTL") || key.is_of("IDEM") => {}
            _ => return None,
        }
        Some(())
    }

    fn enter_ledger(&mut self, ledger: &[Entry]) {
        let mut ended = HashMap::new();
        for entry in ledger {
            if let Entry::Resolved { id, status, at } = entry {
                ended.insert(id, (status, *at));
            }
        }
        for entry in ledger {
            let Entry::Payment(made) = entry else { continue };
            let (status, at) = ended.get(&made.id).copied().unwrap_or((&made.status, made.created_at));
            match status {
                PaymentStatus::Declined(_) => self.declined += 1,
                PaymentStatus::Processing => self.processing += 1,
                PaymentStatus::Succeeded => self.charges.push(LedgerCharge {
                    payment: made.id.to_string(),
                    who: (made.request.account.to_string(), made.request.subscription.to_string()),
                    due: made.request.due_on,
                    amount: made.request.amount.minor(),
                    currency: made.request.amount.currency().to_string(),
                    at,
                }),
            }
        }
    }
}
