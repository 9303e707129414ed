//! The Lambda function of the daily comparison with the gateway. A schedule invokes the function every hour of the
//! night. Each invocation continues where the previous invocation stopped, until the payments of the latest complete
//! day are compared. Then the function compares the days of the last week that are not compared yet, and older days
//! that must be compared again.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use billing::DayReconciliation;
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use clock::Clock;
use config::{BillingConfig, ConfigError, Env};
use gateway_secrets::FirstRead;
use gateways::{FullGateway, GatewayError};
use lambda_runtime::{Diagnostic, LambdaEvent};
use reconciling::{
    DAY_COMPARED_MESSAGE, DIFFERENCES_MESSAGE, ReconcileError, Reconciler, Settlement, latest_comparable_day,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use settling::GatewayAccountCheck;
use store::{Paging, Settings, Table, TableConfig, TableError, load_sdk_config};

/// The maximum duration of a request to the gateway.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of days, up to the latest comparable day, that the function compares if the event names no day.
const AUTOMATIC_DAYS: u64 = 7;

/// The number of latest stored comparisons that the function searches for interrupted comparisons, and for days on
/// which the bank was still processing payments.
const DAYS_TO_CHECK: usize = 100;

/// The comparison stops this long before Lambda ends the invocation. The requests for one list page take less time.
const TIME_RESERVED_FOR_SAVING: TimeDelta = TimeDelta::minutes(2);

/// The daily comparison: the table, its gateway and the settings.
#[derive(Debug)]
pub struct DailyComparison {
    table: Table,
    gateway: Arc<dyn FullGateway>,
    /// Checks that the gateway account is still the account of this table.
    account: GatewayAccountCheck,
    billing: BillingConfig,
    clock: Arc<dyn Clock>,
}

/// The event that invokes the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The day to compare, in UTC. If its comparison has ended, the day is compared again. If absent, the function
    /// compares the latest comparable day and the earlier days that are not compared yet.
    date: Option<NaiveDate>,
}

/// The response of the function: the result of the last day that this invocation compared. If all days were compared
/// before, the result of the latest comparable day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Response {
    /// The compared day in UTC.
    pub date: NaiveDate,
    /// Whether the comparison has ended. Otherwise the next invocation continues.
    pub complete: bool,
    /// Whether all lists were compared, and there is no difference.
    pub clean: bool,
    /// The number of differences.
    pub differences: u64,
}

impl From<&DayReconciliation> for Response {
    fn from(day: &DayReconciliation) -> Self {
        Self {
            date: day.on,
            complete: day.ended_at.is_some(),
            clean: day.is_clean(),
            differences: day.difference_count(),
        }
    }
}

/// The reason why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The reason why an invocation failed.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    #[error("the event is not valid: {0}")]
    Request(#[from] serde_json::Error),
    #[error("the table has no settings: no run has used it yet")]
    NoSettings,
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Day(ReconcileError),
}

impl From<ReconcileError> for InvocationError {
    fn from(error: ReconcileError) -> Self {
        match error {
            ReconcileError::Table(error) => Self::Table(error),
            ReconcileError::Gateway(error) => Self::Gateway(error),
            error @ (ReconcileError::NotEnded { .. }
            | ReconcileError::Expired { .. }
            | ReconcileError::NoProgress { .. }) => Self::Day(error),
        }
    }
}

impl InvocationError {
    /// Returns the error type of the invocation.
    fn error_type(&self) -> &'static str {
        match self {
            Self::Request(_) => "Request",
            Self::NoSettings => "NoSettings",
            Self::Table(_) => "Table",
            Self::Gateway(_) => "Gateway",
            Self::Day(_) => "Day",
        }
    }
}

/// Creates the comparison from the environment variables. `DUEDAY_GATEWAY` selects the payment gateway.
///
/// # Errors
/// [`SetUpError::Config`] if a variable is missing or not valid.
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<DailyComparison, SetUpError> {
    let (config, billing) = (TableConfig::read(env)?, BillingConfig::read(env)?);
    let sdk = load_sdk_config().await;
    let first_read = FirstRead::MustSucceed;
    let gateway =
        gateway_secrets::gateway_from_environment(env, &sdk, GATEWAY_TIMEOUT, first_read, clock.clone()).await?;
    let (table, account) = (config.connect(&sdk), GatewayAccountCheck::default());
    Ok(DailyComparison { table, gateway, account, billing, clock })
}

/// Handles one invocation of the function: compares the day in the event, or else the latest comparable day and the
/// earlier days that are not compared yet.
///
/// # Errors
/// An [`InvocationError`]. The name of its variant is the error type of the invocation.
pub async fn reconcile(comparison: &DailyComparison, event: LambdaEvent<Value>) -> Result<Response, Diagnostic> {
    let deadline = DateTime::<Utc>::from(event.context.deadline());
    let response = comparison.handle(event.payload, deadline).await;
    response.map_err(|error| Diagnostic { error_type: error.error_type().to_owned(), error_message: error.to_string() })
}

impl DailyComparison {
    /// Handles the event `event` until shortly before `deadline`.
    ///
    /// # Errors
    /// - [`InvocationError::Request`] if the event is not valid.
    /// - [`InvocationError::Day`] if a day cannot be compared.
    /// - [`InvocationError::NoSettings`] if no run has used the table yet.
    /// - [`InvocationError::Table`] and [`InvocationError::Gateway`] if a request failed. The next invocation
    ///   continues.
    pub async fn handle(&self, event: Value, deadline: DateTime<Utc>) -> Result<Response, InvocationError> {
        let request: Request = serde_json::from_value(event)?;
        let now = self.clock.now();
        let settings = self.table.get_settings().await?.ok_or(InvocationError::NoSettings)?;
        let latest = latest_comparable_day(now);
        let is_used = |day: &NaiveDate| *day >= settings.created_at().date_naive();
        let earlier = (1..AUTOMATIC_DAYS).filter_map(|ago| latest.checked_sub_days(Days::new(ago))).filter(is_used);
        let days: Vec<NaiveDate> = match request.date {
            Some(date) => vec![date],
            None => [latest].into_iter().chain(earlier).collect(),
        };
        let mut reconciler = Reconciler::new(
            (self.table.clone(), settings.table_id),
            self.gateway.clone(),
            (self.billing.policy.clone(), Settlement::of_table(&settings)),
            self.clock.clone(),
            now.with_timezone(&self.billing.zone).date_naive(),
        );
        let days = match request.date {
            Some(_) => days,
            None => [days, self.days_to_compare_again(&settings, latest).await?].concat(),
        };
        let processing_days = settings.payment_limits.max_processing_days;
        let needs_comparison = |day: &DayReconciliation| day.needs_second_comparison(processing_days, now);
        let deadline = deadline.checked_sub_signed(TIME_RESERVED_FOR_SAVING);
        let (mut last, mut failed) = (None, None);
        for on in days {
            let stored = self.table.get_reconciliation(on).await?;
            let ended = stored.as_ref().filter(|day| day.ended_at.is_some());
            if let Some(ended) = ended.filter(|day| request.date.is_none() && !needs_comparison(day)) {
                last.get_or_insert(Response::from(ended));
                continue;
            }
            self.account.check::<InvocationError>(&self.table, self.gateway.as_ref()).await?;
            match reconciler.reconcile_after(stored, on, deadline).await {
                Ok(day) => {
                    log_result(&day);
                    let response = Response::from(&day);
                    let is_complete = response.complete;
                    last = Some(response);
                    if !is_complete {
                        break;
                    }
                }
                // A day that cannot be compared does not prevent the comparison of the other days.
                Err(error) => {
                    let error = InvocationError::from(error);
                    tracing::error!(date = %on, %error, error_type = error.error_type(), "a day could not be compared with the gateway");
                    failed.get_or_insert(error);
                }
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(last.expect("there is at least one day")),
        }
    }

    /// Returns the days that must be compared again, among the days before the latest [`AUTOMATIC_DAYS`] days. A day
    /// must be compared again if its comparison was interrupted, or if the bank was still processing payments of the
    /// day. Reads the latest [`DAYS_TO_CHECK`] comparisons.
    async fn days_to_compare_again(
        &self,
        settings: &Settings,
        latest: NaiveDate,
    ) -> Result<Vec<NaiveDate>, InvocationError> {
        let (processing_days, now) = (settings.payment_limits.max_processing_days, self.clock.now());
        let paging = Paging { after: None, limit: Some(DAYS_TO_CHECK) };
        let stored = self.table.get_reconciliations(&paging).await?.into_items()?;
        let automatic = latest.checked_sub_days(Days::new(AUTOMATIC_DAYS)).unwrap_or(latest);
        // The receipts of older days may have expired, so such a day cannot be compared.
        let oldest = now.checked_sub_signed(self.table.receipt_retention() - TimeDelta::days(1));
        let is_comparable = |day: &DayReconciliation| oldest.is_none_or(|oldest| day.on > oldest.date_naive());
        let is_wanted =
            |day: &DayReconciliation| day.ended_at.is_none() || day.needs_second_comparison(processing_days, now);
        let days = stored.iter().filter(|day| day.on <= automatic && is_comparable(day) && is_wanted(day));
        Ok(days.map(|day| day.on).collect())
    }
}

/// Logs the result of the comparison of `day`, or that the next invocation continues the comparison.
fn log_result(day: &DayReconciliation) {
    let Response { date, complete, clean, differences } = Response::from(day);
    if complete && !clean {
        let not_compared = day.not_compared.len();
        tracing::error!(%date, differences, not_compared, "{DIFFERENCES_MESSAGE}: see `dueday reconcile`");
    }
    match complete {
        true => tracing::info!(%date, differences, "{DAY_COMPARED_MESSAGE}"),
        false => tracing::info!(%date, step = %day.step, "the next invocation continues the comparison"),
    }
}
