//! `GET .../subscriptions/{subscription}/schedule`: the planned payments and reminders.

use axum::Json;
use axum::extract::State;
use billing::{Currency, PaymentReason};
use chrono::NaiveDate;
use rest::body::MinorUnits;
use rest::parameters::{BoundedNumber, Path, Query};
use rest::{Problem, RequestTime};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::parameters::SubscriptionPath;
use crate::{Api, problems};

/// The query parameters of the schedule.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScheduleQuery {
    /// The largest number of planned payments; a subscription has one payment per month.
    #[serde(default)]
    #[param(inline)]
    months: BoundedNumber<36, 6>,
}

/// The payment schedule of a subscription, computed from its current state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleView {
    /// The planned payments, the earliest first.
    data: Vec<PlannedPaymentView>,
    /// The due dates before the last of these payments that are never charged: after an outage or an unpaid time, the
    /// charge of a later month waives them.
    waived_dates: Vec<NaiveDate>,
}

/// A planned payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlannedPayment)]
pub struct PlannedPaymentView {
    /// The due date of the payment.
    due_date: NaiveDate,
    /// The date on which the payment will be charged: the due date, or a later date if the due date has passed. For a payment
    /// in progress, the date of its attempt.
    payment_date: NaiveDate,
    /// The date on which the customer will be reminded; null if no reminder will be sent.
    reminder_date: Option<NaiveDate>,
    /// The amount that will be charged, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// Why the payment is charged on its date.
    reason: PaymentReason,
}

impl PlannedPaymentView {
    fn new(planned: billing::PlannedPayment) -> Self {
        let billing::PlannedPayment { due_on, payment_on, reminder_on, amount, reason, .. } = planned;
        Self {
            due_date: due_on,
            payment_date: payment_on,
            reminder_date: reminder_on,
            amount: amount.into(),
            currency: amount.currency(),
            reason,
        }
    }
}

/// Get the payment schedule of a subscription
///
/// Returns the next payments and their reminders. While the subscription is paused, unpaid, cancelled or disputed, or while a
/// payment without a receipt waits for a person, only a payment in progress is planned. None is planned from `cancel_date`
/// on.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}/schedule",
    operation_id = "get_schedule",
    tag = "subscriptions",
    params(SubscriptionPath, ScheduleQuery),
    responses((status = 200, description = "The schedule", body = ScheduleView))
)]
pub async fn get_payment_schedule(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<SubscriptionPath>,
    Query(ScheduleQuery { months: BoundedNumber(months) }): Query<ScheduleQuery>,
) -> Result<Json<ScheduleView>, Problem> {
    let stored =
        api.table.get_subscription(&path.account, path.id).await?.ok_or_else(problems::subscription_not_found)?;
    let planned: Vec<_> = stored.planned_payments(&api.table.policy(), now.today).take(months).collect();
    let waived_dates = stored.waived_due_dates(&planned);
    Ok(Json(ScheduleView { data: planned.into_iter().map(PlannedPaymentView::new).collect(), waived_dates }))
}
