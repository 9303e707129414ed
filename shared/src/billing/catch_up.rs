//! Catch-up: which of several months that an outage of ours has missed are charged.

use chrono::{DateTime, NaiveDate, Utc};

use strum::EnumString;

use super::settle::waive;
use super::{Period, Settlement, Status, Subscription, WaivedReason};

/// What is done about months that we have missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = CatchUpError, parse_err_fn = unknown)]
pub enum CatchUp {
    /// Every one is charged on its own, oldest first, one a day.
    #[default]
    Each,
    /// Only the latest is; the older ones are waived.
    Latest,
}

/// A word for it that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be each or latest, not {text:?}")]
pub struct CatchUpError {
    text: String,
}

fn unknown(text: &str) -> CatchUpError {
    CatchUpError { text: text.chars().take(32).collect() }
}

impl CatchUp {
    /// What is to be written before `subscription` is charged on `today`: its due date moved to the latest month owed,
    /// and the older ones waived. `None` when nothing is: one month is owed, or a payment of the oldest has been tried.
    pub fn skip(self, subscription: &Subscription, today: NaiveDate, now: DateTime<Utc>) -> Option<Settlement> {
        let is_missed = subscription.status == Status::Active && subscription.attempt.is_none();
        if self == CatchUp::Each || !is_missed {
            return None;
        }
        let is_charged = |due_on: NaiveDate| subscription.cancel_from.is_none_or(|from| Period::of(due_on) < from);
        let day = subscription.payment_day;
        let owed =
            std::iter::successors(Some(subscription.due_on), |due_on| Some(day.due_in(Period::of(*due_on).next())));
        let latest = owed.take_while(|due_on| *due_on <= today && is_charged(*due_on)).last()?;
        if latest == subscription.due_on {
            return None;
        }
        let next = Subscription { due_on: latest, next_payment_on: Some(latest), ..subscription.clone() };
        let mut waived = waive(&next, Period::of(subscription.due_on), WaivedReason::Missed, now);
        // The oldest has a date of its own, whatever the payment day is now.
        if let Some(first) = waived.first_mut() {
            first.due_on = subscription.due_on;
        }
        Some(Settlement { subscription: next, receipt: None, record: None, waived })
    }
}
