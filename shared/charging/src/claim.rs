//! Claims due payments.

use billing::{Attempt, ClaimRefusal, Subscription, claim_refusal};
use chrono::{DateTime, NaiveDate, Utc};
use store::{Claim, ClaimOutcome, SubscriptionKey, TableError};
use ulid::Ulid;

use crate::Charger;

/// The number of times that a payment is claimed: the date in the index may be stale.
const MAX_CLAIMS: u32 = 2;

/// The permission to charge an attempt that this worker has claimed or taken over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChargePermit {
    pub subscription: Subscription,
    pub attempt: Attempt,
    /// The time of the claim or take-over.
    pub(crate) claimed_at: DateTime<Utc>,
}

/// The reason why a due payment was not claimed.
#[derive(Debug)]
pub enum NotClaimed {
    /// The stored subscription refuses the claim.
    Refused {
        reason: ClaimRefusal,
        stored: Box<Subscription>,
    },
    /// The subscription does not exist.
    Missing,
    Table(TableError),
}

impl From<TableError> for NotClaimed {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl ChargePermit {
    /// Creates the permission to charge the open attempt of `subscription`, which `claim` has claimed or taken over.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if the subscription has no open attempt, although a claim always writes one.
    pub(crate) fn from_claim(subscription: Subscription, claim: Claim) -> Result<Self, TableError> {
        match subscription.attempt.clone() {
            Some(attempt) => Ok(Self { subscription, attempt, claimed_at: claim.now }),
            None => Err(TableError::unreadable(
                SubscriptionKey::from_subscription(&subscription).key(),
                "the subscription was claimed, but has no open attempt",
            )),
        }
    }
}

impl Charger {
    /// Claims the payment of the subscription `key`, in the table with the id `table_id`. `seen_on` is the payment date
    /// in the index. If that date was stale, claims again with the stored date.
    ///
    /// # Errors
    /// [`NotClaimed`] if the payment was not claimed.
    pub async fn claim_payment(
        &self,
        key: &SubscriptionKey,
        table_id: Ulid,
        mut seen_on: NaiveDate,
        today: NaiveDate,
    ) -> Result<ChargePermit, NotClaimed> {
        let mut claims = 0;
        loop {
            claims += 1;
            let claim = self.new_claim();
            let stored = match self.engine.table.claim_payment(key, seen_on, table_id, claim).await? {
                ClaimOutcome::Claimed(held) => return Ok(ChargePermit::from_claim(*held, claim)?),
                ClaimOutcome::Refused(None) => return Err(NotClaimed::Missing),
                ClaimOutcome::Refused(Some(stored)) => stored,
            };
            match claim_refusal(&stored, claim.token, seen_on, today, claim.now) {
                ClaimRefusal::OwnClaim => return Ok(ChargePermit::from_claim(*stored, claim)?),
                ClaimRefusal::DueOn(on) if claims < MAX_CLAIMS => seen_on = on,
                reason => return Err(NotClaimed::Refused { reason, stored }),
            }
        }
    }
}
