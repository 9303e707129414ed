//! The policy: the merchant's settings for the billing time zone, retries, reminders, outages, pauses, disputes and the
//! storage of records.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use strum::{Display, EnumString};

use crate::settings::dunning::{AfterLastRetry, Dunning};
use crate::values::calendar::days_before;

/// The settings of the merchant that decide what happens on which day. The table stores them, so that every function
/// and every command uses the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The billing time zone, which determines today's date.
    pub zone: Tz,
    pub dunning: Dunning,
    pub after_last_retry: AfterLastRetry,
    /// How many days before the due date a reminder is sent.
    pub lead: LeadDays,
    pub catch_up: CatchUp,
    pub on_resume: OnResume,
    pub after_won_dispute: AfterWonDispute,
    /// The number of days for which receipts, other payment records and run records are stored.
    pub receipt_days: u32,
    /// The number of days for which the entries of the action log are stored.
    pub action_days: u32,
}

impl Policy {
    /// Returns the date of `instant` in the billing time zone.
    pub fn date_at(&self, instant: DateTime<Utc>) -> NaiveDate {
        instant.with_timezone(&self.zone).date_naive()
    }

    /// Returns how long receipts, other payment records and run records are stored.
    pub fn receipt_retention(&self) -> TimeDelta {
        TimeDelta::days(self.receipt_days.into())
    }

    /// Returns how long the entries of the action log are stored.
    pub fn action_retention(&self) -> TimeDelta {
        TimeDelta::days(self.action_days.into())
    }
}

impl Default for Policy {
    /// Returns the policy of a merchant who has set nothing. The receipts are stored for the six months in which customers
    /// see them, and a week.
    fn default() -> Self {
        Self {
            zone: Tz::UTC,
            dunning: Dunning::default(),
            after_last_retry: AfterLastRetry::default(),
            lead: LeadDays::default(),
            catch_up: CatchUp::default(),
            on_resume: OnResume::default(),
            after_won_dispute: AfterWonDispute::default(),
            receipt_days: 190,
            action_days: 730,
        }
    }
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
    pub fn date_before(self, due_on: NaiveDate) -> NaiveDate {
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum CatchUp {
    /// Each month is charged: one month per day, the oldest first.
    #[default]
    Each,
    /// Only the latest month is charged; the older months are waived.
    Latest,
}

/// Whether the last month that fell due during a pause is charged or waived when the subscription is resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum OnResume {
    /// The last month that fell due during the pause is owed, and payable on the day of the resumption.
    #[default]
    Charge,
    /// The last month that fell due during the pause is waived, unless it falls due on the day of the resumption. The
    /// next payment is on the next payment day.
    Wait,
}

/// Whether the periods that fell due during a dispute are waived or owed when the dispute is won.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum AfterWonDispute {
    /// The periods are waived: the customer is not charged for several months at once.
    #[default]
    Waive,
    /// The periods are owed. [`CatchUp`] decides whether each period or only the latest period is charged.
    Charge,
}
