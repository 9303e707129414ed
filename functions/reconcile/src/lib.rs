//! The Lambda function of the daily comparison with the gateway. A schedule invokes the function every hour of the
//! night. Each invocation continues where the previous invocation stopped, until the payments of the latest complete
//! day are compared. Then the function compares the days of the last week that are not compared yet, and older days
//! that must be compared again.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use billing::DayReconciliation;
use chrono::{DateTime, NaiveDate, Utc};
use clock::Clock;
use config::{ConfigError, Env};
use gateway_secrets::FirstSecretRead;
use lambda_runtime::{Diagnostic, LambdaEvent};
use reconciling::{DailyComparison, DailyComparisonError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{TableConfig, load_sdk_config};

/// The maximum duration of a request to the gateway.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// The event that invokes the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReconcileRequest {
    /// The day to compare, in UTC. If its comparison has ended, the day is compared again. If absent, the function
    /// compares the latest comparable day and the earlier days that are not compared yet.
    date: Option<RequestedDate>,
}

/// The requested day, such as `2027-01-31`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
struct RequestedDate(#[serde(deserialize_with = "billing::deserialize_date")] NaiveDate);

/// The response of the function: the result of the last day that this invocation compared. If all days were compared
/// before, the result of the latest comparable day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReconcileResponse {
    /// The compared day in UTC.
    pub date: NaiveDate,
    /// Whether the comparison has ended. Otherwise the next invocation continues.
    pub complete: bool,
    /// Whether all lists were compared, and there is no difference.
    pub clean: bool,
    /// The number of differences.
    pub differences: u64,
}

impl From<&DayReconciliation> for ReconcileResponse {
    fn from(day: &DayReconciliation) -> Self {
        Self {
            date: day.on,
            complete: day.ended_at.is_some(),
            clean: day.is_clean(),
            differences: day.difference_count(),
        }
    }
}

/// The reason why an invocation failed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileInvocationError {
    #[error("the event is not valid: {0}")]
    Request(#[from] serde_json::Error),
    #[error(transparent)]
    Comparison(#[from] DailyComparisonError),
}

impl ReconcileInvocationError {
    /// Returns the error type of the invocation.
    fn error_type(&self) -> &'static str {
        match self {
            Self::Request(_) => "Request",
            Self::Comparison(error) => error.error_type(),
        }
    }
}

/// Creates the comparison from the environment variables. `DUEDAY_GATEWAY` selects the payment gateway.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or not valid.
pub async fn set_up_daily_comparison(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<DailyComparison, ConfigError> {
    let config = TableConfig::read(env)?;
    let sdk = load_sdk_config().await;
    let first_read = FirstSecretRead::MustSucceed;
    let gateway =
        gateway_secrets::create_gateway_from_environment(env, &sdk, GATEWAY_TIMEOUT, first_read, clock.clone()).await?;
    Ok(DailyComparison::new(config.connect(&sdk), gateway, clock))
}

/// Handles one invocation of the function: compares the day in the event, or else the days that are compared
/// automatically.
///
/// # Errors
/// An [`ReconcileInvocationError`]. Its error type is `Request`, or the name of the [`DailyComparisonError`].
pub async fn compare_days_with_gateway(
    comparison: &DailyComparison,
    event: LambdaEvent<Value>,
) -> Result<ReconcileResponse, Diagnostic> {
    let deadline = DateTime::<Utc>::from(event.context.deadline());
    let response = compare_requested_days(comparison, event.payload, deadline).await;
    response.map_err(|error| Diagnostic { error_type: error.error_type().to_owned(), error_message: error.to_string() })
}

/// Handles the event `event` until shortly before `deadline`.
async fn compare_requested_days(
    comparison: &DailyComparison,
    event: Value,
    deadline: DateTime<Utc>,
) -> Result<ReconcileResponse, ReconcileInvocationError> {
    let request: ReconcileRequest = serde_json::from_value(event)?;
    let day = comparison.compare(request.date.map(|RequestedDate(date)| date), deadline).await?;
    Ok(ReconcileResponse::from(&day))
}
