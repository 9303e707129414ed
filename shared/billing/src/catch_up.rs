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
        let last = Period::of(subscription.last_due_by(today)?);
        let latest = subscription.cancel_from.map_or(last, |from| from.previous().min(last));
        let oldest = Period::of(subscription.due_on);
        if latest <= oldest {
            return None;
        }
        let waived = waive(subscription, oldest, latest, WaivedReason::Outage, now);
        let mut next = subscription.clone();
        next.move_to(latest);
        next.next_payment_on = Some(next.due_on);
        Some(Settlement { waived, ..next.into() })
    }
}
