//! The limits of one part of an audit.

use billing::AuditRecord;
use chrono::{DateTime, TimeDelta, Utc};

/// A part of an audit stops this long before its end. The requests for one account, or for one list page of orders, take
/// less time.
const MARGIN: TimeDelta = TimeDelta::seconds(30);

/// The limits at which a part of an audit stops.
#[derive(Clone, Copy, Debug)]
pub(super) struct NightlyLimits {
    /// The time at which the part must stop, shortly before its end.
    deadline: DateTime<Utc>,
    /// The part stops when the audit has checked this number of accounts and orders in total, in all its parts.
    records: u64,
}

/// Returns the total number of accounts and orders that `audit` has checked.
pub(super) fn count_checked_records(audit: &AuditRecord) -> u64 {
    audit.accounts.saturating_add(audit.orders)
}

impl NightlyLimits {
    /// Returns the limits of a part that ends at `end`, and that checks at most `records` more accounts and orders of
    /// `audit`.
    pub fn new(audit: &AuditRecord, records: u64, end: DateTime<Utc>) -> Self {
        Self { deadline: end - MARGIN, records: count_checked_records(audit).saturating_add(records) }
    }

    /// Returns whether the part must stop at `now`, because its deadline has passed, or because `audit` has
    /// checked as many accounts and orders as the limit allows.
    pub fn are_reached(&self, audit: &AuditRecord, now: DateTime<Utc>) -> bool {
        now > self.deadline || count_checked_records(audit) >= self.records
    }

    /// Returns the time at which the part must stop, shortly before its end.
    pub fn deadline(&self) -> DateTime<Utc> {
        self.deadline
    }
}
