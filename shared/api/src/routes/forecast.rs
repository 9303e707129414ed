//! `GET /forecast`: what will be charged on the days ahead. For the operator.

use audit::forecast;
use axum::Json;
use axum::extract::State;
use billing::{Currency, Day, Sums};
use chrono::NaiveDate;
use rest::caller::Operator;
use rest::list::UnreadableView;
use rest::parameters::{Query, UpTo};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Api;

/// How far the forecast looks ahead.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForecastQuery {
    /// So many months from today.
    #[serde(default)]
    #[param(inline)]
    months: UpTo<12, 3>,
}

/// What will be charged, as far as the calendar can tell.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Forecast)]
pub struct ForecastView {
    /// The first day.
    from: NaiveDate,
    /// The day after the last.
    until: NaiveDate,
    /// The days on which anything is charged, the earliest first.
    data: Vec<ForecastDay>,
    /// Entries of the index that cannot be read, and are not counted.
    unreadable: Vec<UnreadableView>,
}

/// What will be charged on a day.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForecastDay {
    /// The day.
    date: NaiveDate,
    /// The number of payments.
    payments: u64,
    /// What they come to, by currency.
    sums: Vec<SumView>,
}

/// A sum in a currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sum)]
pub struct SumView {
    /// How much, in minor units.
    #[schema(value_type = i64)]
    amount: i64,
    /// The currency.
    currency: Currency,
}

impl SumView {
    /// The sums of each currency.
    pub fn of(sums: &Sums) -> Vec<Self> {
        sums.iter().map(|sum| Self { amount: sum.minor(), currency: sum.currency() }).collect()
    }
}

impl ForecastDay {
    fn new(date: NaiveDate, day: &Day) -> Self {
        Self { date, payments: day.charges(), sums: SumView::of(day.sums()) }
    }
}

/// What will be charged on the days ahead
///
/// Every payment on its day by the calendar, retries on theirs, nothing of what ends before. Not what customers and banks
/// will do.
#[utoipa::path(
    get,
    path = "/forecast",
    operation_id = "get_forecast",
    tag = "operation",
    params(ForecastQuery),
    responses((status = 200, description = "The forecast", body = ForecastView))
)]
pub async fn read(
    State(api): State<Api>,
    now: Now,
    _: Operator,
    Query(ForecastQuery { months: UpTo(months) }): Query<ForecastQuery>,
) -> Result<Json<ForecastView>, Problem> {
    let (shards, today) = (api.shards().await?, now.today);
    let months = u32::try_from(months).unwrap_or(u32::MAX);
    let (forecast, unreadable) = forecast(&api.table, shards, today, months).await?;
    let data = forecast.days().map(|(date, day)| ForecastDay::new(date, day)).collect();
    Ok(Json(ForecastView { from: today, until: forecast.until(), data, unreadable: UnreadableView::all(unreadable)? }))
}
