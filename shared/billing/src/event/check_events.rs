//! The data of the events of checks: an audit of the table, and a comparison with the gateway.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::checks::audit_record::AuditRecord;
use crate::checks::day_reconciliation::{DayReconciliation, DifferenceKind, GatewayList, ReconciledCounts};

/// The data of the event of a completed audit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = AuditData))]
pub struct AuditEventData {
    /// The id of the audit.
    pub audit: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    /// Whether the audit compared the table with the lists of the gateway.
    pub with_gateway_lists: bool,
    pub accounts: u64,
    pub subscriptions: u64,
    /// The number of violations of each invariant, by the name of the invariant; empty if no invariant is violated.
    pub violations: BTreeMap<String, u64>,
}

impl AuditEventData {
    /// Creates the data of the audit `audit`, which ended at `ended_at`.
    pub(super) fn from_audit(audit: &AuditRecord, ended_at: DateTime<Utc>) -> Self {
        Self {
            audit: audit.id.to_string(),
            started_at: audit.started_at,
            ended_at,
            with_gateway_lists: audit.has_gateway_lists,
            accounts: audit.accounts,
            subscriptions: audit.subscriptions,
            violations: audit.violations.clone(),
        }
    }
}

/// The data of the event of a day whose payments, refunds and disputes were compared with the gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ReconciliationData))]
pub struct ReconciliationEventData {
    /// The day (UTC) whose payments, refunds and disputes were compared.
    pub date: NaiveDate,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    #[serde(flatten)]
    pub counts: ReconciledCounts,
    /// The gateway's lists that could not be compared, because the gateway does not offer them.
    pub not_compared: BTreeSet<GatewayList>,
    /// The number of differences of each kind; empty if there are no differences.
    pub differences: BTreeMap<DifferenceKind, u64>,
}

impl ReconciliationEventData {
    /// Creates the data of the comparison `day`, which ended at `ended_at`.
    pub(super) fn from_reconciliation(day: &DayReconciliation, ended_at: DateTime<Utc>) -> Self {
        Self {
            date: day.on,
            started_at: day.started_at,
            ended_at,
            counts: day.counts,
            not_compared: day.not_compared.clone(),
            differences: day.differences.clone(),
        }
    }
}
