//! Resolving by hand: settling an attempt whose outcome only a person can know, such as one that the gateway has lost.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use crate::billing::{
    AccountId, Attempt, GatewayToken, Outcome, Payment, PaymentStatus, Policy, Settled, Subscription, SubscriptionId,
    Token, settle,
};
use crate::clock::Clock;
use crate::table::{Claim, Claimed, MAX_ROUNDS, SubscriptionKey, Table, TableError, Written};

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
    for _ in 0..MAX_ROUNDS {
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
        let Some(held) = stored.attempt.clone().filter(|open| open.held_by == claim.token) else { continue };
        if let Some(settled) = settle_held(table, stored, &held, known, policy, today, clock).await? {
            return Ok(Resolved::Settled(Box::new(settled)));
        }
    }
    Err(TableError::Contended { operation: "resolve_by_hand" })
}

/// Settles on whatever is stored by now; `None` if another has.
async fn settle_held(
    table: &Table,
    mut stored: Subscription,
    held: &Attempt,
    known: &Known,
    policy: &Policy,
    today: NaiveDate,
    clock: &dyn Clock,
) -> Result<Option<Subscription>, TableError> {
    for _ in 0..MAX_ROUNDS {
        let outcome = match known {
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
            Known::NotCharged if stored.status.is_chargeable() => {
                Outcome::Rejected { code: "resolved_by_hand".to_owned() }
            }
            Known::NotCharged => Outcome::Dropped,
        };
        let Settled::Write(settlement) = settle(&stored, held, &outcome, policy, today, clock.now()) else {
            return Ok(None);
        };
        match table.settle(&stored, &settlement).await? {
            Written::Written => return table.get_subscription(&stored.account, stored.id).await,
            Written::Conflict(Some(newer)) => stored = *newer,
            Written::Conflict(None) | Written::Duplicate => return Ok(None),
        }
    }
    Ok(None)
}
