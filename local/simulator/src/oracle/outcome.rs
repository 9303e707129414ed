//! What is recorded together with a subscription: receipts, attempts that did not succeed, and months that are waived.

use chrono::NaiveDate;

use crate::change::Change;
use crate::json::{flag, number, text};

/// The records of one write.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub receipts: Vec<Receipt>,
    pub tried: Vec<Tried>,
    /// Due date and reason.
    pub waived: Vec<(NaiveDate, String)>,
    /// Payments without a receipt that a person must decide about.
    pub found: Vec<Found>,
    /// Keys of the records that cannot be read.
    pub unreadable: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub due: NaiveDate,
    pub payment: String,
    pub amount: i64,
    pub currency: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub due: NaiveDate,
    pub payment: String,
    pub reason: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tried {
    pub due: NaiveDate,
    pub no: u32,
    pub outcome: String,
    pub is_hard: bool,
    pub amount: Option<i64>,
}

impl Records {
    /// The records among `written`, all of which are one subscription's.
    pub fn of(written: &[&Change]) -> Self {
        let mut records = Self::default();
        for change in written {
            if records.enter(change).is_none() {
                records.unreadable.push(change.key.1.clone());
            }
        }
        records
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.are_waivers() && self.waived.is_empty()
    }

    /// Whether no payment was recorded.
    pub fn are_waivers(&self) -> bool {
        self.receipts.is_empty() && self.tried.is_empty() && self.found.is_empty() && self.unreadable.is_empty()
    }

    /// Whether nothing but findings was recorded.
    pub fn are_findings(&self) -> bool {
        let Self { receipts, tried, waived, found, unreadable } = self;
        !found.is_empty() && receipts.is_empty() && tried.is_empty() && waived.is_empty() && unreadable.is_empty()
    }

    fn enter(&mut self, change: &Change) -> Option<()> {
        let parts: Vec<&str> = change.key.1.split('#').collect();
        let kind = *parts.first()?;
        if kind == "SUB" {
            return Some(());
        }
        let (due, item) = (parts.get(1)?.parse().ok()?, change.after.as_ref()?);
        match kind {
            "REC" => self.receipts.push(Receipt {
                due,
                payment: text(item, "GatewayPaymentId")?.to_owned(),
                amount: number(item, "ProcessedAmount")?,
                currency: text(item, "Currency")?.to_owned(),
            }),
            "ATT" => self.tried.push(Tried {
                due,
                no: parts.get(4)?.parse().ok()?,
                outcome: text(item, "Outcome")?.to_owned(),
                is_hard: flag(item, "Hard")?,
                amount: number(item, "Amount"),
            }),
            "WAV" => self.waived.push((due, text(item, "Reason")?.to_owned())),
            "FND" => self.found.push(Found {
                due,
                payment: text(item, "GatewayPaymentId")?.to_owned(),
                reason: text(item, "Reason")?.to_owned(),
            }),
            _ => return None,
        }
        Some(())
    }
}
