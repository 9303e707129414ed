//! The records that are written together with a subscription: receipts, failed attempts, waived months and findings. A
//! finding is a successful payment without a receipt.

use chrono::NaiveDate;

use crate::change::ItemChange;
use crate::json::{read_bool_attribute, read_number_attribute, read_text_attribute};

/// The records of one write to a subscription.
#[derive(Clone, Debug, Default)]
pub struct WrittenRecords {
    pub receipts: Vec<RecordedReceipt>,
    pub failed_attempts: Vec<RecordedFailedAttempt>,
    /// The due date and the reason of each waived month.
    pub waived: Vec<(NaiveDate, String)>,
    /// The successful payments without a receipt, which an operator must resolve.
    pub findings: Vec<RecordedFinding>,
    /// The keys of the records that cannot be read.
    pub unreadable: Vec<String>,
}

/// A receipt that is written together with a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedReceipt {
    pub due: NaiveDate,
    pub payment: String,
    pub amount: i64,
    pub currency: String,
}

/// A finding (a successful payment without a receipt) that is written for a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedFinding {
    pub due: NaiveDate,
    pub payment: String,
    pub reason: String,
}

/// The record of an attempt that did not succeed. It is written together with a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedFailedAttempt {
    pub due: NaiveDate,
    /// The number of the attempt.
    pub no: u32,
    pub outcome: String,
    /// The gateway's code for the failure.
    pub code: String,
    /// Whether the attempt was declined for good, so that the same card must not be charged again.
    pub is_hard: bool,
    pub amount: Option<i64>,
}

impl WrittenRecords {
    /// Reads the records in `written`. All these changes must belong to one subscription.
    pub fn from_changes(written: &[&ItemChange]) -> Self {
        let mut records = Self::default();
        for change in written {
            if records.add_record(change).is_none() {
                records.unreadable.push(change.key.1.clone());
            }
        }
        records
    }

    /// Returns whether no record was written.
    pub fn is_empty(&self) -> bool {
        self.has_only_waivers() && self.waived.is_empty()
    }

    /// Returns whether no record was written, apart from waived months.
    pub fn has_only_waivers(&self) -> bool {
        self.receipts.is_empty()
            && self.failed_attempts.is_empty()
            && self.findings.is_empty()
            && self.unreadable.is_empty()
    }

    /// Returns whether findings and no other records were written.
    pub fn has_only_findings(&self) -> bool {
        let Self { receipts, failed_attempts, waived, findings, unreadable } = self;
        !findings.is_empty()
            && receipts.is_empty()
            && failed_attempts.is_empty()
            && waived.is_empty()
            && unreadable.is_empty()
    }

    /// Adds the record in `change`; returns `None` if the record cannot be read. The subscription itself is not a
    /// record.
    fn add_record(&mut self, change: &ItemChange) -> Option<()> {
        let parts: Vec<&str> = change.key.1.split('#').collect();
        let kind = *parts.first()?;
        if kind == "SUB" {
            return Some(());
        }
        let (due, item) = (parts.get(1)?.parse().ok()?, change.after.as_ref()?);
        match kind {
            "REC" => self.receipts.push(RecordedReceipt {
                due,
                payment: read_text_attribute(item, "GatewayPaymentId")?.to_owned(),
                amount: read_number_attribute(item, "ProcessedAmount")?,
                currency: read_text_attribute(item, "Currency")?.to_owned(),
            }),
            "ATT" => self.failed_attempts.push(RecordedFailedAttempt {
                due,
                no: parts.get(4)?.parse().ok()?,
                outcome: read_text_attribute(item, "Outcome")?.to_owned(),
                code: read_text_attribute(item, "Code").unwrap_or_default().to_owned(),
                is_hard: read_bool_attribute(item, "Hard")?,
                amount: read_number_attribute(item, "Amount"),
            }),
            "WAV" => self.waived.push((due, read_text_attribute(item, "Reason")?.to_owned())),
            "FND" => self.findings.push(RecordedFinding {
                due,
                payment: read_text_attribute(item, "GatewayPaymentId")?.to_owned(),
                reason: read_text_attribute(item, "Reason")?.to_owned(),
            }),
            _ => return None,
        }
        Some(())
    }
}
