//! Why a change of a subscription is refused.

use chrono::NaiveDate;

use super::{MoneyError, Status};

/// Why a transition was refused. The subscription is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a subscription that is {status} cannot be {action}")]
    Status { status: Status, action: &'static str },
    #[error("a subscription that is to be cancelled cannot be paused; undo the cancellation first")]
    Ending,
    #[error("the payment of {due_on} is owed; it can be paused once that is paid")]
    Owed { due_on: NaiveDate },
    #[error("the payment day cannot be changed while it is paused; resume it first")]
    PausedDay,
    #[error("a subscription that is {status} has no period to end; cancel it now")]
    NoPeriod { status: Status },
    #[error("it was to be cancelled on {on}, and that day has come")]
    Ended { on: NaiveDate },
    #[error("nothing is owed: the next payment is due on {due_on}")]
    NothingOwed { due_on: NaiveDate },
    #[error("its payment method is disputed; another one has to be given, or an operator retries it")]
    Disputed,
    #[error("a payment of {due_on} is being made; it can be {action} once that is settled")]
    Paying { due_on: NaiveDate, action: &'static str },
    #[error(transparent)]
    Amount(#[from] MoneyError),
    #[error("must not lie before {today}, the day of creation; {named} does")]
    FirstPaymentPast { named: NaiveDate, today: NaiveDate },
    #[error("must not lie after {latest}; {named} does")]
    FirstPaymentFar { named: NaiveDate, latest: NaiveDate },
    #[error("must fall on the payment day: for that month {expected}, not {named}")]
    FirstPaymentDay { named: NaiveDate, expected: NaiveDate },
}
