//! The payment attempt: one try to charge the payment of one due date, and its outcome.
//!
//! A worker claims a payment before it charges the payment. The claim opens the attempt and freezes its amount,
//! currency, payment method and due date: they never change afterwards. The claim also gives the worker a lease, which
//! is a time during which only this worker may charge the attempt. After the lease has ended, another worker may take
//! the attempt over.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::records::payment::{Decline, Payment, PaymentMethod};
use crate::values::calendar::Period;
use crate::values::money::Money;

/// The id of one claim of an attempt, or of one take-over by another worker. If a worker writes a claim and the
/// response is lost, this token shows the worker that the claim in the table is its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimToken(pub Ulid);

/// An open payment attempt of one due date.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attempt {
    /// The id of the table in which the attempt was claimed; absent from an attempt that an earlier version of Dueday
    /// claimed.
    pub table: Option<Ulid>,
    /// The number of the attempt among all attempts of the subscription. No number is used twice.
    pub no: u32,
    pub due_on: NaiveDate,
    pub amount: Money,
    pub payment_method: PaymentMethod,
    /// The time of the first claim. A take-over by another worker does not change this time, because a look-up at the
    /// gateway uses this time to decide how old the listed payments may be.
    pub claimed_at: DateTime<Utc>,
    /// The end of the lease, after which another worker may take the attempt over.
    pub leased_until: DateTime<Utc>,
    /// The token of the claim or take-over to which the lease belongs.
    pub claim_token: ClaimToken,
}

impl Attempt {
    /// How long a worker leases an attempt that it has claimed or taken over. Afterwards another worker may take the
    /// attempt over. A worker begins its charge in the first quarter of this time, or not at all.
    pub const LEASE: TimeDelta = TimeDelta::minutes(20);

    /// Returns the period that the attempt pays.
    pub fn period(&self) -> Period {
        Period::from_day(self.due_on)
    }

    /// Returns whether the attempt is in doubt: its lease has ended without an outcome, so no worker is charging the
    /// attempt any more, and the charge may or may not have succeeded.
    pub fn is_in_doubt(&self, now: DateTime<Utc>) -> bool {
        self.leased_until <= now
    }
}

/// The outcome of a payment attempt, from the gateway's response to the charge or from a look-up at the gateway.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AttemptOutcome {
    Succeeded(Payment),
    /// The payment failed, and cannot succeed any more.
    Declined(Decline),
    /// The gateway refused the request, and created no payment.
    Rejected {
        code: String,
    },
    /// The subscription was paused or cancelled before the gateway had created a payment.
    Dropped,
}
