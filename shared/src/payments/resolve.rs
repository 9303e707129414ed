//! Resolving by hand: settling an attempt whose outcome only a person can know, such as one that the gateway has lost.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::settle::{NotSettled, to_write};
use crate::billing::{
    AccountId, Attempt, GatewayToken, Outcome, Payment, PaymentStatus, Policy, Subscription, SubscriptionId, Token,
    settle,
};
use crate::clock::Clock;
use crate::table::{Claim, Claimed, Rewritten, SubscriptionKey, Table, TableError};

/// What a person knows of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// It was charged: the gateway's identifier of the payment.
    Charged(GatewayToken),
    /// It was not charged, and never will be.
    NotCharged,
}

/// What resolving came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// The attempt is settled; the subscription is now this.
    Settled(Box<Subscription>),
    /// There is no open attempt, and nothing to resolve.
    NothingOpen,
    /// A worker holds the attempt until then.
    Held(DateTime<Utc>),
    /// There is no such subscription.
    Missing,
}

/// Settles the open attempt of a subscription as `known`, on the day `today`: what was charged is receipted, what was not
/// is tried again tomorrow under a new number (or dropped, if the subscription is stopped). The attempt is taken over
/// first, for `lease`, so that no worker acts on it meanwhile.
///
/// # Errors
/// [`TableError`].
pub async fn resolve_by_hand(
    table: &Table,
    (account, id): (&AccountId, SubscriptionId),
    known: &Known,
    policy: &Policy,
    (today, lease): (NaiveDate, TimeDelta),
    clock: &dyn Clock,
) -> Result<Resolved, TableError> {
    let Some(stored) = table.get_subscription(account, id).await? else { return Ok(Resolved::Missing) };
    let Some(attempt) = stored.attempt.clone() else { return Ok(Resolved::NothingOpen) };
    let now = clock.now();
    if !attempt.is_in_doubt(now) {
        return Ok(Resolved::Held(attempt.leased_until));
    }
    let claim = Claim { token: Token(clock.ulid()), now, leased_until: now + lease };
    let stored = match table.take_over(&SubscriptionKey::of(&stored), &attempt, claim).await? {
        Claimed::Held(stored) | Claimed::Refused(Some(stored)) => *stored,
        Claimed::Refused(None) => return Ok(Resolved::Missing),
    };
    let held = match stored.attempt.clone() {
        None => return Ok(Resolved::NothingOpen),
        Some(open) if open.held_by != claim.token => return Ok(Resolved::Held(open.leased_until)),
        Some(open) => open,
    };
    let settlement = |stored: &Subscription| {
        to_write(settle(stored, &held, &outcome(known, stored, &held), policy, today, clock.now()))
    };
    match table.settle(stored, settlement).await? {
        Rewritten::Applied(settled) => Ok(Resolved::Settled(Box::new(settled))),
        Rewritten::Left(NotSettled::StaysOpen) => Ok(Resolved::Held(claim.leased_until)),
        Rewritten::Left(NotSettled::Already) => Ok(Resolved::NothingOpen),
        Rewritten::Gone => Ok(Resolved::Missing),
    }
}

/// What `known` means for the attempt `held` of `stored`.
fn outcome(known: &Known, stored: &Subscription, held: &Attempt) -> Outcome {
    match known {
        Known::Charged(payment) => Outcome::Succeeded(Payment {
            id: payment.clone(),
            account: stored.account.clone(),
            subscription: stored.id,
            due_on: held.due_on,
            attempt_no: held.no,
            amount: held.amount,
            status: PaymentStatus::Succeeded,
            created_at: held.claimed_at,
        }),
        Known::NotCharged if stored.status.is_chargeable() => Outcome::Rejected { code: "resolved_by_hand".to_owned() },
        Known::NotCharged => Outcome::Dropped,
    }
}
