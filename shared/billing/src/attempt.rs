//! The attempt: one try at charging one due date, and its outcome.
//!
//! An attempt is frozen when it is claimed: amount, currency, payment method and due date never change after.
//! While its lease runs it belongs to whoever claimed it; afterwards to nobody, until someone takes it over.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Decline, Money, Payment, PaymentMethod};

/// Names one call of a claim or take-over, so that a lost answer can be told from another worker's write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub Ulid);

/// One open try at charging one due date.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attempt {
    /// The id of the table that made it; absent of those that were claimed before it was named.
    pub table: Option<Ulid>,
    /// Counts over the subscription's whole life and is never used twice.
    pub no: u32,
    pub due_on: NaiveDate,
    pub amount: Money,
    pub payment_method: PaymentMethod,
    /// Never rewritten: look-ups start a day before it.
    pub claimed_at: DateTime<Utc>,
    pub leased_until: DateTime<Utc>,
    pub held_by: Token,
}

impl Attempt {
    /// Whether nobody works on it any more.
    pub fn is_in_doubt(&self, now: DateTime<Utc>) -> bool {
        self.leased_until <= now
    }
}

/// What the gateway's answer, or its knowledge, means for the attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    Succeeded(Payment),
    /// It can no longer succeed.
    Declined(Decline),
    /// The gateway refused the request and made nothing.
    Rejected {
        code: String,
    },
    /// Stopped by the customer before the gateway knew anything of it.
    Dropped,
}
