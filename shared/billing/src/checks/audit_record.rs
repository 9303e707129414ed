//! The records of audits: checks of all stored items against the invariants of the table.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

/// How long the record of an audit and the violations that it found are stored, counted from the start of the audit.
pub const AUDIT_RETENTION: TimeDelta = TimeDelta::days(90);

/// The maximum number of violations that are stored for one audit. The counts contain all violations.
pub const MAX_STORED_VIOLATIONS: u64 = 10_000;

/// The maximum number of characters of each text of a stored violation.
const MAX_TEXT_CHARS: usize = 500;

/// An audit of the table, running, interrupted or ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRecord {
    pub id: Ulid,
    pub started_at: DateTime<Utc>,
    /// When all items had been checked; `None` while the audit is running, or if it was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    /// The position after the last account or order that was checked, from which an interrupted audit continues. `None`
    /// before the first account, and after the end of the audit. The code that reads the accounts or orders defines the
    /// format of this text.
    pub position: Option<String>,
    /// Whether the audit also compares the table with the lists of the gateway.
    pub has_gateway_lists: bool,
    /// True if the schedule has started the audit: the audit function then continues the audit every night until it
    /// ends. False if a person has started the audit with the command: only `dueday audit --resume` continues such an
    /// audit.
    pub is_scheduled: bool,
    /// The number of accounts that were checked.
    pub accounts: u64,
    /// The number of subscriptions that were checked.
    pub subscriptions: u64,
    /// The number of orders that were checked; 0 if the audit does not check the order desk.
    pub orders: u64,
    /// The time of the earliest payment whose receipt the audit has read; `None` if the audit has read no receipt, or
    /// does not check the order desk.
    pub first_receipt_at: Option<DateTime<Utc>>,
    /// The number of violations of each invariant, by the name of the invariant.
    pub violations: BTreeMap<String, u64>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// A violation of an invariant that an audit found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditViolation {
    /// The id of the audit that found the violation.
    pub audit: Ulid,
    /// The number of the violation among all violations of the audit, from 0.
    pub number: u64,
    /// The name of the invariant.
    pub invariant: String,
    /// The key of the item, or the name of the list, that violates the invariant.
    pub key: String,
    /// The description of the violation.
    pub problem: String,
    /// When the audit started.
    pub started_at: DateTime<Utc>,
}

impl AuditRecord {
    /// Creates the record of an audit that starts at `now`.
    pub fn new(id: Ulid, has_gateway_lists: bool, now: DateTime<Utc>) -> Self {
        Self {
            id,
            started_at: now,
            ended_at: None,
            position: None,
            has_gateway_lists,
            is_scheduled: false,
            accounts: 0,
            subscriptions: 0,
            orders: 0,
            first_receipt_at: None,
            violations: BTreeMap::new(),
            version: 1,
        }
    }

    /// Returns the number of all violations.
    pub fn violation_count(&self) -> u64 {
        self.violations.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Counts a violation, and returns the violation, which the caller must store. Returns `None` if the maximum number
    /// of violations of this audit is already stored. The texts of the violation are cut to 500 characters.
    pub fn add_violation(&mut self, invariant: &str, key: &str, problem: &str) -> Option<AuditViolation> {
        let number = self.violation_count();
        let count = self.violations.entry(invariant.to_owned()).or_default();
        *count = count.saturating_add(1);
        let cut = |text: &str| text.chars().take(MAX_TEXT_CHARS).collect();
        (number < MAX_STORED_VIOLATIONS).then(|| AuditViolation {
            audit: self.id,
            number,
            invariant: invariant.to_owned(),
            key: cut(key),
            problem: cut(problem),
            started_at: self.started_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_violation_counts_all_stores_the_first_10000_and_cuts_texts() {
        let mut audit = AuditRecord::new(Ulid::nil(), false, DateTime::UNIX_EPOCH);
        let stored = audit.add_violation("indexed", "ACC#a", &"é".repeat(501)).unwrap();
        assert_eq!((stored.number, stored.problem.chars().count()), (0, 500));
        for _ in 1..10_000 {
            assert!(audit.add_violation("readable", "ACC#b", "unreadable").is_some());
        }
        assert_eq!(audit.add_violation("readable", "ACC#b", "unreadable"), None);
        assert_eq!(audit.violations, [("indexed".to_owned(), 1), ("readable".to_owned(), 10_000)].into());
        assert_eq!(audit.violation_count(), 10_001);
    }
}
