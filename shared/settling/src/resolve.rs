//! Resolving: settling an open attempt outside of a run, by what the gateway says of it, or by what only a person can know, such as
//! of one that the gateway has lost. The gateway is asked first, and what it says is contradicted only on purpose.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::lookup::{paid_twice, payments_since};
use super::{SettleError, SettledAs, Settling};
use billing::{
    AccountId, Attempt, GatewayToken, Outcome, Payment, PaymentStatus, Period, Resolution, Subscription,
    SubscriptionId, Token, resolve, successes,
};
use gateways::PaymentGateway;
use store::{Claim, Claimed, SubscriptionKey, TableError};

/// What is known of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// What the gateway says, and nothing else.
    ToTheGateway,
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
    /// The gateway says otherwise, or does not say: why. The attempt is open still.
    Contradicted(String),
    /// There is no such subscription.
    Missing,
}

/// How attempts are resolved.
#[derive(Debug)]
pub struct Resolving<'a> {
    pub settling: &'a Settling,
    /// Asked first; `None`: what it says does not count.
    pub gateway: Option<&'a dyn PaymentGateway>,
    /// How long a claim keeps others away.
    pub lease: TimeDelta,
}

impl Resolving<'_> {
    /// Settles the open attempt of a subscription as `known`, on the day `today`: what was charged is receipted, what was
    /// not is tried again tomorrow under a new number (or dropped, if the subscription is stopped). The attempt is looked up,
    /// and then taken over as it was, so that no worker acts on it meanwhile.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn resolve(
        &self,
        (account, id): (&AccountId, SubscriptionId),
        known: &Known,
        today: NaiveDate,
    ) -> Result<Resolved, TableError> {
        let (table, clock) = (&self.settling.table, &self.settling.clock);
        let Some(stored) = table.get_subscription(account, id).await? else { return Ok(Resolved::Missing) };
        let Some(attempt) = stored.attempt.clone() else { return Ok(Resolved::NothingOpen) };
        let now = clock.now();
        // A lease that ends further ahead than any can was taken by a wrong clock, which only a person can tell from our own.
        let may_be_wrong = *known != Known::ToTheGateway && attempt.leased_until > now + self.lease;
        if !attempt.is_in_doubt(now) && !may_be_wrong {
            return Ok(Resolved::Held(attempt.leased_until));
        }
        // Before anything is written: who is contradicted may say it again at once.
        let outcome = match self.look_up(&stored, &attempt, known).await {
            Ok(outcome) => outcome,
            Err(reason) => return Ok(Resolved::Contradicted(reason)),
        };
        if let (Known::ToTheGateway, Outcome::Succeeded(payment)) = (known, &outcome) {
            match self.settling.verify(&stored, &attempt, payment).await {
                Ok(()) => {}
                Err(SettleError::Table(error)) => return Err(error),
                Err(contradicts) => return Ok(Resolved::Contradicted(contradicts.to_string())),
            }
        }
        let claim = Claim { token: Token(clock.ulid()), now, leased_until: now + self.lease };
        let stored = match table.take_over(&SubscriptionKey::of(&stored), &attempt, claim).await? {
            Claimed::Held(stored) | Claimed::Refused(Some(stored)) => *stored,
            Claimed::Refused(None) => return Ok(Resolved::Missing),
        };
        let held = match stored.attempt.clone() {
            None => return Ok(Resolved::NothingOpen),
            Some(open) if open.held_by != claim.token => return Ok(Resolved::Held(open.leased_until)),
            Some(open) => open,
        };
        let shard = stored.shard;
        let settled = match known {
            Known::ToTheGateway => self.settling.settle(stored, &held, &outcome, today).await,
            Known::Charged(_) | Known::NotCharged => {
                self.settling.settle_as_decided(stored, &held, &outcome, today).await
            }
        };
        self.settling.count_or_warn(today, shard).await;
        match settled {
            Ok(SettledAs::Now { subscription, .. }) => Ok(Resolved::Settled(subscription)),
            Ok(SettledAs::StaysOpen) => Ok(Resolved::Held(claim.leased_until)),
            Ok(SettledAs::Before) => Ok(Resolved::NothingOpen),
            Err(SettleError::Table(error)) => Err(error),
            Err(error) => Ok(Resolved::Contradicted(error.to_string())),
        }
    }

    /// What `known` means for the attempt `held` of `stored`; or why it cannot be so.
    async fn look_up(&self, stored: &Subscription, held: &Attempt, known: &Known) -> Result<Outcome, String> {
        let Some(gateway) = self.gateway else { return by_hand(known, stored, held) };
        let listed = gateway.payments_of(&held.payment_method.customer, payments_since(held)).await;
        let listed = listed.map_err(|error| error.to_string())?;
        let paid = successes(stored, held, &listed);
        if let Some(twice) = paid_twice(stored, held, &listed) {
            tracing::error!(reason = %twice, "a month was paid more than once");
        }
        match known {
            Known::ToTheGateway => match resolve(stored, held, &listed, self.settling.clock.now()) {
                Resolution::Settle(outcome @ (Outcome::Succeeded(_) | Outcome::Declined(_))) => Ok(outcome),
                // That it knows of nothing is for the runs to judge.
                Resolution::Settle(Outcome::Rejected { .. } | Outcome::Dropped) => {
                    Err("the gateway does not know it".to_owned())
                }
                Resolution::Processing => Err("the gateway says that it is under way".to_owned()),
                Resolution::ChargeAgain => Err("the gateway does not know it".to_owned()),
            },
            Known::NotCharged => match (paid.first(), listed.iter().find(|payment| is_under_way(payment, held))) {
                (Some(paid), _) => Err(format!("the gateway says that it was charged: {}", paid.id)),
                (None, Some(open)) => Err(format!("the gateway says that {} is under way", open.id)),
                (None, None) => by_hand(known, stored, held),
            },
            Known::Charged(id) => match paid.iter().find(|payment| payment.id == *id) {
                Some(payment) if payment.amount == held.amount => Ok(Outcome::Succeeded((*payment).clone())),
                Some(payment) => Err(format!(
                    "the gateway says that {id} is of {}, and {} was asked for",
                    payment.amount, held.amount
                )),
                None => {
                    let month = Period::of(held.due_on);
                    Err(format!("the gateway lists no successful payment {id} of this subscription for {month}"))
                }
            },
        }
    }
}

fn is_under_way(payment: &Payment, held: &Attempt) -> bool {
    payment.status == PaymentStatus::Processing && Period::of(payment.due_on) == Period::of(held.due_on)
}

/// What `known` means for the attempt `held` of `stored`, whatever the gateway says.
fn by_hand(known: &Known, stored: &Subscription, held: &Attempt) -> Result<Outcome, String> {
    Ok(match known {
        Known::ToTheGateway => return Err("no gateway was asked".to_owned()),
        Known::Charged(payment) => Outcome::Succeeded(Payment {
            id: payment.clone(),
            table: held.table,
            account: stored.account.clone(),
            subscription: stored.id,
            due_on: held.due_on,
            attempt_no: held.no,
            amount: held.amount,
            status: PaymentStatus::Succeeded,
            card: None,
            created_at: held.claimed_at,
        }),
        Known::NotCharged if stored.status.is_chargeable() => Outcome::Rejected { code: "resolved_by_hand".to_owned() },
        Known::NotCharged => Outcome::Dropped,
    })
}
