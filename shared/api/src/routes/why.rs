//! `GET .../subscriptions/{subscription}/why`: explains why a subscription was or was not charged on a day.

use audit::{ChargeExplanation, ReasonCode, explain_charge_on_day};
use axum::Json;
use axum::extract::State;
use billing::{
    AccountId, AttemptEnd, AttemptRecord, Currency, SubscriptionId, SubscriptionStatus, WaivedPeriod, WaivedReason,
};
use chrono::{DateTime, NaiveDate, Utc};
use rest::body::MinorUnits;
use rest::parameters::{CivilDate, Path, Query};
use rest::{Caller, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::runs::ShardRunView;
use super::subscription_view::OpenPayment;
use crate::parameters::SubscriptionPath;
use crate::{Api, ReceiptView, problems};

/// The query parameters of an explanation.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExplanationQuery {
    /// The day to explain; today in the billing time zone if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    date: Option<CivilDate>,
}

/// An explanation why a subscription was or was not charged on a day, based on the stored records.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// The id of the account that pays.
    account: AccountId,
    /// The id of the subscription.
    subscription: SubscriptionId,
    /// The explained day, in the billing time zone.
    date: NaiveDate,
    /// Whether a successful charge is recorded on that day.
    charged: bool,
    /// The explanation as a code.
    reason: ReasonCode,
    /// The explanation as a sentence.
    answer: String,
    /// Whether an operator must act: a payment is owed, and the recorded cause is not the customer, or no cause is recorded.
    needs_attention: bool,
    /// The due date of the payment that the explanation is about; null if it is not about a payment.
    due_date: Option<NaiveDate>,
    /// The current state of the subscription; past states are not recorded.
    status: SubscriptionStatus,
    /// The date of the next charge; null if no charge is planned.
    next_payment_date: Option<NaiveDate>,
    /// The open payment attempt; null if there is none.
    open_payment: Option<OpenPayment>,
    /// The receipts of payments that were due in the month of `date` or on `due_date`, or that succeeded on `date`.
    receipts: Vec<ReceiptView>,
    /// The failed attempts of payments that were due in the month of `date` or on `due_date`, or that failed on `date`.
    attempts: Vec<FailedAttemptView>,
    /// The waived months that were due in the month of `date` or on `due_date`, or that were waived on `date`.
    waived: Vec<WaivedMonth>,
    /// The progress of that day's payment runs in the shard of the subscription. Null for callers with an account's
    /// token, and for a day in the future.
    run: Option<ShardRunView>,
}

/// A failed payment attempt.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FailedAttempt)]
pub struct FailedAttemptView {
    /// The sequence number of the attempt, which counts all attempts of the subscription.
    number: u32,
    /// The due date of the payment.
    due_date: NaiveDate,
    /// The amount of the attempt, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The outcome of the attempt.
    outcome: AttemptEnd,
    /// The gateway's code for a declined or rejected attempt; the status of the subscription for a dropped attempt.
    /// Null for callers with an account's token, and if there is no code.
    code: Option<String>,
    /// Whether the decline is final, so that a retry with the same payment method is useless.
    hard: bool,
    /// The time at which the outcome was stored.
    processed_at: DateTime<Utc>,
}

/// A waived month: its payment will never be charged.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaivedMonth {
    /// The due date of the month's payment.
    due_date: NaiveDate,
    /// The reason why the month was waived.
    reason: WaivedReason,
    /// The time at which the month was waived.
    waived_at: DateTime<Utc>,
}

impl From<AttemptRecord> for FailedAttemptView {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            number: attempt.attempt_no,
            due_date: attempt.due_on,
            amount: attempt.amount.into(),
            currency: attempt.amount.currency(),
            outcome: attempt.outcome,
            code: Some(attempt.code).filter(|code| !code.is_empty()),
            hard: attempt.hard,
            processed_at: attempt.processed_at,
        }
    }
}

impl From<WaivedPeriod> for WaivedMonth {
    fn from(WaivedPeriod { due_on, reason, waived_at, .. }: WaivedPeriod) -> Self {
        Self { due_date: due_on, reason, waived_at }
    }
}

impl From<ChargeExplanation> for ExplanationView {
    fn from(explanation: ChargeExplanation) -> Self {
        let (answer, reason) = (explanation.to_string(), explanation.reason());
        let (charged, needs_attention) = (explanation.is_charged(), explanation.needs_attention());
        let ChargeExplanation { subscription, day, why, records, run, .. } = explanation;
        let next_payment_date = subscription.next_charge_on();
        Self {
            account: subscription.account,
            subscription: subscription.id,
            date: day.on,
            charged,
            reason,
            answer,
            needs_attention,
            due_date: why.due_on(),
            status: subscription.status,
            next_payment_date,
            open_payment: subscription.attempt.map(OpenPayment::from),
            receipts: records.receipts.into_iter().map(ReceiptView::from).collect(),
            attempts: records.attempts.into_iter().map(FailedAttemptView::from).collect(),
            waived: records.waived.into_iter().map(WaivedMonth::from).collect(),
            run: run.map(ShardRunView::from),
        }
    }
}

/// Explain a charge
///
/// Explains why the subscription was or was not charged on a day. The explanation is based on the stored records, which
/// expire after about six months. Callers with an account's token do not get the progress of the runs and the
/// gateway's codes.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}/why",
    operation_id = "explain_charge",
    tag = "subscriptions",
    params(SubscriptionPath, ExplanationQuery),
    responses((status = 200, description = "The explanation", body = ExplanationView))
)]
pub async fn get_charge_explanation(
    State(api): State<Api>,
    now: RequestTime,
    Path(path): Path<SubscriptionPath>,
    caller: Caller,
    Query(ExplanationQuery { date }): Query<ExplanationQuery>,
) -> Result<Json<ExplanationView>, Problem> {
    let on = date.map(|CivilDate(date)| date);
    let explanation = explain_charge_on_day(&api.table, &path.account, path.id, on, now.at).await?;
    let explanation = explanation.ok_or_else(problems::subscription_not_found)?;
    Ok(Json(match caller {
        Caller::Operator(_) => explanation.into(),
        Caller::Account { .. } => explanation.for_account().into(),
    }))
}
