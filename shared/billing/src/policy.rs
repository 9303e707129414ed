//! The merchant's settings that the rules of a subscription depend on.

use chrono::NaiveDate;
use strum::EnumString;

use super::calendar::days_before;
use super::{AfterLastRetry, Dunning};

/// The merchant's settings that settling depends on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    pub dunning: Dunning,
    pub after_last_retry: AfterLastRetry,
    pub lead: LeadDays,
    pub catch_up: CatchUp,
    pub on_resume: OnResume,
    pub after_won_dispute: AfterWonDispute,
}

/// How many days before the due date a reminder is sent: 0 to 27, 7 by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeadDays(u32);

impl LeadDays {
    /// The longest lead, so that a reminder never precedes the month's earlier payment.
    pub const MAX: u32 = 27;

    /// A lead of `days`; `None` past [`LeadDays::MAX`].
    pub fn new(days: u32) -> Option<Self> {
        (days <= Self::MAX).then_some(Self(days))
    }

    /// How many days.
    pub fn days(self) -> u32 {
        self.0
    }

    /// When to remind of a payment due on `due_on`.
    pub fn before(self, due_on: NaiveDate) -> NaiveDate {
        days_before(due_on, self.0)
    }
}

impl Default for LeadDays {
    fn default() -> Self {
        Self(7)
    }
}

/// What is done about months that we have missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = CatchUpError, parse_err_fn = unknown_catch_up)]
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

fn unknown_catch_up(text: &str) -> CatchUpError {
    CatchUpError { text: text.chars().take(32).collect() }
}

/// What becomes of the last month that fell due in a pause, once it is resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = OnResumeError, parse_err_fn = unknown_on_resume)]
pub enum OnResume {
    /// It is owed, and payable on that day.
    #[default]
    Charge,
    /// It is waived, unless it falls due on that day: payments go on with the next payment day.
    Wait,
}

/// A word for it that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be charge or wait, not {text:?}")]
pub struct OnResumeError {
    text: String,
}

fn unknown_on_resume(text: &str) -> OnResumeError {
    OnResumeError { text: text.chars().take(32).collect() }
}

/// Whether the periods that fell due during a dispute are waived or owed, once it is won.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = AfterWonDisputeError, parse_err_fn = unknown_after_won_dispute)]
pub enum AfterWonDispute {
    /// They are waived: the customer is not charged for several months at once.
    #[default]
    Waive,
    /// They are owed: each is charged, or only the latest, as the setting for missed periods says.
    Charge,
}

/// A word that names no [`AfterWonDispute`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be waive or charge, not {text:?}")]
pub struct AfterWonDisputeError {
    text: String,
}

fn unknown_after_won_dispute(text: &str) -> AfterWonDisputeError {
    AfterWonDisputeError { text: text.chars().take(32).collect() }
}
