//! The Lambda function that erases accounts. A schedule invokes the function every hour: each invocation continues the
//! requested erasures where the previous invocation stopped.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use config::{ConfigError, Env};
use erasing::{ERASURE_FAILED_MESSAGE, ERASURE_OVERDUE_MESSAGE, Eraser, ErasingReport};
use lambda_runtime::{Diagnostic, LambdaEvent};
use orders_table::{ORDERS_TABLE, OrdersTable};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{TableConfig, load_sdk_config};

/// The function stops this long before Lambda ends the invocation. The writes for one list page of items take less
/// time.
const TIME_RESERVED_FOR_SAVING: TimeDelta = TimeDelta::minutes(2);

/// The event that invokes the function: an empty object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EraseRequest {}

/// The response of the function: the numbers of accounts by the state of their erasure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErasureResponse {
    /// The number of accounts that were erased.
    pub erased: u64,
    /// The number of accounts whose erasure the next invocation continues.
    pub in_progress: u64,
    /// The number of accounts whose erasure waits, for example until an order is shipped.
    pub waiting: u64,
    /// The number of accounts whose erasure failed. The next invocation tries again.
    pub failed: u64,
}

impl From<&ErasingReport> for ErasureResponse {
    fn from(report: &ErasingReport) -> Self {
        Self {
            erased: report.erased,
            in_progress: report.in_progress,
            waiting: u64::try_from(report.waiting.len()).unwrap_or(u64::MAX),
            failed: report.failed,
        }
    }
}

/// Creates the eraser from the environment variables. `DUEDAY_ORDERS_TABLE` is not set if the deployment has no order
/// desk.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or not valid.
pub async fn set_up_eraser(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Eraser, ConfigError> {
    let table = TableConfig::read(env)?.connect(&load_sdk_config().await);
    let orders = env.get(&ORDERS_TABLE).map(|name| OrdersTable::new(table.client().clone(), name));
    Ok(Eraser::new(table, orders, clock))
}

/// Handles one invocation of the function: continues all requested erasures until shortly before the end of the
/// invocation.
///
/// # Errors
/// A [`Diagnostic`] with one of these error types:
/// - `Request` if the event is not valid.
/// - `Table` if the erasures cannot be listed, or the scan of the table fails. The next invocation continues.
pub async fn erase_requested_accounts(
    eraser: &Eraser,
    event: LambdaEvent<Value>,
) -> Result<ErasureResponse, Diagnostic> {
    let failed =
        |error_type: &str, error_message: String| Diagnostic { error_type: error_type.to_owned(), error_message };
    let EraseRequest {} = serde_json::from_value(event.payload)
        .map_err(|error| failed("Request", format!("the event is not valid: {error}")))?;
    let deadline = DateTime::<Utc>::from(event.context.deadline()).checked_sub_signed(TIME_RESERVED_FOR_SAVING);
    let report = Box::pin(eraser.continue_all_erasures(deadline)).await.map_err(|error| {
        tracing::error!(%error, error_type = "Table", "{ERASURE_FAILED_MESSAGE}");
        failed("Table", error.to_string())
    })?;
    for (account, waits_for) in &report.waiting {
        match report.overdue.contains(account) {
            true => tracing::error!(%account, waits_for, "{ERASURE_OVERDUE_MESSAGE}"),
            false => tracing::warn!(%account, waits_for, "the erasure of an account waits"),
        }
    }
    let response = ErasureResponse::from(&report);
    let ErasureResponse { erased, in_progress, waiting, failed } = response;
    tracing::info!(erased, in_progress, waiting, failed, "the requested erasures were continued");
    Ok(response)
}
