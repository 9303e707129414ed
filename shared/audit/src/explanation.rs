//! Why a subscription was charged on a day, or was not: its own records, joined with those of that day's runs.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::Serialize;

use super::{Next, Why, why};
use billing::{AccountId, AttemptEnd, AttemptRecord, Records, Subscription, SubscriptionId};
use days::AskedDay;
use days::around;
use days::{DayReader, ShardProof, Walked};
use store::{Batch, Table, TableError};

/// An answer, and what it rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// As it is now.
    pub subscription: Subscription,
    pub day: AskedDay,
    pub why: Why,
    /// What is kept of that month, of the payment the answer speaks of, and of that very day.
    pub records: Records,
    /// What the payment batch of that day recorded of its shard; absent of a day ahead.
    pub run: Option<ShardProof>,
}

/// The answer in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`open`: begun, and not known yet what came of it. `owed`: nothing came of it, for a reason that is the operator's:\n\
            `not_walked` (no run came to the end), `held_back` (a run stopped or held back), `left_unsettled` (a run left payments,\n\
            this may be one of them), `unexplained`. `between_tries`: declined before, and not tried on that day. `paid`, `waived`:\n\
            the month was, by that day. `unrecorded`: the month is neither, and is not owed, though it should be. `expired`: records of\n\
            that day may have expired."
    )
)]
pub enum Reason {
    Charged,
    Open,
    Declined,
    Rejected,
    Dropped,
    BetweenTries,
    /// It was owed; what the runs of that day did is not told.
    Owed,
    /// It was owed, and its shard was not walked to its end.
    NotWalked,
    /// It was owed, and the run stopped or held back.
    HeldBack,
    /// It was owed, and the run left payments of its shard unsettled: this may be one of them.
    LeftUnsettled,
    /// It was owed, the run came to its end without it, and nothing tells why.
    Unexplained,
    Paid,
    Waived,
    Stopped,
    /// It is owed, or will be, and its payment method is disputed.
    Disputed,
    Ending,
    NotBegun,
    NotDue,
    Planned,
    Unrecorded,
    Expired,
}

/// Why the subscription `id` of `account` was charged on the day `on`, or was not, as far as `table` tells by `now`;
/// `None` if there is no such subscription. Days are those of `zone`; today if `on` is absent.
///
/// # Errors
/// [`TableError`].
pub async fn explain(
    table: &Table,
    (account, id): (&AccountId, SubscriptionId),
    on: Option<NaiveDate>,
    zone: Tz,
    now: DateTime<Utc>,
) -> Result<Option<Explanation>, TableError> {
    let today = now.with_timezone(&zone).date_naive();
    let kept_days = u32::try_from(table.receipts_kept().num_days()).unwrap_or(u32::MAX);
    let day = AskedDay { on: on.unwrap_or(today), today, zone, kept_days };
    // The records last: what a run settles in between is then seen.
    let Some(subscription) = table.get_subscription(account, id).await? else { return Ok(None) };
    let run = if day.is_ahead() { None } else { Some(proof(table, &day, subscription.shard, now).await?) };
    let records = table.get_records(account, id, now).await?;
    let why = why(&subscription, &records, &day);
    let records = around(records, &day, why.due_on());
    Ok(Some(Explanation { subscription, day, why, records, run }))
}

async fn proof(table: &Table, day: &AskedDay, shard: u32, now: DateTime<Utc>) -> Result<ShardProof, TableError> {
    let mut reader = DayReader::new(table, Batch::Payments, shard + 1, day.zone, now).of_shard(shard);
    Ok(reader.read(day.on).await?.prove_shard(shard))
}

impl Explanation {
    /// As the account itself may see it: without the runs, and without the gateway's codes.
    pub fn for_account(mut self) -> Self {
        self.run = None;
        self.records.attempts.iter_mut().for_each(|attempt| attempt.code.clear());
        if let Why::Tried { attempt, .. } | Why::BetweenTries { last: attempt, .. } = &mut self.why {
            attempt.code.clear();
        }
        self
    }

    /// Whether a charge is recorded on that day.
    pub fn is_charged(&self) -> bool {
        matches!(self.why, Why::Charged(_))
    }

    /// The answer in a word.
    pub fn reason(&self) -> Reason {
        match &self.why {
            Why::Charged(_) => Reason::Charged,
            Why::Open(_) => Reason::Open,
            Why::Tried { attempt, .. } => match attempt.outcome {
                AttemptEnd::Declined => Reason::Declined,
                AttemptEnd::Rejected => Reason::Rejected,
                AttemptEnd::Dropped => Reason::Dropped,
            },
            Why::BetweenTries { .. } => Reason::BetweenTries,
            Why::Owed { .. } => self.run.as_ref().map_or(Reason::Owed, of_run),
            Why::Paid(_) => Reason::Paid,
            Why::Waived(_) => Reason::Waived,
            Why::Stopped { .. } => Reason::Stopped,
            Why::Disputed { .. } => Reason::Disputed,
            Why::Ending { .. } => Reason::Ending,
            Why::NotBegun { .. } => Reason::NotBegun,
            Why::NotDue { .. } => Reason::NotDue,
            Why::Planned { .. } => Reason::Planned,
            Why::Unrecorded { .. } => Reason::Unrecorded,
            Why::Expired => Reason::Expired,
        }
    }

    /// Whether somebody must look: something went wrong, or is not explained, and the payment is owed still.
    pub fn needs_attention(&self) -> bool {
        match &self.why {
            Why::Open(_) | Why::Unrecorded { .. } => true,
            Why::Owed { due_on, next } => !self.is_yet_to_run() && self.is_left(*due_on, *next),
            Why::Tried { attempt, next } => {
                attempt.outcome == AttemptEnd::Rejected && self.is_left(attempt.due_on, *next)
            }
            _ => false,
        }
    }

    /// Whether the day's runs may still come.
    fn is_yet_to_run(&self) -> bool {
        self.day.on == self.day.today && self.run.as_ref().is_none_or(|run| run.walked == Walked::Missing)
    }

    /// Whether the payment due on `due_on` has not been tried to its end since that day.
    fn is_left(&self, due_on: NaiveDate, next: Option<Next>) -> bool {
        let is_later = |attempt: &AttemptRecord| self.day.date_of(attempt.processed_at) > self.day.on;
        match next {
            Some(Next::Paid { .. } | Next::Waived { .. }) => false,
            Some(Next::Open { .. }) => true,
            _ => !self.records.attempts.iter().any(|attempt| attempt.due_on == due_on && is_later(attempt)),
        }
    }
}

/// What the runs of a shard say of a payment that was owed, and of which nothing came.
fn of_run(run: &ShardProof) -> Reason {
    match (run.walked, &run.stopped) {
        (_, Some(_)) => Reason::HeldBack,
        (Walked::Complete | Walked::Running | Walked::LeftBehind | Walked::Rejected, None) if run.unsettled() > 0 => {
            Reason::LeftUnsettled
        }
        (Walked::Complete | Walked::Running | Walked::LeftBehind | Walked::Rejected, None) => Reason::Unexplained,
        (
            Walked::Missing | Walked::Expired | Walked::Open | Walked::Gap | Walked::Unfinished | Walked::Stopped,
            None,
        ) => Reason::NotWalked,
    }
}
