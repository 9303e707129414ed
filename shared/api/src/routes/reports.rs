//! `GET /reports/days`: what was taken on each day. For the operator.

use std::time::Duration;

use audit::{Reading, ReportedDay, Taken, UnsettledNow, report, reported_from};
use axum::Json;
use axum::extract::State;
use billing::{Currency, Sku};
use chrono::{Datelike as _, NaiveDate};
use days::DayState;
use rest::caller::Operator;
use rest::list::UnreadableView;
use rest::parameters::{CivilDate, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Api;

/// Then it is given up, while an answer can still be given: an HTTP API waits 30 seconds.
const PATIENCE: Duration = Duration::from_secs(25);

/// Which days are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReportQuery {
    /// The first day; the first of this month if absent. Receipts are there for as long as they are kept.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    from: Option<CivilDate>,
    /// The last day; today if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    to: Option<CivilDate>,
}

/// What was taken on each day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Report)]
pub struct ReportView {
    /// The first day.
    from: NaiveDate,
    /// The last day.
    to: NaiveDate,
    /// Every day, the earliest first.
    data: Vec<ReportedDayView>,
    /// Items that cannot be read, and are not counted.
    unreadable: Vec<UnreadableView>,
}

/// What was taken on a day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportedDay)]
pub struct ReportedDayView {
    /// The day.
    date: NaiveDate,
    /// Whether its runs prove that it was done; if not, more may be taken.
    complete: bool,
    /// What its runs prove.
    state: DayState,
    /// What is not settled at this moment; null of days before today.
    now: Option<UnsettledNowView>,
    /// By currency and product. A payment is of the day on which it was made, whatever month it was for.
    taken: Vec<TakenView>,
}

/// The payments that are not settled at this moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UnsettledNow)]
pub struct UnsettledNowView {
    /// Due and not begun.
    due: u64,
    /// Begun and not settled: in doubt, at the bank, or being charged.
    open: u64,
}

impl From<UnsettledNow> for UnsettledNowView {
    fn from(UnsettledNow { due, open }: UnsettledNow) -> Self {
        Self { due, open }
    }
}

/// What was taken for a product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Taken)]
pub struct TakenView {
    /// The product.
    sku: Sku,
    /// The number of payments.
    payments: u64,
    /// What they come to, in minor units.
    #[schema(value_type = i64)]
    amount: i64,
    /// The number of these payments that the bank took back since.
    reversed_payments: u64,
    /// What the bank took back of them, in minor units.
    #[schema(value_type = i64)]
    reversed_amount: i64,
    /// The currency.
    currency: Currency,
}

impl From<Taken> for TakenView {
    fn from(taken: Taken) -> Self {
        Self {
            sku: taken.sku,
            payments: taken.payments,
            amount: taken.sum.minor(),
            reversed_payments: taken.reversed_payments,
            reversed_amount: taken.reversed_amount,
            currency: taken.sum.currency(),
        }
    }
}

impl From<ReportedDay> for ReportedDayView {
    fn from(ReportedDay { date, complete, state, now, taken }: ReportedDay) -> Self {
        let now = now.map(UnsettledNowView::from);
        Self { date, complete, state, now, taken: taken.into_iter().map(TakenView::from).collect() }
    }
}

/// What was taken on each day
///
/// By the receipts: count and sum by currency and product, and whether each day was done. It reads the whole table; a large one
/// is asked for its kept events.
#[utoipa::path(
    get,
    path = "/reports/days",
    operation_id = "get_report",
    tag = "operation",
    params(ReportQuery),
    responses((status = 200, description = "The days", body = ReportView))
)]
pub async fn days(
    State(api): State<Api>,
    now: Now,
    _: Operator,
    Query(ReportQuery { from, to }): Query<ReportQuery>,
) -> Result<Json<ReportView>, Problem> {
    let Now { at, today } = now;
    let to = to.map_or(today, NaiveDate::from);
    let from = from.map_or_else(|| today.with_day(1).unwrap_or(today), NaiveDate::from);
    let kept_from = reported_from(api.table.receipts_kept(), api.billing.zone, at);
    if from < kept_from {
        return Err(Problem::refused("from", format!("must be {kept_from} or later: older receipts have expired")));
    }
    if to > today || to < from {
        return Err(Problem::refused("to", format!("must be from {from} to {today}")));
    }
    let shards = api.shards().await?;
    let reading = Reading { table: &api.table, shards, zone: api.billing.zone, now: at };
    let report = tokio::time::timeout(PATIENCE, report(reading, from..=to)).await;
    let report = report.map_err(|_| Problem::too_large_a_report())??;
    let data = report.days.into_iter().map(ReportedDayView::from).collect();
    Ok(Json(ReportView { from, to, data, unreadable: UnreadableView::all(report.unreadable)? }))
}
