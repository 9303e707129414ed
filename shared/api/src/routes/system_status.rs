//! `GET /status`: the state of both batches yesterday and today, and the problems that a person must look at. For
//! operators.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use days::{BatchDay, Concern, DayState, LatestAudit, LatestComparison, ProcessFacts, QueueState, SystemStatus};
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::Serialize;
use store::Batch;
use utoipa::ToSchema;

use super::forecast::SumView;
use crate::Api;

/// The state of the whole system.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SystemStatus)]
pub struct StatusView {
    /// The current date in the billing time zone.
    today: NaiveDate,
    /// True if charging is switched on. While it is off, runs charge nothing.
    charging: bool,
    /// The limits of the payment batch, by name, such as `max-charges`. `none` means that there is no such limit.
    limits: BTreeMap<String, String>,
    /// The states of the payment batch and of the reminder batch: for today, and also for yesterday if the table was
    /// created before yesterday. Earlier days come first.
    days: Vec<BatchDayView>,
    /// The number of successful payments and open attempts that count for the ceilings of today.
    charges_today: u64,
    /// True if a run of today has not recorded its end, so that it may have charged more than `charges_today`.
    charges_may_be_more: bool,
    /// The sums of the charges of today, one for each currency.
    sums_today: Vec<SumView>,
    /// The date of the oldest payment that is due and not settled; null if no payment is due.
    oldest_due_on: Option<NaiveDate>,
    /// The number of open findings: payments at the gateway without a receipt, which a person must resolve.
    open_findings: usize,
    /// The latest audit; null if there was none in the last 90 days.
    latest_audit: Option<LatestAuditView>,
    /// The latest day that was compared with the gateway; null if no day was compared.
    latest_comparison: Option<LatestComparisonView>,
    /// The queues of the deployment. On one machine, their messages are in the table and in files of the data folder.
    queues: Vec<QueueState>,
    /// What this deployment does not do, because it has only the core (`Parts=core`); empty if it has all parts.
    not_deployed: Vec<&'static str>,
    /// What a person must look at, as sentences; empty if nothing.
    problems: Vec<String>,
}

/// A day of one batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchDay)]
pub struct BatchDayView {
    /// The date.
    date: NaiveDate,
    /// The batch.
    batch: Batch,
    /// The state of the day, according to the run records.
    state: DayState,
    /// The number of shards whose run records prove that the day is complete.
    complete_shards: usize,
    /// The number of shards of the day.
    shards: usize,
}

/// The latest audit of the table.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatestAudit)]
pub struct LatestAuditView {
    /// The id of the audit.
    #[schema(value_type = UlidText)]
    id: String,
    /// The time at which the audit started.
    started_at: DateTime<Utc>,
    /// The time at which the audit ended; null while it is running, and if it was interrupted.
    ended_at: Option<DateTime<Utc>>,
    /// The number of violations that the audit found.
    violations: u64,
}

/// The latest day whose payments, refunds and disputes were compared with the gateway.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatestComparison)]
pub struct LatestComparisonView {
    /// The compared day in UTC.
    date: NaiveDate,
    /// The time at which the comparison was complete; null while it is running, and if it was interrupted.
    ended_at: Option<DateTime<Utc>>,
    /// The number of differences that the comparison found.
    differences: u64,
}

impl From<LatestComparison> for LatestComparisonView {
    fn from(LatestComparison { date, ended_at, differences, .. }: LatestComparison) -> Self {
        Self { date, ended_at, differences }
    }
}

impl From<BatchDay> for BatchDayView {
    fn from(BatchDay { date, batch, state, complete_shards, shards }: BatchDay) -> Self {
        Self { date, batch, state, complete_shards, shards }
    }
}

impl From<LatestAudit> for LatestAuditView {
    fn from(LatestAudit { id, started_at, ended_at, violations, .. }: LatestAudit) -> Self {
        Self { id: id.to_string(), started_at, ended_at, violations }
    }
}

/// Get the state of the system
///
/// Returns whether yesterday is complete, the progress of the batches of today, whether charging is on, the ceilings, the oldest due
/// payment, the queues, and what a person must look at.
#[utoipa::path(
    get,
    path = "/status",
    operation_id = "get_status",
    tag = "operation",
    responses((status = 200, description = "The state of the system", body = StatusView))
)]
pub async fn get_system_status(
    State(api): State<Api>,
    now: RequestTime,
    _: OperatorAccess,
    _: Query<NoParameters>,
) -> Result<Json<StatusView>, Problem> {
    let settings = api.read_settings().await?;
    let queues = match &api.queues {
        Some(queues) => queues.read_queue_states().await,
        None => Vec::new(),
    };
    let process = ProcessFacts { queues: Ok(queues.clone()), check_schedule: api.parts.check_schedule() };
    let status = SystemStatus::read(&api.table, &settings, process, now.at).await?;
    let problems = status.concerns.iter().map(Concern::to_string).collect();
    Ok(Json(StatusView {
        today: status.today,
        charging: status.charging,
        limits: status.limits,
        days: status.days.into_iter().map(BatchDayView::from).collect(),
        charges_today: status.charged_today.payments,
        charges_may_be_more: status.charged_today.may_be_more,
        sums_today: SumView::from_sums(&status.charged_today.sums),
        oldest_due_on: status.oldest_due_on,
        open_findings: status.open_findings,
        latest_audit: status.latest_audit.map(LatestAuditView::from),
        latest_comparison: status.latest_comparison.map(LatestComparisonView::from),
        queues,
        not_deployed: api.parts.missing_parts().to_vec(),
        problems,
    }))
}
