//! The Lambda function that checks the table, and the order desk if there is one. A schedule invokes the function every
//! night: each invocation audits a part of the table. It continues the audit of the previous night, until all items are
//! checked. A second schedule invokes the function at the hour by which both batches of the day (the payment batch and
//! the reminder batch) must be done.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod day_check;
mod table_audit;

use std::sync::Arc;

use audit::NightlyAudit;
use chrono::{DateTime, Utc};
use clock::Clock;
use config::{ConfigError, Env};
use lambda_runtime::{Diagnostic, LambdaEvent};
use orders_table::{ORDERS_TABLE, OrdersTable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Table, TableConfig, TableError, load_sdk_config};

pub use day_check::{CONCERN_MESSAGE, DAY_DONE_MESSAGE, DAY_NOT_DONE_MESSAGE, DayCheckResponse};
pub use table_audit::{AUDIT_CONTINUED_MESSAGE, AUDIT_LATE_MESSAGE, TableAuditResponse, VIOLATIONS_MESSAGE};

/// The checks of a table, with their configuration.
#[derive(Debug)]
pub struct TableChecks {
    audit: NightlyAudit,
}

/// The event that invokes the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditRequest {
    check: RequestedCheck,
}

/// The check that an invocation performs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
enum RequestedCheck {
    /// All items of the table and of the order desk, in many invocations.
    #[serde(rename = "table")]
    AllItems,
    /// Whether the run records prove that the batches of today are done.
    #[serde(rename = "day")]
    BatchesOfToday,
}

/// The response of the function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum AuditResponse {
    Table(TableAuditResponse),
    Day(DayCheckResponse),
}

/// The reason why an invocation failed.
#[derive(Debug, thiserror::Error)]
pub enum AuditInvocationError {
    #[error("the event is not valid: {0}")]
    Request(#[from] serde_json::Error),
    #[error("the table has no settings yet: start the API or a batch function, which creates them")]
    NoSettings,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl AuditInvocationError {
    /// Returns the error type of the invocation.
    fn error_type(&self) -> &'static str {
        match self {
            Self::Request(_) => "Request",
            Self::NoSettings => "NoSettings",
            Self::Table(_) => "Table",
        }
    }
}

/// Creates the checks from the environment variables. `DUEDAY_ORDERS_TABLE` is not set if the deployment has no order
/// desk.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or not valid.
pub async fn set_up_table_checks(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<TableChecks, ConfigError> {
    let table = TableConfig::read(env)?.connect(&load_sdk_config().await);
    let orders = env.get(&ORDERS_TABLE).map(|name| OrdersTable::new(table.client().clone(), name));
    Ok(TableChecks { audit: NightlyAudit { table, orders, clock } })
}

/// Handles one invocation of the function.
///
/// # Errors
/// An [`AuditInvocationError`]. The name of its variant is the error type of the invocation.
pub async fn run_audit_invocation(
    checks: &TableChecks,
    event: LambdaEvent<Value>,
) -> Result<AuditResponse, Diagnostic> {
    let deadline = DateTime::<Utc>::from(event.context.deadline());
    let response = checks.run_requested_check(event.payload, deadline).await;
    response.map_err(|error| Diagnostic { error_type: error.error_type().to_owned(), error_message: error.to_string() })
}

impl TableChecks {
    /// Creates the checks of `table`.
    pub fn new(table: Table, clock: Arc<dyn Clock>) -> Self {
        Self { audit: NightlyAudit { table, orders: None, clock } }
    }

    /// Adds the checks of the order desk, whose table is `orders`.
    pub fn with_orders(self, orders: OrdersTable) -> Self {
        Self { audit: NightlyAudit { orders: Some(orders), ..self.audit } }
    }

    /// Handles the event `event` until shortly before `deadline`.
    ///
    /// # Errors
    /// - [`AuditInvocationError::Request`] if the event is not valid.
    /// - [`AuditInvocationError::NoSettings`] if the table has no settings yet.
    /// - [`AuditInvocationError::Table`] if a request failed. The next invocation continues.
    pub async fn run_requested_check(
        &self,
        event: Value,
        deadline: DateTime<Utc>,
    ) -> Result<AuditResponse, AuditInvocationError> {
        let request: AuditRequest = serde_json::from_value(event)?;
        let settings = self.audit.table.get_settings().await?.ok_or(AuditInvocationError::NoSettings)?;
        self.audit.table.use_policy(&settings, None)?;
        match request.check {
            RequestedCheck::AllItems => Ok(AuditResponse::Table(self.audit_table(&settings, deadline).await?)),
            RequestedCheck::BatchesOfToday => Ok(AuditResponse::Day(self.check_day(&settings).await?)),
        }
    }
}
