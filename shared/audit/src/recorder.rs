//! Records the progress of an audit in the table: the counts, the position and the violations found so far.

use billing::{AuditRecord, AuditViolation};
use chrono::{DateTime, Utc};
use store::{AccountPartition, Table, TableError};

use super::BrokenInvariant;

/// The maximum number of violations that a recorder returns at the end. The count of violations includes all
/// violations.
pub const MAX_SHOWN_VIOLATIONS: usize = 1_000;

/// The number of violations that are collected before they are written to the table together.
const VIOLATIONS_PER_REQUEST: usize = 25;

/// The number of accounts or orders after which the position is stored, even if there is no violation.
const RECORDS_PER_UPDATE: u64 = 1_000;

/// The recorder of one audit.
#[derive(Debug)]
pub struct AuditRecorder<'a> {
    table: &'a Table,
    /// The stored audit.
    stored: AuditRecord,
    /// The audit as it will be stored by the next write.
    next: AuditRecord,
    /// The violations that are not written yet.
    unwritten: Vec<AuditViolation>,
    /// The first violations, which are returned at the end.
    shown: Vec<BrokenInvariant>,
}

impl<'a> AuditRecorder<'a> {
    /// Stores the new audit `audit`, and returns its recorder.
    pub async fn begin(table: &'a Table, audit: AuditRecord) -> Result<Self, TableError> {
        table.create_audit(&audit).await?;
        Ok(Self::resume(table, audit))
    }

    /// Returns the recorder of the audit `stored`, which was interrupted.
    pub fn resume(table: &'a Table, stored: AuditRecord) -> Self {
        Self { table, next: stored.clone(), stored, unwritten: Vec::new(), shown: Vec::new() }
    }

    /// Returns the audit with everything that was recorded so far.
    pub fn audit(&self) -> &AuditRecord {
        &self.next
    }

    /// Records the violations in `broken`. Use [`AuditRecorder::add_account`] and [`AuditRecorder::add_orders`] for the
    /// violations of an account or of orders.
    pub async fn add_violations(&mut self, broken: Vec<BrokenInvariant>) -> Result<(), TableError> {
        self.add_at_end(broken);
        self.write_update_if(self.unwritten.len() >= VIOLATIONS_PER_REQUEST).await
    }

    /// Records violations of the last checks of the audit. The position of these checks is not stored, so their
    /// violations are only written together with the end of the audit. If this write fails, the next process makes
    /// these checks again, and each violation is recorded once.
    pub fn add_at_end(&mut self, broken: Vec<BrokenInvariant>) {
        for broken in broken {
            let BrokenInvariant { invariant, key, what } = &broken;
            self.unwritten.extend(self.next.add_violation(&invariant.to_string(), key, what));
            if self.shown.len() < MAX_SHOWN_VIOLATIONS {
                self.shown.push(broken);
            }
        }
    }

    /// Records that the account of `partition` was checked, with its violations. The audit continues at `position`.
    pub async fn add_account(
        &mut self,
        partition: &AccountPartition,
        broken: Vec<BrokenInvariant>,
        position: Option<&str>,
    ) -> Result<(), TableError> {
        let subscriptions = u64::try_from(partition.subscriptions.len()).unwrap_or(u64::MAX);
        self.next.accounts = self.next.accounts.saturating_add(1);
        self.next.subscriptions = self.next.subscriptions.saturating_add(subscriptions);
        self.next.position = position.map(str::to_owned);
        self.add_violations(broken).await?;
        self.write_update_if(self.next.accounts >= self.stored.accounts.saturating_add(RECORDS_PER_UPDATE)).await
    }

    /// Records that a receipt of a payment at `paid_at` was read.
    pub fn add_receipt(&mut self, paid_at: DateTime<Utc>) {
        let first = self.next.first_receipt_at;
        self.next.first_receipt_at = Some(first.map_or(paid_at, |first| first.min(paid_at)));
    }

    /// Records that `orders` more orders were checked, with their violations. The audit continues at `position`.
    pub async fn add_orders(
        &mut self,
        orders: u64,
        broken: Vec<BrokenInvariant>,
        position: String,
    ) -> Result<(), TableError> {
        self.next.orders = self.next.orders.saturating_add(orders);
        self.next.position = Some(position);
        self.add_violations(broken).await?;
        self.write_update_if(self.next.orders >= self.stored.orders.saturating_add(RECORDS_PER_UPDATE)).await
    }

    /// Stores the counts and the position, so that another process can continue the audit. Returns the stored audit.
    ///
    /// # Errors
    /// [`TableError::Contended`] if another process has continued the audit.
    pub async fn interrupt(mut self) -> Result<AuditRecord, TableError> {
        self.write_update_if(true).await?;
        Ok(self.stored)
    }

    /// Stores that the audit ended at `now`. Returns the audit and the first violations that this process found.
    pub async fn end(mut self, now: DateTime<Utc>) -> Result<(AuditRecord, Vec<BrokenInvariant>), TableError> {
        (self.next.ended_at, self.next.position) = (Some(now), None);
        self.write_update_if(true).await?;
        Ok((self.stored, self.shown))
    }

    /// If `is_time` is true, writes the counts, the position and the unwritten violations to the table.
    async fn write_update_if(&mut self, is_time: bool) -> Result<(), TableError> {
        if is_time {
            let violations = std::mem::take(&mut self.unwritten);
            self.stored = self.table.update_audit(&self.stored, self.next.clone(), violations).await?;
            self.next = self.stored.clone();
        }
        Ok(())
    }
}
