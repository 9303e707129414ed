//! The audit of the table and of the order desk, in parts: each invocation checks as many accounts and orders as its
//! time allows.

use audit::{AuditRecorder, InvariantChecker, check_endpoints, unfinished_runs};
use billing::AuditRecord;
use chrono::{DateTime, TimeDelta, Utc};
use days::DayReader;
use serde::Serialize;
use store::{Batch, Paging, Settings, TableError};

use crate::Checks;
use crate::limits::{Limits, records_of};
use crate::orders_audit::{Position, ReceiptCheck};

/// The log message of an invocation that has checked a part of the table, also the last part. The filter of an alarm in
/// `template.yaml` contains the same text: the alarm fires if the message is missing for a day.
pub const AUDIT_CONTINUED_MESSAGE: &str = "the audit has checked a part of the table";

/// The log message if an audit has found violations. The filter of an alarm in `template.yaml` contains the same text.
pub const VIOLATIONS_MESSAGE: &str = "the audit has found violations";

/// The log message of an invocation if the audit has not ended after 31 days. The invocation then does not log
/// [`AUDIT_CONTINUED_MESSAGE`], so the alarm for the missing message fires.
pub const AUDIT_LATE_MESSAGE: &str = "the audit has not checked the whole table in 31 days";

/// The number of nights over which the accounts and orders of large tables are distributed. Reading a large table every
/// night would be expensive. An audit may take a week longer than this number of nights (`MAX_AUDIT_DURATION`), because
/// the table may have grown since the previous audit.
const NIGHTS: u64 = 24;

/// The number of accounts and orders that each invocation may check at least, so that the audit of a table with fewer
/// accounts and orders ends in one night.
const MIN_RECORDS_OF_A_NIGHT: u64 = 30_000;

/// The time in which an audit must check the whole table.
const MAX_AUDIT_DURATION: TimeDelta = TimeDelta::days(31);

/// The response to the audit of a part of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TableResponse {
    /// The id of this audit, which checks the whole table in several invocations.
    pub audit: String,
    /// Whether all items were checked. Otherwise the next invocation continues.
    pub complete: bool,
    /// The number of accounts that were checked so far.
    pub accounts: u64,
    /// The number of orders that were checked so far; 0 if there is no order desk.
    pub orders: u64,
    /// The number of violations that were found so far.
    pub violations: u64,
}

impl From<&AuditRecord> for TableResponse {
    fn from(audit: &AuditRecord) -> Self {
        Self {
            audit: audit.id.to_string(),
            complete: audit.ended_at.is_some(),
            accounts: audit.accounts,
            orders: audit.orders,
            violations: audit.violation_count(),
        }
    }
}

impl Checks {
    /// Continues the latest scheduled audit, or begins a new audit if the latest one has ended. Stops when the audit is
    /// complete, shortly before `deadline`, or when the invocation has checked its share: a 24th of the accounts and
    /// orders that the previous audit has checked, but at least 30,000.
    pub(crate) async fn audit_table(
        &self,
        settings: &Settings,
        deadline: DateTime<Utc>,
    ) -> Result<TableResponse, TableError> {
        let now = self.clock.now();
        let audits = self.table.get_audits(&Paging::all(), now).await?.into_items()?;
        let (ended, open): (Vec<_>, Vec<_>) =
            audits.into_iter().filter(|audit| audit.is_scheduled).partition(|audit| audit.ended_at.is_some());
        let interrupted = open.into_iter().next();
        let before = ended.first();
        // Only if the previous audit has counted no orders, check whether there are orders now.
        let has_orders = match &self.orders {
            Some(orders) if before.is_some_and(|before| before.orders == 0) => orders.first_paid_at().await?.is_some(),
            _ => false,
        };
        let part = records_of_a_night(before, has_orders);
        let mut recorder = match interrupted {
            Some(interrupted) => AuditRecorder::resume(&self.table, interrupted),
            None => {
                let audit = AuditRecord { is_scheduled: true, ..AuditRecord::new(self.clock.ulid(), false, now) };
                AuditRecorder::begin(&self.table, audit).await?
            }
        };
        let checker = self.checker(settings, now);
        let limits = Limits::new(recorder.audit(), part, deadline);
        let are_accounts_checked = match Position::of(recorder.audit()) {
            Position::Accounts(after) => self.audit_accounts(&mut recorder, &checker, after, &limits).await?,
            Position::Orders(_) | Position::Numbers => true,
        };
        let audit = match are_accounts_checked && self.audit_orders(&mut recorder, &limits).await? {
            true => self.end_audit(recorder, checker, settings).await?,
            false => recorder.interrupt().await?,
        };
        let response = TableResponse::from(&audit);
        let TableResponse { audit: id, complete, accounts, orders, violations } = &response;
        match !complete && audit.started_at + MAX_AUDIT_DURATION < now {
            true => tracing::error!(audit = %id, accounts, orders, "{AUDIT_LATE_MESSAGE}"),
            false => tracing::info!(audit = %id, complete, accounts, orders, violations, "{AUDIT_CONTINUED_MESSAGE}"),
        }
        // Also log violations that an earlier invocation of this audit has found: that invocation may have failed
        // before it logged them.
        if *violations > 0 {
            tracing::error!(audit = %id, violations, "{VIOLATIONS_MESSAGE}: see `dueday audit show`");
        }
        Ok(response)
    }

    /// Checks the accounts after the position `after`. Returns whether all accounts are checked; otherwise the next
    /// invocation continues.
    async fn audit_accounts(
        &self,
        recorder: &mut AuditRecorder<'_>,
        checker: &InvariantChecker,
        after: Option<String>,
        limits: &Limits,
    ) -> Result<bool, TableError> {
        let mut receipts = match &self.orders {
            Some(orders) => Some(ReceiptCheck::new(&self.table, orders, checker.now).await?),
            None => None,
        };
        let mut partitions = self.table.partitions_after(after);
        loop {
            if limits.are_reached(recorder.audit(), self.clock.now()) {
                return Ok(false);
            }
            let Some(partition) = partitions.next().await? else { return Ok(true) };
            let mut broken = checker.check(&partition);
            if let Some(receipts) = &mut receipts {
                broken.extend(receipts.check(&partition, recorder).await?);
            }
            recorder.add_account(&partition, broken, partitions.position()).await?;
        }
    }

    /// Checks the webhook endpoints, the runs of the payment batch and the runs of the reminder batch, which belong to
    /// no account, and ends the audit.
    async fn end_audit(
        &self,
        mut recorder: AuditRecorder<'_>,
        checker: InvariantChecker,
        settings: &Settings,
    ) -> Result<AuditRecord, TableError> {
        let mut broken = check_endpoints(&self.table.get_webhook_endpoints(&Paging::all()).await?);
        for batch in Batch::ALL {
            let mut reader = DayReader::new(&self.table, batch, settings.shards, self.billing.zone, checker.now);
            broken.extend(unfinished_runs(&mut reader, checker.today).await?);
        }
        recorder.add_at_end(broken);
        Ok(recorder.end(self.clock.now()).await?.0)
    }

    /// Returns the checker of the invariants, with the settings of this deployment.
    fn checker(&self, settings: &Settings, now: DateTime<Utc>) -> InvariantChecker {
        let policy = &self.billing.policy;
        InvariantChecker {
            shards: settings.shards,
            today: self.billing.date_at(now),
            now,
            records_kept: self.table.receipt_retention(),
            retry_days: policy.dunning.days(),
            lease: self.charging.lease,
            lead: policy.lead,
        }
    }
}

/// Returns the largest number of accounts and orders that one invocation checks. `before` is the latest audit that has
/// ended; `None` if there is none. If `before` has counted no orders although there are orders now (`has_orders`), it
/// may be from before an upgrade, so the size of the tables is unknown and the number is not limited.
fn records_of_a_night(before: Option<&AuditRecord>, has_orders: bool) -> u64 {
    let before = before.filter(|audit| !has_orders || audit.orders > 0);
    before.map_or(u64::MAX, |audit| (records_of(audit) / NIGHTS).max(MIN_RECORDS_OF_A_NIGHT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_table_is_distributed_over_24_nights_and_a_small_one_is_checked_every_night() {
        let audit = |accounts, orders| {
            let new = AuditRecord::new(Default::default(), false, DateTime::UNIX_EPOCH);
            AuditRecord { accounts, orders, ..new }
        };
        assert_eq!(records_of_a_night(None, false), u64::MAX, "the first audit does not know the size of the table");
        // The columns are: whether there are orders, the numbers of accounts and of orders of the audit before, and the
        // largest number that one invocation checks.
        for (has_orders, accounts, orders, expected) in [
            (false, 0, 0, 30_000),
            (false, 30_000, 0, 30_000),
            (false, 720_023, 0, 30_000),
            (false, 2_400_000, 0, 100_000),
            (true, 600_000, 1_800_000, 100_000),
            (true, 30_000, 1, 30_000),
            (true, 600_000, 0, u64::MAX),
            (false, 2_400_000, 0, 100_000),
        ] {
            let of_a_night = records_of_a_night(Some(&audit(accounts, orders)), has_orders);
            assert_eq!(of_a_night, expected, "{accounts} accounts and {orders} orders, has orders: {has_orders}");
        }
    }
}
