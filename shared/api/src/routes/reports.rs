//! `GET /reports/days`: the successful payments of each day. For operators.

use std::time::Duration;

use audit::{ProductSales, ReportSource, ReportedDay, UnsettledNow, build_sales_report};
use axum::Json;
use axum::extract::State;
use billing::{Currency, Sku};
use chrono::NaiveDate;
use days::DayState;
use rest::list::UnreadableView;
use rest::parameters::{CivilDate, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Api;

/// The time limit of a report. API Gateway ends a request after 30 seconds, so there is time left for an error
/// response.
const REPORT_TIME_LIMIT: Duration = Duration::from_secs(25);

/// The query parameters of the report: its first and its last day.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReportQuery {
    /// The first day; the first day of the current month if absent. It must not be earlier than the oldest stored
    /// receipts.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    from: Option<CivilDate>,
    /// The last day; today if absent. A date in the future stands for today.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    to: Option<CivilDate>,
}

/// The successful payments of each day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Report)]
pub struct ReportView {
    /// The first day of the report.
    from: NaiveDate,
    /// The last day of the report.
    to: NaiveDate,
    /// Every day of the report since the table was created, the earliest first.
    data: Vec<ReportedDayView>,
    /// Stored items that cannot be read. They are not included in the report.
    unreadable: Vec<UnreadableView>,
}

/// The successful payments of a day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportedDay)]
pub struct ReportedDayView {
    /// The reported day.
    date: NaiveDate,
    /// Whether the payment runs have processed every due payment of the day. If not, later runs may charge more
    /// payments of it.
    complete: bool,
    /// The state of the day, according to the records of its payment runs and reminder runs.
    state: DayState,
    /// The payments that are not settled at this moment; null for days before today.
    now: Option<UnsettledNowView>,
    /// The payments that succeeded on this day, by currency and product. Their due dates may be earlier.
    taken: Vec<TakenView>,
}

/// The payments that are not settled at this moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UnsettledNow)]
pub struct UnsettledNowView {
    /// The number of due payments without an attempt.
    due: u64,
    /// The number of payments with an open attempt: in doubt, processing at the bank, or being charged.
    open: u64,
}

impl From<UnsettledNow> for UnsettledNowView {
    fn from(UnsettledNow { due, open }: UnsettledNow) -> Self {
        Self { due, open }
    }
}

/// The successful payments for a product in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Taken)]
pub struct TakenView {
    /// The merchant's identifier of the product.
    sku: Sku,
    /// The number of successful payments.
    payments: u64,
    /// The gross amount of these payments, in minor units: before refunds and reversals.
    #[schema(value_type = i64)]
    amount: i64,
    /// The number of refunds that were requested on this day, of payments of this or an earlier day. A refund that
    /// failed on this day is not counted.
    refunds: u64,
    /// The amount of these refunds, in minor units, minus the earlier refunds that failed on this day.
    #[schema(value_type = i64)]
    refunded_amount: i64,
    /// The number of payments that the bank took back on this day.
    reversals: u64,
    /// The amount that the bank took back on this day, in minor units.
    #[schema(value_type = i64)]
    reversed_amount: i64,
    /// The gross amount minus the refunds and reversals of this day, in minor units. Negative if the customers got more
    /// back on this day than they paid.
    #[schema(value_type = i64)]
    net_amount: i64,
    /// The currency of the amounts.
    currency: Currency,
}

impl From<ProductSales> for TakenView {
    fn from(taken: ProductSales) -> Self {
        Self {
            sku: taken.sku,
            payments: taken.payments,
            amount: taken.sum.minor(),
            refunds: taken.refunds,
            refunded_amount: taken.refunded_amount,
            reversals: taken.reversals,
            reversed_amount: taken.reversed_amount,
            net_amount: taken.net_amount,
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

/// Get a report of the daily payments
///
/// Returns the number and sum of the successful payments, refunds and reversals of each day, by currency and product, and
/// whether the day is complete. This operation reads the whole table. It fails with 503 if the table is too large. In that case, use the
/// command `dueday report`, or the events in your archive.
#[utoipa::path(
    get,
    path = "/reports/days",
    operation_id = "get_report",
    tag = "operation",
    params(ReportQuery),
    responses((status = 200, description = "The report", body = ReportView))
)]
pub async fn get_daily_payments_report(
    State(api): State<Api>,
    now: RequestTime,
    _: OperatorAccess,
    Query(ReportQuery { from, to }): Query<ReportQuery>,
) -> Result<Json<ReportView>, Problem> {
    let settings = api.read_settings().await?;
    let source = ReportSource { table: &api.table, settings: &settings, now: now.at };
    let days = source.reported_days(from.map(NaiveDate::from), to.map(NaiveDate::from));
    let days = days.map_err(|error| Problem::refused_field(error.field(), error.to_string()))?;
    let (from, to) = (*days.start(), *days.end());
    let report = tokio::time::timeout(REPORT_TIME_LIMIT, build_sales_report(source, days)).await;
    let report = report.map_err(|_| Problem::report_too_large())??;
    let data = report.days.into_iter().map(ReportedDayView::from).collect();
    Ok(Json(ReportView { from, to, data, unreadable: UnreadableView::from_errors(report.unreadable)? }))
}
