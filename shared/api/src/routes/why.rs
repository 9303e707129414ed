//! `GET .../subscriptions/{subscription}/why`: why it was charged on a day, or was not.

use audit::{Explanation, Reason, explain};
use axum::Json;
use axum::extract::State;
use billing::{AccountId, AttemptEnd, AttemptRecord, Currency, Status, SubscriptionId, WaivedPeriod, WaivedReason};
use chrono::{DateTime, NaiveDate, Utc};
use rest::body::MinorUnits;
use rest::parameters::{CivilDate, Path, Query};
use rest::{Caller, Now, Problem};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::runs::ShardWalk;
use super::subscription_view::OpenPayment;
use crate::parameters::SubscriptionPath;
use crate::{Api, ReceiptView, missing};

/// Which day is asked about.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExplanationQuery {
    /// The day; today in the billing time zone if absent.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    date: Option<CivilDate>,
}

/// Why a subscription was charged on a day, or was not, as far as is recorded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// The account that pays.
    account: AccountId,
    /// The subscription.
    subscription: SubscriptionId,
    /// The day that was asked about, in the billing time zone.
    date: NaiveDate,
    /// Whether a charge is recorded on that day.
    charged: bool,
    /// The answer as one of a list.
    reason: Reason,
    /// The same in a sentence.
    answer: String,
    /// Whether somebody must look: a payment is owed for a reason that is not the customer's, or that is not recorded.
    needs_attention: bool,
    /// The due date of the payment that the answer speaks of.
    due_date: Option<NaiveDate>,
    /// How the subscription is now; since when is not recorded.
    status: Status,
    /// When the payment batch will look next.
    next_payment_date: Option<NaiveDate>,
    /// The payment that is being made.
    open_payment: Option<OpenPayment>,
    /// Receipts of that month, of the payment that the answer speaks of, and of that very day.
    receipts: Vec<ReceiptView>,
    /// Attempts that did not succeed, of the same.
    attempts: Vec<FailedAttempt>,
    /// Months that were waived, of the same.
    waived: Vec<WaivedMonth>,
    /// What the day's payment run recorded of the subscription's shard. For the operator; null of a day ahead.
    run: Option<ShardWalk>,
}

/// An attempt that did not succeed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FailedAttempt {
    /// Counts the attempts of the subscription.
    number: u32,
    /// The due date.
    due_date: NaiveDate,
    /// The amount, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// What came of it.
    outcome: AttemptEnd,
    /// The gateway's code, for the operator.
    code: Option<String>,
    /// Whether trying the same payment method again is useless.
    hard: bool,
    /// When.
    processed_at: DateTime<Utc>,
}

/// A month that was owed and is waived.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaivedMonth {
    /// The due date.
    due_date: NaiveDate,
    /// Why.
    reason: WaivedReason,
    /// When.
    waived_at: DateTime<Utc>,
}

impl From<AttemptRecord> for FailedAttempt {
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

impl From<Explanation> for ExplanationView {
    fn from(explanation: Explanation) -> Self {
        let (answer, reason) = (explanation.to_string(), explanation.reason());
        let (charged, needs_attention) = (explanation.is_charged(), explanation.needs_attention());
        let Explanation { subscription, day, why, records, run } = explanation;
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
            next_payment_date: subscription.next_payment_on,
            open_payment: subscription.attempt.map(OpenPayment::from),
            receipts: records.receipts.into_iter().map(ReceiptView::from).collect(),
            attempts: records.attempts.into_iter().map(FailedAttempt::from).collect(),
            waived: records.waived.into_iter().map(WaivedMonth::from).collect(),
            run: run.map(ShardWalk::from),
        }
    }
}

/// Why it was charged on a day, or was not
///
/// From the records alone, which are kept for six months. An account is not told what the runs and the gateway said.
#[utoipa::path(
    get,
    path = "/accounts/{account}/subscriptions/{subscription}/why",
    operation_id = "explain_charge",
    tag = "subscriptions",
    params(SubscriptionPath, ExplanationQuery),
    responses((status = 200, description = "The explanation", body = ExplanationView))
)]
pub async fn read(
    State(api): State<Api>,
    now: Now,
    Path(path): Path<SubscriptionPath>,
    caller: Caller,
    Query(ExplanationQuery { date }): Query<ExplanationQuery>,
) -> Result<Json<ExplanationView>, Problem> {
    let on = date.map(|CivilDate(date)| date);
    let explained = explain(&api.table, (&path.account, path.id), on, api.billing.zone, now.at).await?;
    let explained = explained.ok_or_else(missing::subscription)?;
    Ok(Json(match caller {
        Caller::Operator => explained.into(),
        Caller::Account(_) => explained.for_account().into(),
    }))
}
