//! `GET .../subscriptions/{subscription}/why`: why it was charged on a day, or was not.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use shared::audit::{Explanation, Reason, explain};
use shared::billing::{
    AccountId, AttemptEnd, AttemptRecord, Currency, Status, SubscriptionId, WaivedPeriod, WaivedReason,
};
use utoipa::ToSchema;

use super::runs::ShardWalk;
use super::subscriptions::OpenPayment;
use crate::parameters::{Parameters, SubscriptionPath};
use crate::{Api, Caller, Problem, ReceiptView, schema};

/// Why a subscription was charged on a day, or was not, as far as is recorded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct View {
    #[schema(value_type = schema::Id)]
    account: AccountId,
    #[schema(value_type = schema::SubscriptionId)]
    subscription: SubscriptionId,
    /// The day that was asked about, in the billing time zone.
    date: NaiveDate,
    /// Whether a charge is recorded on that day.
    charged: bool,
    #[schema(value_type = schema::Reason)]
    reason: Reason,
    /// The same in a sentence.
    answer: String,
    /// Whether somebody must look: a payment is owed for a reason that is not the customer's, or that is not recorded.
    needs_attention: bool,
    /// The due date of the payment that the answer speaks of.
    due_date: Option<NaiveDate>,
    /// How the subscription is now; since when is not recorded.
    #[schema(value_type = schema::Status)]
    status: Status,
    /// When the payment batch will look next.
    next_payment_date: Option<NaiveDate>,
    open_payment: Option<OpenPayment>,
    /// Of that month, of the payment the answer speaks of, and of that very day; attempts and waived months likewise.
    receipts: Vec<ReceiptView>,
    attempts: Vec<FailedAttempt>,
    waived: Vec<WaivedMonth>,
    /// What the day's payment run recorded of the subscription's shard. For the operator; null of a day ahead.
    run: Option<ShardWalk>,
}

/// An attempt that did not succeed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FailedAttempt {
    number: u32,
    due_date: NaiveDate,
    #[schema(value_type = schema::Amount)]
    amount: i64,
    #[schema(value_type = schema::Currency)]
    currency: Currency,
    #[schema(value_type = schema::AttemptEnd)]
    outcome: AttemptEnd,
    /// The gateway's code, for the operator.
    code: Option<String>,
    /// Whether trying the same payment method again is useless.
    hard: bool,
    processed_at: DateTime<Utc>,
}

/// A month that was owed and is waived.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaivedMonth {
    due_date: NaiveDate,
    #[schema(value_type = schema::WaivedReason)]
    reason: WaivedReason,
    waived_at: DateTime<Utc>,
}

impl From<AttemptRecord> for FailedAttempt {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            number: attempt.attempt_no,
            due_date: attempt.due_on,
            amount: attempt.amount.minor(),
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
        Self { due_date: due_on, reason, waived_at: waived_at }
    }
}

impl From<Explanation> for View {
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
    params(
        ("account" = schema::Id, Path),
        ("subscription" = schema::SubscriptionId, Path),
        ("date" = Option<NaiveDate>, Query)
    ),
    responses((status = 200, description = "The explanation", body = View))
)]
pub async fn read(
    State(api): State<Api>,
    path: SubscriptionPath,
    caller: Caller,
    parameters: Parameters,
) -> Result<Json<View>, Problem> {
    let on = parameters.only(&["date"])?.date("date")?;
    let explained = explain(&api.table, (&path.account, path.id), on, api.zone, api.clock.now()).await?;
    let explained = explained.ok_or_else(Problem::no_subscription)?;
    Ok(Json(match caller {
        Caller::Operator => explained.into(),
        Caller::Account(_) => explained.for_account().into(),
    }))
}
