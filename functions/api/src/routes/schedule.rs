//! `GET .../subscriptions/{subscription}/schedule`: the next due and reminder dates.

use axum::Json;
use axum::extract::State;
use chrono::NaiveDate;
use serde::Serialize;
use shared::billing::{Currency, Money, Planned};
use utoipa::ToSchema;

use crate::parameters::{Parameters, SubscriptionPath};
use crate::{Api, Problem, schema};

/// The schedule looks this many months ahead unless asked otherwise, and at most so many.
const DEFAULT_MONTHS: usize = 6;
const MAX_MONTHS: usize = 36;

/// What is planned, as far as today can tell.
#[derive(Debug, Serialize, ToSchema)]
pub struct Schedule {
    data: Vec<PlannedPayment>,
}

/// A payment that is planned.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlannedPayment {
    due_date: NaiveDate,
    /// When it will be charged: on the due date, or later if it is owed already.
    payment_date: NaiveDate,
    /// When the customer will be reminded; null if that is past.
    reminder_date: Option<NaiveDate>,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
}

impl PlannedPayment {
    fn new(planned: Planned, price: Money) -> Self {
        let Planned { due_on, payment_on, reminder_on } = planned;
        Self {
            due_date: due_on,
            payment_date: payment_on,
            reminder_date: reminder_on,
            amount: price.minor(),
            currency: price.currency(),
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
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("months" = inline(Option<schema::Months>), Query)
    ),
    responses((status = 200, description = "The schedule", body = Schedule))
)]
pub async fn read(
    State(api): State<Api>,
    path: SubscriptionPath,
    parameters: Parameters,
) -> Result<Json<Schedule>, Problem> {
    let months = parameters.only(&["months"])?.number("months", DEFAULT_MONTHS, MAX_MONTHS)?;
    let stored = api.table.get_subscription(&path.account, path.id).await?.ok_or_else(Problem::no_subscription)?;
    let planned = stored.planned(api.lead, api.today(), months);
    // The payment that is being made has the amount it was begun with.
    let open = stored.attempt.as_ref().map(|attempt| (attempt.due_on, attempt.amount));
    let price = |on: NaiveDate| open.filter(|(due_on, _)| *due_on == on).map_or(stored.price, |(_, amount)| amount);
    Ok(Json(Schedule { data: planned.into_iter().map(|p| PlannedPayment::new(p, price(p.due_on))).collect() }))
}
