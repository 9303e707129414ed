//! The explanation why a subscription was or was not charged on a day, from its own records and the records of that
//! day's runs.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use super::past_holds::{HoldKind, HoldRecords};
use super::{ChargeReason, LaterOutcome, find_charge_reason};
use billing::{AccountId, AttemptEnd, AttemptRecord, PaymentRecords, Subscription, SubscriptionId};
use days::RequestedDay;
use days::relevant_records;
use days::{DayReader, ShardProof, ShardState};
use store::{Batch, Paging, Table, TableError};

/// An explanation why a subscription was or was not charged on a day, with the records on which it is based.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChargeExplanation {
    /// The current state of the subscription.
    pub subscription: Subscription,
    pub day: RequestedDay,
    pub why: ChargeReason,
    /// The records of the explained day, of the month of that day, and of the explained payment.
    pub records: PaymentRecords,
    /// Whether the open attempt of the subscription has lasted longer than a bank may process a payment.
    pub is_attempt_late: bool,
    /// The state of the subscription's shard on the explained day, from the run records of the payment batch; `None`
    /// for a day in the future.
    pub run: Option<ShardProof>,
}

/// The machine-readable reason of an explanation, for the API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        as = Reason,
        description = "Why a subscription was or was not charged on the day. `charged`: it was charged. `open`: an \
            attempt began, and its outcome is unknown. `declined`, `rejected`, `dropped`: an attempt failed on the \
            day. `between_tries`: an earlier attempt failed, and none was made on the day. `owed`: a payment was owed, \
            and no attempt is recorded; the codes `not_walked` (no run reached the end of the shard), `held_back` (a \
            run stopped early or deferred rows), `left_unsettled` (a run left payments unsettled, possibly this one) \
            and `unexplained` are more exact variants of it. `paid`, `waived`: the payment of the month was already \
            paid or waived. `stopped`: the subscription was paused, cancelled or unpaid. `disputed`: the payment \
            method was disputed. `open_finding`: a payment without a receipt waited for a person. `ending`: the \
            subscription is to be cancelled on the due date. `not_begun`: the first payment is due later. `not_due`: no payment was due. `planned`: the charge is planned for the day. `unrecorded`: \
            the month should be paid, waived or owed, but is none of them. `expired`: records of the day may have \
            expired."
    )
)]
pub enum ReasonCode {
    Charged,
    Open,
    Declined,
    Rejected,
    Dropped,
    BetweenTries,
    /// The payment was owed. The explanation is for an account, so it does not contain the runs of that day.
    Owed,
    /// The payment was owed, and no run reached the end of the shard.
    NotWalked,
    /// The payment was owed, and a run stopped early or deferred rows.
    HeldBack,
    /// The payment was owed, and the runs left payments of the shard unsettled. This payment may be one of them.
    LeftUnsettled,
    /// The payment was owed, the runs processed the shard to its end without charging it, and the records do not explain
    /// why.
    Unexplained,
    Paid,
    Waived,
    Stopped,
    /// The payment method is disputed, so neither a payment that is owed now nor a later one is charged.
    Disputed,
    /// The gateway has a payment without a receipt, and a person must decide before the next charge.
    OpenFinding,
    Ending,
    NotBegun,
    NotDue,
    Planned,
    Unrecorded,
    Expired,
}

/// Explains why the subscription `id` of `account` was or was not charged on the day `on` (today, if `None`). Dates are
/// dates in the time zone of the table's policy. Returns `None` if the subscription does not exist.
pub async fn explain_charge_on_day(
    table: &Table,
    account: &AccountId,
    id: SubscriptionId,
    on: Option<NaiveDate>,
    now: DateTime<Utc>,
) -> Result<Option<ChargeExplanation>, TableError> {
    let policy = table.policy();
    let zone = policy.zone;
    let today = now.with_timezone(&zone).date_naive();
    let kept_days = u32::try_from(table.receipt_retention().num_days()).unwrap_or(u32::MAX);
    let day = RequestedDay { on: on.unwrap_or(today), today, zone, kept_days };
    // Read the payment records after the other items: then they also contain the payments that a concurrent run settles
    // while this function reads the other items.
    let Some(subscription) = table.get_subscription(account, id).await? else { return Ok(None) };
    let run =
        if day.is_in_future() { None } else { Some(read_shard_proof(table, &day, subscription.shard, now).await?) };
    let records = table.get_payment_records(account, id, now).await?;
    let hold_records = read_hold_records(table, account, now).await?;
    let why = find_charge_reason(&subscription, &records, &hold_records, &policy, &day);
    let records = relevant_records(records, &day, why.due_on());
    let is_attempt_late = is_attempt_late(table, &subscription, now).await?;
    Ok(Some(ChargeExplanation { subscription, day, why, records, is_attempt_late, run }))
}

/// Returns whether the open attempt of `subscription` has lasted longer than a bank may process a payment, as
/// `dueday status` counts it. Sends a GetItem request if there is an open attempt.
async fn is_attempt_late(table: &Table, subscription: &Subscription, now: DateTime<Utc>) -> Result<bool, TableError> {
    let Some(attempt) = &subscription.attempt else { return Ok(false) };
    let limits = table.get_settings().await?.map(|settings| settings.payment_limits).unwrap_or_default();
    Ok(limits.is_attempt_late(attempt, now))
}

/// Reads the items of `account` that show when its subscriptions were not charged. Sends three Query requests.
async fn read_hold_records(table: &Table, account: &AccountId, now: DateTime<Utc>) -> Result<HoldRecords, TableError> {
    Ok(HoldRecords {
        actions: table.get_actions_by_account(account, &Paging::all(), now).await?.items,
        disputes: table.get_disputes_by_account(account).await?,
        findings: table.get_findings_by_account(account).await?,
    })
}

/// Reads the run records of `day`, and returns the state of the shard `shard` that they alone prove: a later run that
/// settles a payment is no reason why it was not charged on `day`.
async fn read_shard_proof(
    table: &Table,
    day: &RequestedDay,
    shard: u32,
    now: DateTime<Utc>,
) -> Result<ShardProof, TableError> {
    let mut reader = DayReader::new(table, Batch::Payments, shard + 1, now).limit_to_shard(shard);
    Ok(reader.read(day.on).await?.without_later_runs().prove_shard(shard))
}

impl ChargeExplanation {
    /// Returns the explanation as the customer may see it: without the state of the shard, and without the decline
    /// codes of the gateway.
    pub fn for_account(mut self) -> Self {
        self.run = None;
        self.records.attempts.iter_mut().for_each(|attempt| attempt.code.clear());
        if let ChargeReason::Tried { attempt, .. } | ChargeReason::BetweenTries { last: attempt, .. } = &mut self.why {
            attempt.code.clear();
        }
        self
    }

    /// Returns whether a successful charge is recorded on the explained day.
    pub fn is_charged(&self) -> bool {
        matches!(self.why, ChargeReason::Charged(_))
    }

    /// Returns the code of the explanation.
    pub fn reason(&self) -> ReasonCode {
        match &self.why {
            ChargeReason::Charged(_) => ReasonCode::Charged,
            ChargeReason::Open(_) => ReasonCode::Open,
            ChargeReason::Tried { attempt, .. } => match attempt.outcome {
                AttemptEnd::Declined => ReasonCode::Declined,
                AttemptEnd::Rejected => ReasonCode::Rejected,
                AttemptEnd::Dropped => ReasonCode::Dropped,
            },
            ChargeReason::BetweenTries { .. } => ReasonCode::BetweenTries,
            ChargeReason::Owed { .. } => self.run.as_ref().map_or(ReasonCode::Owed, reason_of_missing_charge),
            ChargeReason::Paid(_) => ReasonCode::Paid,
            ChargeReason::Waived(_) => ReasonCode::Waived,
            ChargeReason::Held { hold, .. } => match hold.kind {
                HoldKind::Cancelled | HoldKind::Unpaid | HoldKind::Paused => ReasonCode::Stopped,
                HoldKind::Disputed => ReasonCode::Disputed,
                HoldKind::OpenFinding => ReasonCode::OpenFinding,
            },
            ChargeReason::Ending { .. } => ReasonCode::Ending,
            ChargeReason::NotBegun { .. } => ReasonCode::NotBegun,
            ChargeReason::NotDue { .. } => ReasonCode::NotDue,
            ChargeReason::Planned { .. } => ReasonCode::Planned,
            ChargeReason::Unrecorded { .. } => ReasonCode::Unrecorded,
            ChargeReason::Expired => ReasonCode::Expired,
        }
    }

    /// Returns whether an operator must act: the payment is still owed, and the records show a failure or do not
    /// explain why the payment was not charged on that day.
    pub fn needs_attention(&self) -> bool {
        match &self.why {
            ChargeReason::Open(_) => self.is_attempt_late,
            ChargeReason::Unrecorded { .. } => true,
            ChargeReason::Held { hold, .. } => hold.kind == HoldKind::OpenFinding && hold.until.is_none(),
            ChargeReason::Owed { due_on, next } => !self.may_still_run() && self.is_unresolved_since(*due_on, *next),
            ChargeReason::Tried { attempt, next } => {
                attempt.outcome == AttemptEnd::Rejected && self.is_unresolved_since(attempt.due_on, *next)
            }
            _ => false,
        }
    }

    /// Returns whether the explained day is today, and no run of the shard has begun yet.
    fn may_still_run(&self) -> bool {
        self.day.on == self.day.today && self.run.as_ref().is_none_or(|run| run.walked == ShardState::Missing)
    }

    /// Returns whether the payment due on `due_on` has no outcome in the records after the explained day. Outcomes are:
    /// the payment succeeded, it was waived, or an attempt failed and no newer attempt is open. `next` is the outcome
    /// after the explained day; `None` if the records contain none.
    fn is_unresolved_since(&self, due_on: NaiveDate, next: Option<LaterOutcome>) -> bool {
        let is_later = |attempt: &AttemptRecord| self.day.date_of(attempt.processed_at) > self.day.on;
        match next {
            Some(LaterOutcome::Paid { .. } | LaterOutcome::Waived { .. }) => false,
            Some(LaterOutcome::Open { .. }) => true,
            _ => !self.records.attempts.iter().any(|attempt| attempt.due_on == due_on && is_later(attempt)),
        }
    }
}

/// Returns the reason code of an owed payment that no run has attempted, from the state of the shard.
fn reason_of_missing_charge(run: &ShardProof) -> ReasonCode {
    match (run.walked, &run.stopped) {
        (_, Some(_)) => ReasonCode::HeldBack,
        (ShardState::Complete | ShardState::Running | ShardState::LeftBehind | ShardState::Rejected, None)
            if run.rows_without_final_outcome() > 0 =>
        {
            ReasonCode::LeftUnsettled
        }
        (ShardState::Complete | ShardState::Running | ShardState::LeftBehind | ShardState::Rejected, None) => {
            ReasonCode::Unexplained
        }
        (
            ShardState::Missing
            | ShardState::Expired
            | ShardState::Open
            | ShardState::Gap
            | ShardState::Unfinished
            | ShardState::Stopped,
            None,
        ) => ReasonCode::NotWalked,
    }
}
