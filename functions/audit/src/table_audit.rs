//! The audit of a part of the table and of the order desk: logs the result, from which alarms fire.

use audit::is_audit_late;
use billing::AuditRecord;
use chrono::{DateTime, Utc};
use serde::Serialize;
use store::{Settings, TableError};

use crate::TableChecks;

/// The log message of an invocation that has checked a part of the table, also the last part. The filter of an alarm in
/// `template.yaml` contains the same text: the alarm fires if the message is missing for a day.
pub const AUDIT_CONTINUED_MESSAGE: &str = "the audit has checked a part of the table";

/// The log message if an audit has found violations. The filter of an alarm in `template.yaml` contains the same text.
pub const VIOLATIONS_MESSAGE: &str = "the audit has found violations";

/// The log message of an invocation if the audit has not ended after 31 days. The invocation then does not log
/// [`AUDIT_CONTINUED_MESSAGE`], so the alarm for the missing message fires.
pub const AUDIT_LATE_MESSAGE: &str = "the audit has not checked the whole table in 31 days";

/// The response to the audit of a part of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TableAuditResponse {
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

impl From<&AuditRecord> for TableAuditResponse {
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

impl TableChecks {
    /// Audits the next part of the table until shortly before `deadline`, and logs the result.
    pub(crate) async fn audit_table(
        &self,
        settings: &Settings,
        deadline: DateTime<Utc>,
    ) -> Result<TableAuditResponse, TableError> {
        let now = self.audit.clock.now();
        let audit = self.audit.audit_next_part(settings, deadline).await?;
        let response = TableAuditResponse::from(&audit);
        let TableAuditResponse { audit: id, complete, accounts, orders, violations } = &response;
        match is_audit_late(&audit, now) {
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
}
