//! `GET .../subscriptions/{subscription}/schedule`: the next due and reminder dates.

use axum::Json;
use axum::extract::State;
use billing::{Currency, Planned};
use chrono::NaiveDate;
use rest::body::MinorUnits;
use rest::parameters::{Path, Query, UpTo};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::parameters::SubscriptionPath;
use crate::{Api, missing};

/// How far the schedule looks ahead.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScheduleQuery {
    /// At most this many months.
    #[serde(default)]
    #[param(inline)]
    months: UpTo<36, 6>,
}

/// What is planned, as far as today can tell.
#[derive(Debug, Serialize, ToSchema)]
pub struct Schedule {
    /// The payments, the earliest first.
    data: Vec<PlannedPayment>,
}

/// A payment that is planned.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlannedPayment {
    /// The due date.
    due_date: NaiveDate,
    /// When it will be charged: on the due date, or later if it is owed already.
    payment_date: NaiveDate,
    /// When the customer will be reminded; null if that is past.
    reminder_date: Option<NaiveDate>,
    /// How much will be charged, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
}

impl PlannedPayment {
    fn new(planned: Planned) -> Self {
        let Planned { due_on, payment_on, reminder_on, amount } = planned;
        Self {
            due_date: due_on,
            payment_date: payment_on,
            reminder_date: reminder_on,
            amount: amount.into(),
            currency: amount.currency(),
        }
    }
}

/// The next payments and reminders
///
/// None while paused, unpaid or cancelled, and none from the date it will be cancelled on.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}/schedule",
    operation_id = "get_schedule",
    tag = "subscriptions",
    params(SubscriptionPath, ScheduleQuery),
    responses((status = 200, description = "The schedule", body = Schedule))
)]
pub async fn read(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<SubscriptionPath>,
    Query(ScheduleQuery { months: UpTo(months) }): Query<ScheduleQuery>,
) -> Result<Json<Schedule>, Problem> {
    let stored = api.table.get_subscription(&path.account, path.id).await?.ok_or_else(missing::subscription)?;
    let planned = stored.planned(api.billing.policy.lead, now.today, months);
    Ok(Json(Schedule { data: planned.into_iter().map(PlannedPayment::new).collect() }))
}
