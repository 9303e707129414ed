//! Resolves an open attempt outside of a run: with the outcome that the gateway reports, or with an outcome that a
//! person states, for example because the gateway has lost the payment. The attempt is looked up at the gateway first.
//! A stated outcome that contradicts the gateway is accepted only if the operator requests that the gateway is ignored.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::lookup::{describe_double_payment, payments_since};
use super::{SettleError, SettleOutcome, Settling, UncountedCharges};
use billing::{
    AccountId, Attempt, ClaimToken, GatewayToken, Outcome, Payment, PaymentStatus, Period, Resolution, Subscription,
    SubscriptionId, resolve, successful_payments,
};
use gateways::{GatewayError, PaymentGateway};
use store::{Claim, ClaimOutcome, SubscriptionKey, TableError};

/// The outcome with which an attempt must be resolved, as the caller states it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatedOutcome {
    /// Use the outcome that the gateway reports.
    AsGatewayReports,
    /// The attempt was charged. Contains the gateway's id of the payment.
    Charged(GatewayToken),
    /// The attempt was not charged, and never will be.
    NotCharged,
}

/// The result of resolving an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResolveOutcome {
    /// The attempt is settled. Contains the stored subscription after the settlement.
    Settled(Box<Subscription>),
    /// The subscription has no open attempt.
    NoOpenAttempt,
    /// Another worker has leased the attempt. Contains the time at which the lease expires.
    Leased(DateTime<Utc>),
    /// The attempt stays open, because the gateway reports another outcome than the stated one, or no outcome. Contains
    /// the reason as text.
    Contradicted(String),
    /// The attempt stays open, because the gateway did not return its payments.
    NotLookedUp(GatewayError),
    /// The subscription does not exist.
    Missing,
}

/// Resolves open attempts for an operator or an inbound webhook.
#[derive(Debug)]
pub struct AttemptResolver<'a> {
    pub settling: &'a Settling,
    /// The gateway at which the attempt is looked up; `None` to ignore the gateway and use only the stated outcome.
    pub gateway: Option<&'a dyn PaymentGateway>,
    /// How long the resolver leases an attempt that it takes over.
    pub lease: TimeDelta,
}

impl AttemptResolver<'_> {
    /// Settles the open attempt of a subscription with the outcome `stated`, on the day `today`. A charged attempt gets
    /// a receipt. If the attempt was not charged, its payment is charged tomorrow with a new attempt; if the
    /// subscription is stopped, the attempt is dropped. The attempt is first looked up. Then, if it has not changed, it
    /// is taken over, so that no other worker settles or charges it at the same time.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn resolve(
        &self,
        (account, id): (&AccountId, SubscriptionId),
        stated: &StatedOutcome,
        today: NaiveDate,
    ) -> Result<ResolveOutcome, TableError> {
        let (table, clock) = (&self.settling.table, &self.settling.clock);
        let Some(stored) = table.get_subscription(account, id).await? else { return Ok(ResolveOutcome::Missing) };
        let Some(attempt) = stored.attempt.clone() else { return Ok(ResolveOutcome::NoOpenAttempt) };
        let now = clock.now();
        // If the lease ends later than any valid lease, the clock of the machine that wrote the lease is wrong, or the
        // clock of this machine is wrong. Only a person can decide which of them is wrong, so such a lease is ignored
        // only if a person states the outcome.
        let is_lease_too_long = *stated != StatedOutcome::AsGatewayReports && attempt.leased_until > now + self.lease;
        if !attempt.is_in_doubt(now) && !is_lease_too_long {
            return Ok(ResolveOutcome::Leased(attempt.leased_until));
        }
        // Look the attempt up before the first write (the lease): after a contradiction, the operator can then repeat
        // the command immediately, without waiting for the end of a lease.
        let outcome = match self.decide_outcome(&stored, &attempt, stated).await {
            Ok(outcome) => outcome,
            Err(undecided) => return Ok(undecided),
        };
        if let (StatedOutcome::AsGatewayReports, Outcome::Succeeded(payment)) = (stated, &outcome) {
            match self.settling.verify_payment(&stored, &attempt, payment).await {
                Ok(()) => {}
                Err(SettleError::Table(error)) => return Err(error),
                Err(error) => return Ok(ResolveOutcome::Contradicted(error.to_string())),
            }
        }
        let claim = Claim { token: ClaimToken(clock.ulid()), now, leased_until: now + self.lease };
        let stored = match table.take_over(&SubscriptionKey::from_subscription(&stored), &attempt, claim).await? {
            ClaimOutcome::Claimed(stored) | ClaimOutcome::Refused(Some(stored)) => *stored,
            ClaimOutcome::Refused(None) => return Ok(ResolveOutcome::Missing),
        };
        let attempt = match stored.attempt.clone() {
            None => return Ok(ResolveOutcome::NoOpenAttempt),
            Some(open) if open.claim_token != claim.token => return Ok(ResolveOutcome::Leased(open.leased_until)),
            Some(open) => open,
        };
        let (shard, charges) = (stored.shard, UncountedCharges::default());
        let settled = match stated {
            StatedOutcome::AsGatewayReports => self.settling.settle(stored, &attempt, &outcome, today, &charges).await,
            StatedOutcome::Charged(_) | StatedOutcome::NotCharged => {
                self.settling.settle_as_decided(stored, &attempt, &outcome, today, &charges).await
            }
        };
        charges.write_or_warn(table, today, shard).await;
        match settled {
            Ok(SettleOutcome::Settled { subscription, .. }) => Ok(ResolveOutcome::Settled(subscription)),
            Ok(SettleOutcome::StaysOpen) => Ok(ResolveOutcome::Leased(claim.leased_until)),
            Ok(SettleOutcome::AlreadySettled) => Ok(ResolveOutcome::NoOpenAttempt),
            Err(SettleError::Table(error)) => Err(error),
            Err(error) => Ok(ResolveOutcome::Contradicted(error.to_string())),
        }
    }

    /// Returns the outcome of `attempt` of `stored` that follows from `stated` and from the gateway's list of payments.
    ///
    /// # Errors
    /// - [`ResolveOutcome::Contradicted`] if `stated` contradicts the list, or if the gateway reports no outcome.
    /// - [`ResolveOutcome::NotLookedUp`] if the gateway returns no list.
    async fn decide_outcome(
        &self,
        stored: &Subscription,
        attempt: &Attempt,
        stated: &StatedOutcome,
    ) -> Result<Outcome, ResolveOutcome> {
        let Some(gateway) = self.gateway else {
            return outcome_without_gateway(stated, stored, attempt).map_err(ResolveOutcome::Contradicted);
        };
        let listed = gateway.payments_of(&attempt.payment_method.customer, payments_since(attempt)).await;
        let listed = listed.map_err(ResolveOutcome::NotLookedUp)?;
        self.outcome_of_payments(stored, attempt, stated, &listed).map_err(ResolveOutcome::Contradicted)
    }

    /// Returns the outcome of `attempt` of `stored` that follows from `stated` and from `listed`, the gateway's list
    /// of payments. Fails with the reason if `stated` contradicts `listed`, or if the gateway reports no outcome.
    fn outcome_of_payments(
        &self,
        stored: &Subscription,
        attempt: &Attempt,
        stated: &StatedOutcome,
        listed: &[Payment],
    ) -> Result<Outcome, String> {
        let paid = successful_payments(stored, attempt, listed);
        if let Some(message) = describe_double_payment(stored, attempt, listed) {
            tracing::error!(reason = %message, "a month was paid more than once");
        }
        match stated {
            StatedOutcome::AsGatewayReports => match resolve(stored, attempt, listed, self.settling.clock.now()) {
                Resolution::Settle(outcome @ (Outcome::Succeeded(_) | Outcome::Declined(_))) => Ok(outcome),
                // The gateway has no payment of this attempt. Only a run of the payment batch may settle such an
                // attempt as rejected or dropped.
                Resolution::Settle(Outcome::Rejected { .. } | Outcome::Dropped) => {
                    Err("the gateway has no payment of this attempt".to_owned())
                }
                Resolution::Processing => Err("the gateway reports that the payment is processing".to_owned()),
                Resolution::ChargeAgain => Err("the gateway has no payment of this attempt".to_owned()),
            },
            StatedOutcome::NotCharged => {
                match (paid.first(), listed.iter().find(|payment| is_processing(payment, attempt))) {
                    (Some(paid), _) => Err(format!("the gateway reports that the attempt was charged: {}", paid.id)),
                    (None, Some(open)) => Err(format!("the gateway reports that {} is processing", open.id)),
                    (None, None) => outcome_without_gateway(stated, stored, attempt),
                }
            }
            StatedOutcome::Charged(id) => match paid.iter().find(|payment| payment.id == *id) {
                Some(payment) if payment.amount == attempt.amount => Ok(Outcome::Succeeded((*payment).clone())),
                Some(payment) => Err(format!(
                    "the gateway reports that the amount of {id} is {}, and {} was requested",
                    payment.amount, attempt.amount
                )),
                None => {
                    let month = Period::from_day(attempt.due_on);
                    Err(format!("the gateway lists no successful payment {id} of this subscription for {month}"))
                }
            },
        }
    }
}

/// Returns whether `payment` is a payment of the period of `attempt`, and the bank is still processing it.
fn is_processing(payment: &Payment, attempt: &Attempt) -> bool {
    payment.status == PaymentStatus::Processing && Period::from_day(payment.due_on) == Period::from_day(attempt.due_on)
}

/// Returns the outcome of `attempt` of `stored` that follows from `stated` alone, without the gateway.
fn outcome_without_gateway(
    stated: &StatedOutcome,
    stored: &Subscription,
    attempt: &Attempt,
) -> Result<Outcome, String> {
    Ok(match stated {
        StatedOutcome::AsGatewayReports => return Err("no outcome was stated, and no gateway was asked".to_owned()),
        StatedOutcome::Charged(payment) => Outcome::Succeeded(Payment {
            id: payment.clone(),
            table: attempt.table,
            account: stored.account.clone(),
            subscription: stored.id,
            due_on: attempt.due_on,
            attempt_no: attempt.no,
            amount: attempt.amount,
            status: PaymentStatus::Succeeded,
            card: None,
            created_at: attempt.claimed_at,
        }),
        StatedOutcome::NotCharged if stored.status.is_chargeable() => {
            Outcome::Rejected { code: "resolved_by_hand".to_owned() }
        }
        StatedOutcome::NotCharged => Outcome::Dropped,
    })
}
