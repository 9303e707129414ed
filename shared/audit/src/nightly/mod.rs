//! The nightly audit of the payments table and of the order desk, in parts: each part checks as many accounts and orders
//! as its time allows.

mod limits;
mod orders_part;

use std::sync::Arc;

use billing::{AmountRules, AuditRecord};
use chrono::{DateTime, Utc};
use clock::Clock;
use days::MAX_AUDIT_DURATION;
use gateways::amount_rules_of_account;
use orders_table::OrdersTable;
use store::{Paging, Settings, Table, TableError};

use super::{AuditRecorder, InvariantChecker, check_endpoints, check_other_items, check_prices};
use limits::{NightlyLimits, count_checked_records};
use orders_part::{OrdersPosition, ReceiptCheck};

/// The number of nights over which the accounts and orders of large tables are distributed. Reading a large table every
/// night would be expensive. An audit may take a week longer than this number of nights (`MAX_AUDIT_DURATION`), because
/// the table may have grown since the previous audit.
const NIGHTS: u64 = 24;

/// The number of accounts and orders that each part may check at least, so that the audit of a table with fewer
/// accounts and orders ends in one night.
const MIN_RECORDS_OF_A_NIGHT: u64 = 30_000;

/// The nightly audit of a table, with the configuration of its deployment.
#[derive(Debug)]
pub struct NightlyAudit {
    pub table: Table,
    /// The table of the order desk; `None` if there is no order desk.
    pub orders: Option<OrdersTable>,
    pub clock: Arc<dyn Clock>,
}

/// Returns whether `audit` is in progress at `now` for more than 31 days, in which it must check the whole table.
pub fn is_audit_late(audit: &AuditRecord, now: DateTime<Utc>) -> bool {
    audit.ended_at.is_none() && audit.started_at + MAX_AUDIT_DURATION < now
}

impl NightlyAudit {
    /// Continues the latest scheduled audit, or begins a new audit if the latest one has ended. Stops when the audit is
    /// complete, shortly before `deadline`, or when this part has checked its share: a 24th of the accounts and orders
    /// that the previous audit has checked, but at least 30,000. Returns the audit, which has ended only if all items
    /// were checked.
    pub async fn audit_next_part(
        &self,
        settings: &Settings,
        deadline: DateTime<Utc>,
    ) -> Result<AuditRecord, TableError> {
        let now = self.clock.now();
        let audits = self.table.get_audits(&Paging::all(), now).await?.into_items()?;
        let (ended, open): (Vec<_>, Vec<_>) =
            audits.into_iter().filter(|audit| audit.is_scheduled).partition(|audit| audit.ended_at.is_some());
        let interrupted = open.into_iter().next();
        let before = ended.first();
        // Only if the previous audit has counted no orders, check whether there are orders now.
        let has_orders = match &self.orders {
            Some(orders) if before.is_some_and(|before| before.orders == 0) => match orders.first_paid_at().await {
                Err(TableError::Unreadable { .. }) => true,
                first => first?.is_some(),
            },
            _ => false,
        };
        let part = max_records_per_night(before, has_orders);
        let mut recorder = match interrupted {
            Some(interrupted) => AuditRecorder::resume(&self.table, interrupted),
            None => {
                let audit = AuditRecord { is_scheduled: true, ..AuditRecord::new(self.clock.ulid(), false, now) };
                AuditRecorder::begin(&self.table, audit).await?
            }
        };
        let checker = InvariantChecker::new(&self.table, settings, now);
        let rules = amount_rules_of_account(settings.gateway.as_ref());
        let limits = NightlyLimits::new(recorder.audit(), part, deadline);
        let are_accounts_checked = match OrdersPosition::of_audit(recorder.audit()) {
            OrdersPosition::Accounts(after) => {
                self.audit_accounts(&mut recorder, &checker, &rules, after, &limits).await?
            }
            OrdersPosition::Orders(_) | OrdersPosition::Numbers => true,
        };
        match are_accounts_checked && self.audit_orders(&mut recorder, &limits).await? {
            true => self.end_audit(recorder, &checker).await,
            false => recorder.interrupt().await,
        }
    }

    /// Checks the accounts after the position `after`. `rules` are the amounts that the gateway can charge. Returns
    /// whether all accounts are checked; otherwise the next part continues.
    async fn audit_accounts(
        &self,
        recorder: &mut AuditRecorder<'_>,
        checker: &InvariantChecker,
        rules: &AmountRules,
        after: Option<String>,
        limits: &NightlyLimits,
    ) -> Result<bool, TableError> {
        let mut receipts = match &self.orders {
            Some(orders) => Some(ReceiptCheck::new(&self.table, orders, checker.now).await?),
            None => None,
        };
        let mut partitions = self.table.account_partitions_after(after).with_other_items_checked(checker.now);
        loop {
            if limits.are_reached(recorder.audit(), self.clock.now()) {
                return Ok(false);
            }
            // The requests to the embedded engine of one machine do not wait, so the other work of the server would not
            // continue before the end of the audit.
            tokio::task::yield_now().await;
            let next = partitions.next().await?;
            let mut broken = check_other_items(&self.table, partitions.take_checked_items()).await?;
            let Some(partition) = next else {
                recorder.add_at_end(broken);
                return Ok(true);
            };
            broken.extend(checker.check_account(&partition));
            broken.extend(check_prices(&partition, rules));
            if let Some(receipts) = &mut receipts {
                broken.extend(receipts.check_receipts(&partition, recorder).await?);
            }
            recorder.add_account(&partition, broken, partitions.position()).await?;
        }
    }

    /// Checks the webhook endpoints and the runs, which belong to no account, and ends the audit.
    async fn end_audit(
        &self,
        mut recorder: AuditRecorder<'_>,
        checker: &InvariantChecker,
    ) -> Result<AuditRecord, TableError> {
        let mut broken = check_endpoints(&self.table.get_webhook_endpoints(&Paging::all()).await?);
        broken.extend(checker.check_runs(&self.table).await?);
        recorder.add_at_end(broken);
        Ok(recorder.end(self.clock.now()).await?.0)
    }
}

/// Returns the largest number of accounts and orders that one part checks. `before` is the latest audit that has
/// ended; `None` if there is none. If `before` has counted no orders although there are orders now (`has_orders`), it
/// may be from before an upgrade, so the size of the tables is unknown and the number is not limited.
fn max_records_per_night(before: Option<&AuditRecord>, has_orders: bool) -> u64 {
    let before = before.filter(|audit| !has_orders || audit.orders > 0);
    before.map_or(u64::MAX, |audit| (count_checked_records(audit) / NIGHTS).max(MIN_RECORDS_OF_A_NIGHT))
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
        assert_eq!(max_records_per_night(None, false), u64::MAX, "the first audit does not know the size of the table");
        // The columns are: whether there are orders, the numbers of accounts and of orders of the audit before, and the
        // largest number that one part checks.
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
            let of_a_night = max_records_per_night(Some(&audit(accounts, orders)), has_orders);
            assert_eq!(of_a_night, expected, "{accounts} accounts and {orders} orders, has orders: {has_orders}");
        }
    }
}
