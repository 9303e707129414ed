//! The limits of one invocation that continues an audit.

use billing::AuditRecord;
use chrono::{DateTime, TimeDelta, Utc};

/// How long before the end of the invocation the audit stops. The requests for one account, or for one page of orders, take less
/// time.
const MARGIN: TimeDelta = TimeDelta::seconds(30);

/// When an invocation stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// When the invocation must stop, shortly before its end.
    deadline: DateTime<Utc>,
    /// The number of accounts and orders of the audit at which the part of this invocation ends.
    records: u64,
}

/// Returns the number of accounts and orders that `audit` has checked.
pub(crate) fn records_of(audit: &AuditRecord) -> u64 {
    audit.accounts.saturating_add(audit.orders)
}

impl Limits {
    /// Returns the limits of the invocation that continues `audit` with at most `records` more accounts and orders, and that ends
    /// at `end`.
    pub fn new(audit: &AuditRecord, records: u64, end: DateTime<Utc>) -> Self {
        Self { deadline: end - MARGIN, records: records_of(audit).saturating_add(records) }
    }

    /// Returns whether the invocation must stop at `now`: shortly before its end, or because it has checked its part.
    pub fn are_reached(&self, audit: &AuditRecord, now: DateTime<Utc>) -> bool {
        now > self.deadline || records_of(audit) >= self.records
    }

    /// Returns when the invocation must stop, shortly before its end.
    pub fn deadline(&self) -> DateTime<Utc> {
        self.deadline
    }
}
