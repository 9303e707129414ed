//! Chooses the days that are compared automatically, and compares them.

use std::sync::Arc;

use billing::DayReconciliation;
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use clock::Clock;
use gateway_objects::GatewayAccountCheck;
use gateways::{FullGateway, GatewayError};
use store::{Paging, Settings, Table, TableError};

use crate::{
    CorrectionMode, DAY_COMPARED_MESSAGE, DIFFERENCES_MESSAGE, ReconcileError, Reconciler, latest_comparable_day,
};

/// The number of days, up to the latest comparable day, that are compared automatically.
const AUTOMATIC_DAYS: u64 = 7;

/// The number of latest stored comparisons that are searched for interrupted comparisons, and for days on which the
/// bank was still processing payments.
const DAYS_TO_CHECK: usize = 100;

/// The comparison stops this long before the deadline. The requests for one list page take less time.
const TIME_RESERVED_FOR_SAVING: TimeDelta = TimeDelta::minutes(2);

/// The daily comparison of a table with its gateway.
#[derive(Debug)]
pub struct DailyComparison {
    table: Table,
    gateway: Arc<dyn FullGateway>,
    /// Checks that the gateway account is still the account of this table.
    account: GatewayAccountCheck,
    clock: Arc<dyn Clock>,
}

/// The reason why the daily comparison failed.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum DailyComparisonError {
    #[error("the table has no settings yet: start the API or a batch function, which creates them")]
    NoSettings,
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Day(ReconcileError),
}

impl From<ReconcileError> for DailyComparisonError {
    fn from(error: ReconcileError) -> Self {
        match error {
            ReconcileError::Table(error) => Self::Table(error),
            ReconcileError::Gateway(error) => Self::Gateway(error),
            error @ (ReconcileError::Finding(_)
            | ReconcileError::NotEnded { .. }
            | ReconcileError::Expired { .. }
            | ReconcileError::NoProgress { .. }) => Self::Day(error),
        }
    }
}

impl DailyComparisonError {
    /// Returns the name of the error, such as `Day`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }
}

impl DailyComparison {
    /// Creates the comparison of `table` with `gateway`.
    pub fn new(table: Table, gateway: Arc<dyn FullGateway>, clock: Arc<dyn Clock>) -> Self {
        Self { table, gateway, account: GatewayAccountCheck::default(), clock }
    }

    /// Compares the day `date` in UTC, again if its comparison has ended. Without a date, compares the latest
    /// comparable day, then the other days of the last week that are not compared yet, and older days that must be
    /// compared again. Stops shortly before `deadline`; the next call continues. Returns the result of the last day
    /// that was compared. If all days were compared before, returns the result of the latest comparable day.
    ///
    /// # Errors
    /// - [`DailyComparisonError::Day`] if a day cannot be compared. The other days are compared.
    /// - [`DailyComparisonError::NoSettings`] if the table has no settings yet.
    /// - [`DailyComparisonError::Table`] and [`DailyComparisonError::Gateway`] if a request failed. The next call
    ///   continues.
    pub async fn compare(
        &self,
        date: Option<NaiveDate>,
        deadline: DateTime<Utc>,
    ) -> Result<DayReconciliation, DailyComparisonError> {
        let now = self.clock.now();
        let settings = self.table.get_settings().await?.ok_or(DailyComparisonError::NoSettings)?;
        self.table.use_policy(&settings, now)?;
        let days = match date {
            Some(date) => vec![date],
            None => self.automatic_days(&settings, now).await?,
        };
        let mut reconciler = Reconciler::new(
            self.table.clone(),
            settings.table_id,
            self.gateway.clone(),
            CorrectionMode::of_table(&settings),
            self.clock.clone(),
            self.table.policy().date_at(now),
        );
        let processing_days = settings.payment_limits.max_processing_days;
        let needs_comparison = |day: &DayReconciliation| day.needs_second_comparison(processing_days, now);
        let deadline = deadline.checked_sub_signed(TIME_RESERVED_FOR_SAVING);
        let (mut last, mut failed) = (None, None);
        for on in days {
            let stored = self.table.get_reconciliation(on).await?;
            let ended = stored.as_ref().filter(|day| day.ended_at.is_some());
            if let Some(ended) = ended.filter(|day| date.is_none() && !needs_comparison(day)) {
                last.get_or_insert(ended.clone());
                continue;
            }
            self.account.check::<DailyComparisonError>(&self.table, self.gateway.as_ref()).await?;
            match reconciler.reconcile_after(stored, on, deadline).await {
                Ok(day) => {
                    log_comparison(&day);
                    let is_complete = day.ended_at.is_some();
                    last = Some(day);
                    if !is_complete {
                        break;
                    }
                }
                // A day that cannot be compared does not prevent the comparison of the other days.
                Err(error) => {
                    let error = DailyComparisonError::from(error);
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

    /// Returns the days that are compared automatically: the latest [`AUTOMATIC_DAYS`] days since the table was
    /// created, the latest day first, and then the older days that must be compared again.
    async fn automatic_days(
        &self,
        settings: &Settings,
        now: DateTime<Utc>,
    ) -> Result<Vec<NaiveDate>, DailyComparisonError> {
        let latest = latest_comparable_day(now);
        let is_used = |day: &NaiveDate| *day >= settings.created_at().date_naive();
        let earlier = (1..AUTOMATIC_DAYS).filter_map(|ago| latest.checked_sub_days(Days::new(ago))).filter(is_used);
        let mut days: Vec<NaiveDate> = [latest].into_iter().chain(earlier).collect();
        days.extend(self.days_to_compare_again(settings, latest, now).await?);
        Ok(days)
    }

    /// Returns the days that must be compared again, among the days before the latest [`AUTOMATIC_DAYS`] days. A day
    /// must be compared again if its comparison was interrupted, or if the bank was still processing payments of the
    /// day. Reads the latest [`DAYS_TO_CHECK`] comparisons.
    async fn days_to_compare_again(
        &self,
        settings: &Settings,
        latest: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Vec<NaiveDate>, DailyComparisonError> {
        let processing_days = settings.payment_limits.max_processing_days;
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

/// Logs the result of the comparison of `day`, or that the next call continues the comparison.
fn log_comparison(day: &DayReconciliation) {
    let date = day.on;
    let differences = day.difference_count();
    let is_complete = day.ended_at.is_some();
    if is_complete && !day.is_clean() {
        let not_compared = day.not_compared.len();
        tracing::error!(%date, differences, not_compared, "{DIFFERENCES_MESSAGE}: see `dueday reconcile`");
    }
    match is_complete {
        true => tracing::info!(%date, differences, "{DAY_COMPARED_MESSAGE}"),
        false => tracing::info!(%date, step = %day.step, "the next call continues the comparison"),
    }
}
