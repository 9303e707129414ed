//! The reasons why a change of a subscription is refused.

use chrono::NaiveDate;

use crate::subscriptions::subscription::SubscriptionStatus;
use crate::values::calendar::Period;
use crate::values::money::MoneyError;

/// The reason why a change was refused. The subscription is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    #[error("a subscription that is {status} cannot be {action}")]
    Status { status: SubscriptionStatus, action: &'static str },
    #[error("a subscription with a planned cancellation cannot be paused; undo the cancellation first")]
    Ending,
    #[error("the payment due on {due_on} is owed; the subscription can be paused after it is paid")]
    Owed { due_on: NaiveDate },
    #[error("the payment day of a paused subscription cannot be changed; resume the subscription first")]
    PausedDay,
    #[error("a subscription that is {status} has no current period; cancel it immediately")]
    NoPeriod { status: SubscriptionStatus },
    #[error("the cancellation was planned for {on} and cannot be undone any more, because that day has been reached")]
    Ended { on: NaiveDate },
    #[error("no payment is owed; the next payment is due on {due_on}")]
    NothingOwed { due_on: NaiveDate },
    #[error(
        "the payment method is disputed; the customer must give another one, or an operator must retry the payment"
    )]
    Disputed,
    #[error(
        "an attempt to charge the payment due on {due_on} is open; the subscription can be {action} once it is settled"
    )]
    Paying { due_on: NaiveDate, action: &'static str },
    #[error("the subscription ends on {on}: nothing more is charged")]
    Ends { on: NaiveDate },
    #[error("the earliest month that is neither paid nor waived is {due}, not {month}")]
    OtherMonth { month: Period, due: Period },
    #[error(
        "the gateway has a payment for the month due on {due_on} that has no receipt: decide about it first (`dueday findings`)"
    )]
    OpenFinding { due_on: NaiveDate },
    #[error(transparent)]
    Amount(#[from] MoneyError),
    #[error("must not be before {today}, the day of creation; it is {requested}")]
    FirstPaymentPast { requested: NaiveDate, today: NaiveDate },
    #[error("must not be after {latest}; it is {requested}")]
    FirstPaymentFar { requested: NaiveDate, latest: NaiveDate },
    #[error("must be on the payment day, which is {expected} in that month, not {requested}")]
    NotOnPaymentDay { requested: NaiveDate, expected: NaiveDate },
    #[error("must not be before the first payment, which is due on {first}; it is {requested}")]
    EndsBeforeFirstPayment { requested: NaiveDate, first: NaiveDate },
}
