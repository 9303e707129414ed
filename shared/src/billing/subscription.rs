//! The subscription and what a customer may do with it. Every transition is a pure function of the item and the day.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::calendar::days_after;
use super::{
    AccountId, Attempt, EmailAddress, Label, LeadDays, Money, PaymentDay, PaymentMethod, Period, ReminderClaim, Sku,
    SubscriptionId,
};

/// A first payment may be named at most this many days (ten years) ahead. Dates of more than four digits of year would
/// not compare as text in the indexes.
const MAX_DAYS_AHEAD: u32 = 3_652;

/// Where a subscription stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    /// A payment was declined and will be tried again.
    PastDue,
    /// The last retry was declined: it waits for a new payment method.
    Unpaid,
    Paused,
    /// Final.
    Cancelled,
}

impl Status {
    /// Whether a new attempt may be started.
    pub fn is_chargeable(self) -> bool {
        matches!(self, Status::Active | Status::PastDue)
    }

    /// The word used in the table and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::PastDue => "past_due",
            Status::Unpaid => "unpaid",
            Status::Paused => "paused",
            Status::Cancelled => "cancelled",
        }
    }
}

/// An agreement to pay an amount on the same day each month.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subscription {
    pub account: AccountId,
    pub id: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    /// Where its mail goes, if not to the account's address.
    pub email: Option<EmailAddress>,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    pub status: Status,
    /// The due date of the first period ever owed.
    pub first_due_on: NaiveDate,
    /// The due date of the earliest period not yet paid.
    pub due_on: NaiveDate,
    /// When the payment batch must look again; `None` is absent from the index.
    pub next_payment_on: Option<NaiveDate>,
    pub last_payment_at: Option<DateTime<Utc>>,
    /// When the reminder batch must look; `None` is absent from the index.
    pub next_reminder_on: Option<NaiveDate>,
    pub last_reminder_at: Option<DateTime<Utc>>,
    /// The due date the last reminder spoke of.
    pub reminded_for: Option<NaiveDate>,
    /// Declines in a row: the place in the retry schedule.
    pub failed_attempts: u32,
    /// The number of the last attempt ever claimed; never reset.
    pub attempt_seq: u32,
    pub attempt: Option<Attempt>,
    pub reminder_claim: Option<ReminderClaim>,
    /// The index partition, fixed at creation.
    pub shard: u32,
    pub created_at: DateTime<Utc>,
    /// Raised by one with every write.
    pub version: u64,
}

/// What is needed to begin a subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSubscription {
    pub account: AccountId,
    pub id: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    pub email: Option<EmailAddress>,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    /// `None`: the first occurrence of the payment day strictly after the day of creation.
    pub first_payment_on: Option<NaiveDate>,
}

/// Why a transition was refused. The subscription is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a {} subscription cannot be {action}", .status.as_str())]
    Status { status: Status, action: &'static str },
    #[error("must not lie before {today}, the day of creation; {named} does")]
    FirstPaymentPast { named: NaiveDate, today: NaiveDate },
    #[error("must not lie after {latest}; {named} does")]
    FirstPaymentFar { named: NaiveDate, latest: NaiveDate },
    #[error("must fall on the payment day: for that month {expected}, not {named}")]
    FirstPaymentDay { named: NaiveDate, expected: NaiveDate },
}

impl NewSubscription {
    /// The subscription as of `today`, to be kept in `shard`.
    ///
    /// # Errors
    /// A named first payment date that has passed or does not fall on the payment day.
    pub fn begin(
        self,
        shard: u32,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Subscription, Refusal> {
        let due_on = match self.first_payment_on {
            None => self.payment_day.first_after(today),
            Some(named) if named < today => return Err(Refusal::FirstPaymentPast { named, today }),
            Some(named) if named > days_after(today, MAX_DAYS_AHEAD) => {
                return Err(Refusal::FirstPaymentFar { named, latest: days_after(today, MAX_DAYS_AHEAD) });
            }
            Some(named) => {
                let expected = self.payment_day.due_in(Period::of(named));
                if named != expected {
                    return Err(Refusal::FirstPaymentDay { named, expected });
                }
                named
            }
        };
        Ok(Subscription {
            account: self.account,
            id: self.id,
            sku: self.sku,
            product_name: self.product_name,
            email: self.email,
            payment_day: self.payment_day,
            price: self.price,
            payment_method: self.payment_method,
            status: Status::Active,
            first_due_on: due_on,
            due_on,
            next_payment_on: Some(due_on),
            last_payment_at: None,
            next_reminder_on: Some(lead.before(due_on)),
            last_reminder_at: None,
            reminded_for: None,
            failed_attempts: 0,
            attempt_seq: 0,
            attempt: None,
            reminder_claim: None,
            shard,
            created_at: now,
            version: 1,
        })
    }
}

impl Subscription {
    /// Moves payments to another day of the month. The current due date moves within its month if both the old and
    /// the new one are still ahead and no attempt is open; otherwise the new day counts from the next period.
    ///
    /// # Errors
    /// [`Refusal::Status`] once cancelled.
    pub fn change_payment_day(
        &self,
        day: PaymentDay,
        lead: LeadDays,
        today: NaiveDate,
    ) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::Cancelled], "moved to another payment day")?;
        let mut changed = Subscription { payment_day: day, ..self.clone() };
        let moved = day.due_in(Period::of(self.due_on));
        if moved != self.due_on && self.due_on > today && moved > today && self.attempt.is_none() {
            changed.due_on = moved;
            if self.last_payment_at.is_none() && self.first_due_on == self.due_on {
                changed.first_due_on = moved;
            }
            if self.status == Status::Active {
                changed.schedule(lead, today);
            }
        }
        Ok(changed)
    }

    /// Stops payments until resumed. Months whose due date falls while paused are not owed. An open attempt is
    /// resolved first: the subscription stays in the payment index until then. Pausing twice changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Status`] while past due, unpaid or cancelled.
    pub fn pause(&self) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::PastDue, Status::Unpaid, Status::Cancelled], "paused")?;
        Ok(self.stopped(Status::Paused))
    }

    /// Takes payments up again on the first payment day not before `today` and not before the old due date.
    /// An attempt that is still open decides on its own due date first. Resuming twice changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Status`] while past due, unpaid or cancelled.
    pub fn resume(&self, lead: LeadDays, today: NaiveDate) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::PastDue, Status::Unpaid, Status::Cancelled], "resumed")?;
        let mut resumed = self.clone();
        if self.status == Status::Paused {
            resumed.status = Status::Active;
            if self.attempt.is_none() {
                if self.due_on < today {
                    resumed.due_on = self.payment_day.first_from(today);
                }
                resumed.schedule(lead, today);
            }
        }
        Ok(resumed)
    }

    /// Ends it for good, now. An open attempt is resolved first. Cancelling twice changes nothing.
    pub fn cancel(&self) -> Subscription {
        self.stopped(Status::Cancelled)
    }

    /// Enters both indexes for the current due date.
    pub(super) fn schedule(&mut self, lead: LeadDays, today: NaiveDate) {
        self.next_payment_on = Some(self.due_on);
        self.next_reminder_on = (self.due_on >= today).then(|| lead.before(self.due_on));
    }

    fn stopped(&self, status: Status) -> Subscription {
        Subscription {
            status,
            next_payment_on: self.next_payment_on.filter(|_| self.attempt.is_some()),
            next_reminder_on: None,
            ..self.clone()
        }
    }

    fn refuse_if(&self, statuses: &[Status], action: &'static str) -> Result<(), Refusal> {
        if statuses.contains(&self.status) { Err(Refusal::Status { status: self.status, action }) } else { Ok(()) }
    }
}
