//! The facts about the system in which the concerns are found: the runs, the latest checks, the queues, and counts.

use billing::{AuditRecord, DayReconciliation, Erasure};
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use ulid::Ulid;

use super::queue_state::QueueState;
use super::run_facts::RunFacts;

/// The facts about the system in which the concerns are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemFacts {
    pub now: DateTime<Utc>,
    /// The days of the runs, and what prevents that they count as complete.
    pub runs: RunFacts,
    /// The date on which the table was created.
    pub created_on: NaiveDate,
    pub charging: bool,
    /// When the latest run began, on the clock of its machine; `None` before the first run.
    pub latest_run_at: Option<DateTime<Utc>>,
    /// When the table was noticed to be a copy that no operator has confirmed; `None` if it is no such copy.
    pub copy_noticed_at: Option<DateTime<Utc>>,
    /// The payment date of the oldest payment of an earlier day that a run should have settled; `None` if there is
    /// none. Payments whose outcome a bank or a dispute delays do not count.
    pub late_payments_since: Option<NaiveDate>,
    /// The disabled webhook endpoints, each with the reason.
    pub disabled_endpoints: Vec<(Ulid, String)>,
    pub unreadable_endpoints: Vec<String>,
    /// The erasures in progress.
    pub erasures: Vec<Erasure>,
    /// The descriptions of the erasures, audits and comparisons that cannot be read.
    pub unreadable_records: Vec<String>,
    /// The latest audits, the newest first.
    pub audits: Vec<LatestAudit>,
    /// The latest compared days, the newest first.
    pub comparisons: Vec<LatestComparison>,
    /// The descriptions of the variables of this process that differ from the policy of the table.
    pub policy_differences: Vec<String>,
    /// The queues of the deployment, or the reason why they could not be read. Empty if alarms check them.
    pub queues: Result<Vec<QueueState>, String>,
    pub check_schedule: CheckSchedule,
}

/// Where the audits of the table and the comparisons with the gateway are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckSchedule {
    /// A schedule or another process makes them.
    Elsewhere,
    /// This process makes the missing ones now.
    InThisProcess,
    /// The deployment makes none.
    NotDeployed,
}

/// The latest audit of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LatestAudit {
    pub id: Ulid,
    pub started_at: DateTime<Utc>,
    /// When the audit ended; `None` if it is running or was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    pub violations: u64,
    /// Whether the schedule has started the audit and continues it.
    #[serde(skip)]
    pub is_scheduled: bool,
    /// Whether the audit compares the table with the lists of the gateway.
    #[serde(skip)]
    pub has_gateway_lists: bool,
    /// Whether the audit has checked orders.
    #[serde(skip)]
    pub has_orders: bool,
}

impl LatestAudit {
    /// Returns whether this audit checks all items that the audit `other` checks.
    pub(super) fn covers(&self, other: &Self) -> bool {
        (self.has_gateway_lists || !other.has_gateway_lists) && (self.has_orders || !other.has_orders)
    }
}

/// The latest day that was compared with the gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LatestComparison {
    /// The compared day in UTC.
    pub date: NaiveDate,
    /// When the comparison was complete; `None` if it is running or was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    pub differences: u64,
    /// Whether the gateway does not offer all lists, so that not everything was compared.
    #[serde(skip)]
    pub has_missing_lists: bool,
}

impl From<AuditRecord> for LatestAudit {
    fn from(audit: AuditRecord) -> Self {
        let violations = audit.violation_count();
        Self {
            id: audit.id,
            started_at: audit.started_at,
            ended_at: audit.ended_at,
            violations,
            is_scheduled: audit.is_scheduled,
            has_gateway_lists: audit.has_gateway_lists,
            has_orders: audit.orders > 0,
        }
    }
}

impl From<DayReconciliation> for LatestComparison {
    fn from(day: DayReconciliation) -> Self {
        let has_missing_lists = !day.not_compared.is_empty();
        Self { date: day.on, ended_at: day.ended_at, differences: day.difference_count(), has_missing_lists }
    }
}
