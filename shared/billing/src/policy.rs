//! The merchant's settings for billing: retries, reminders, outages, pauses and disputes.

use chrono::NaiveDate;
use strum::EnumString;

use super::calendar::days_before;
use super::{AfterLastRetry, Dunning};

/// The settings of the merchant for retries, reminders, outages, pauses and disputes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    pub dunning: Dunning,
    pub after_last_retry: AfterLastRetry,
    /// How many days before the due date a reminder is sent.
    pub lead: LeadDays,
    pub catch_up: CatchUp,
    pub on_resume: OnResume,
    pub after_won_dispute: AfterWonDispute,
}

/// How many days before the due date a reminder is sent: 0 to 27, 7 by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeadDays(u32);

impl LeadDays {
    /// The maximum number of days from a reminder to the due date. With more days, a reminder could be sent before the
    /// payment of the previous month.
    pub const MAX_DAYS: u32 = 27;

    /// Creates the setting from a number of days; `None` if `days` is more than [`LeadDays::MAX_DAYS`].
    pub fn new(days: u32) -> Option<Self> {
        (days <= Self::MAX_DAYS).then_some(Self(days))
    }

    /// Returns the number of days.
    pub fn days(self) -> u32 {
        self.0
    }

    /// Returns the date of the reminder for a payment that is due on `due_on`.
    pub fn before(self, due_on: NaiveDate) -> NaiveDate {
        days_before(due_on, self.0)
    }
}

impl Default for LeadDays {
    fn default() -> Self {
        Self(7)
    }
}

/// The rule that selects which months are charged after an outage. It applies if several months fell due during the
/// outage and were not charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = ParseCatchUpError, parse_err_fn = unknown_catch_up)]
pub enum CatchUp {
    /// Each month is charged: one month per day, the oldest first.
    #[default]
    Each,
    /// Only the latest month is charged; the older months are waived.
    Latest,
}

/// The error for a value of `DUEDAY_CATCH_UP` that is neither `each` nor `latest`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be each or latest, not {text:?}")]
pub struct ParseCatchUpError {
    text: String,
}

/// Returns the error for a `text` that is not a value of [`CatchUp`].
fn unknown_catch_up(text: &str) -> ParseCatchUpError {
    ParseCatchUpError { text: text.chars().take(32).collect() }
}

/// Whether the last month that fell due during a pause is charged or waived when the subscription is resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = ParseOnResumeError, parse_err_fn = unknown_on_resume)]
pub enum OnResume {
    /// The last month that fell due during the pause is owed, and payable on the day of the resumption.
    #[default]
    Charge,
    /// The last month that fell due during the pause is waived, unless it falls due on the day of the resumption. The
    /// next payment is on the next payment day.
    Wait,
}

/// The error for a value of `DUEDAY_RESUME` that is neither `charge` nor `wait`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be charge or wait, not {text:?}")]
pub struct ParseOnResumeError {
    text: String,
}

/// Returns the error for a `text` that is not a value of [`OnResume`].
fn unknown_on_resume(text: &str) -> ParseOnResumeError {
    ParseOnResumeError { text: text.chars().take(32).collect() }
}

/// Whether the periods that fell due during a dispute are waived or owed when the dispute is won.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(
    serialize_all = "snake_case",
    parse_err_ty = ParseAfterWonDisputeError,
    parse_err_fn = unknown_after_won_dispute
)]
pub enum AfterWonDispute {
    /// The periods are waived: the customer is not charged for several months at once.
    #[default]
    Waive,
    /// The periods are owed. [`CatchUp`] decides whether each period or only the latest period is charged.
    Charge,
}

/// The error for a value of `DUEDAY_AFTER_WON_DISPUTE` that is neither `waive` nor `charge`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be waive or charge, not {text:?}")]
pub struct ParseAfterWonDisputeError {
    text: String,
}

/// Returns the error for a `text` that is not a value of [`AfterWonDispute`].
fn unknown_after_won_dispute(text: &str) -> ParseAfterWonDisputeError {
    ParseAfterWonDisputeError { text: text.chars().take(32).collect() }
}
