//! `GET /forecast`: the forecast of charges. For operators.

use audit::forecast_charges;
use axum::Json;
use axum::extract::State;
use billing::{ChargeTotal, Currency, MoneySums};
use chrono::NaiveDate;
use rest::list::UnreadableView;
use rest::parameters::{BoundedNumber, Query};
use rest::{OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Api;

/// The query parameters of the forecast.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForecastQuery {
    /// The length of the forecast, in months from today.
    #[serde(default)]
    #[param(inline)]
    months: BoundedNumber<12, 3>,
}

/// The charges that are planned from today on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Forecast)]
pub struct ForecastView {
    /// The first day of the forecast: today.
    from: NaiveDate,
    /// The day after the last day of the forecast.
    until: NaiveDate,
    /// The days with at least one planned charge, the earliest first.
    data: Vec<ForecastDay>,
    /// Index entries that cannot be read. They are not included in the forecast.
    unreadable: Vec<UnreadableView>,
}

/// The planned charges of a day.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForecastDay {
    /// The day on which the payments are planned.
    date: NaiveDate,
    /// The number of planned payments.
    payments: u64,
    /// The total amount of the planned payments in each currency.
    sums: Vec<SumView>,
}

/// A total amount in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sum)]
pub struct SumView {
    /// The amount, in minor units.
    #[schema(value_type = i64)]
    amount: i64,
    /// The currency.
    currency: Currency,
}

impl SumView {
    /// Converts `sums` into the wire format: one sum per currency.
    pub fn from_sums(sums: &MoneySums) -> Vec<Self> {
        sums.iter().map(|sum| Self { amount: sum.minor(), currency: sum.currency() }).collect()
    }
}

impl ForecastDay {
    fn new(date: NaiveDate, day: &ChargeTotal) -> Self {
        Self { date, payments: day.charges(), sums: SumView::from_sums(day.sums()) }
    }
}

/// Get the forecast of charges
///
/// Returns the number and sum of the payments that are planned for each day: payments on their due dates, and scheduled
/// retries. Payments after the end of a subscription are not included. The forecast does not predict declines or
/// cancellations.
#[utoipa::path(
    get,
    path = "/forecast",
    operation_id = "get_forecast",
    tag = "operation",
    params(ForecastQuery),
    responses((status = 200, description = "The forecast", body = ForecastView))
)]
pub async fn get_payment_forecast(
    State(api): State<Api>,
    now: RequestTime,
    _: OperatorAccess,
    Query(ForecastQuery { months: BoundedNumber(months) }): Query<ForecastQuery>,
) -> Result<Json<ForecastView>, Problem> {
    let (shards, today) = (api.read_shard_count().await?, now.today);
    let months = u32::try_from(months).unwrap_or(u32::MAX);
    let (forecast, unreadable) = forecast_charges(&api.table, shards, today, months).await?;
    let data = forecast.days().map(|(date, day)| ForecastDay::new(date, day)).collect();
    Ok(Json(ForecastView {
        from: today,
        until: forecast.first_day_after(),
        data,
        unreadable: UnreadableView::from_errors(unreadable)?,
    }))
}
