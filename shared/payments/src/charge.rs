//! Charging an attempt that is ours, and what the gateway's answer means.

use chrono::{DateTime, TimeDelta, Utc};

use super::pace::Tries;
use super::run::Work;
use super::{ChargeDue, Done, PaymentOutcome, PaymentRun, switched_off};
use billing::{Attempt, Outcome, PaymentMethod, Resolution, Subscription, resolve};
use gateways::{ChargeAnswer, ChargeRequest, GatewayError};
use settling::SettleError;
use store::{Claim, SubscriptionKey, TableError};

/// A charge starts at most this long after the claim or take-over that allows it: a process that was suspended in between
/// must not wake up and charge what others may have taken over. The shortest lease is twice as long, which is left for a
/// request that is slow on its way and for clocks that differ.
const PERMISSION: TimeDelta = TimeDelta::minutes(5);

/// An attempt that cannot be looked up for so long is a failure, until somebody resolves it.
const MAX_DOUBT: TimeDelta = TimeDelta::days(1);

/// An attempt that is ours to charge, by a claim or a take-over.
pub(super) struct Permit {
    pub subscription: Subscription,
    pub attempt: Attempt,
    /// When it was claimed or taken over.
    allowed_at: DateTime<Utc>,
}

impl Permit {
    /// What `claim` holds of `subscription`.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if there is no attempt, which a claim always leaves behind.
    pub fn of(subscription: Subscription, claim: Claim) -> Result<Self, TableError> {
        match subscription.attempt.clone() {
            Some(attempt) => Ok(Self { subscription, attempt, allowed_at: claim.now }),
            None => Err(TableError::unreadable(
                SubscriptionKey::of(&subscription).key(),
                "it was claimed, and has no attempt",
            )),
        }
    }
}

/// What a permitted charge came to.
enum Charged {
    /// The gateway made a payment, or never will.
    Outcome(Outcome),
    /// The attempt stays open.
    Open(Done),
}

/// What a look-up means for an attempt.
enum LookedUp {
    /// The gateway knows the payment, or the subscription was stopped.
    Settle(Outcome),
    /// The attempt stays open.
    Open(Done),
    /// The gateway has no payment of the period.
    Nothing,
}

impl ChargeDue {
    /// Charges the attempt of `permit`, which was claimed a moment ago. If an earlier attempt of the same due date was rejected, the
    /// gateway may have made that payment after all: it is looked up first.
    pub(super) async fn charge_claimed(&self, work: Work<'_>, permit: Permit) -> Result<Done, SettleError> {
        if let Some(customer) = permit.subscription.rejected_customer.clone() {
            let earlier = Attempt {
                payment_method: PaymentMethod { customer, ..permit.attempt.payment_method.clone() },
                ..permit.attempt.clone()
            };
            match self.looked_up(work.run, &permit.subscription, &earlier).await {
                LookedUp::Settle(outcome) => {
                    return self.settle(work, permit.subscription, &permit.attempt, outcome).await;
                }
                LookedUp::Open(done) => return Ok(done),
                LookedUp::Nothing => {}
            }
        }
        self.charge(work, permit).await
    }

    /// Charges the attempt of `permit` and settles its outcome.
    pub(super) async fn charge(&self, work: Work<'_>, permit: Permit) -> Result<Done, SettleError> {
        match self.outcome(work, &permit).await {
            Charged::Outcome(outcome) => self.settle(work, permit.subscription, &permit.attempt, outcome).await,
            Charged::Open(done) => Ok(done),
        }
    }

    /// Charges until the outcome is known, or no more can be done now. An error that does not prove that nothing was made is looked
    /// up; if the gateway has nothing, the same request is made once more, and the same error is a rejection then.
    async fn outcome(&self, work: Work<'_>, permit: &Permit) -> Charged {
        let Permit { subscription, attempt, .. } = permit;
        let mut refused: Option<String> = None;
        loop {
            let answer = match self.requested(work, permit).await {
                Ok(answer) => answer,
                Err(done) => return Charged::Open(done),
            };
            let in_doubt = |error: GatewayError| Charged::Open(self.unanswered(work.run, attempt, &error));
            let (code, is_final) = match answer {
                ChargeAnswer::Succeeded(payment) => return Charged::Outcome(Outcome::Succeeded(payment)),
                ChargeAnswer::Declined(decline) => return Charged::Outcome(Outcome::Declined(decline)),
                ChargeAnswer::Rejected { code } => return Charged::Outcome(Outcome::Rejected { code }),
                ChargeAnswer::Processing => return Charged::Open(self.processing(attempt)),
                ChargeAnswer::Unknown { reason } => return in_doubt(GatewayError::Unknown { reason }),
                ChargeAnswer::Throttled { retry_after } => return in_doubt(GatewayError::Throttled { retry_after }),
                ChargeAnswer::Unusable { reason } => return in_doubt(GatewayError::Unusable { reason }),
                ChargeAnswer::KeyReused => ("idempotency_key_in_use".to_owned(), true),
                ChargeAnswer::Unproven { code } => {
                    let is_same = refused.as_ref() == Some(&code);
                    (code, is_same)
                }
            };
            match self.looked_up(work.run, subscription, attempt).await {
                LookedUp::Settle(outcome) => return Charged::Outcome(outcome),
                LookedUp::Open(done) => return Charged::Open(done),
                LookedUp::Nothing if is_final => return Charged::Outcome(Outcome::Rejected { code }),
                // Two different errors prove nothing: a later run looks up again.
                LookedUp::Nothing if refused.is_some() => return in_doubt(GatewayError::Unknown { reason: code }),
                LookedUp::Nothing => refused = Some(code),
            }
        }
    }

    /// Sends the charge of `permit` while that is permitted and there is time, and again after the gateway refused it because of too
    /// many requests. `Err` if it was not sent.
    async fn requested(&self, work: Work<'_>, permit: &Permit) -> Result<ChargeAnswer, Done> {
        let request = ChargeRequest::of(&permit.subscription, &permit.attempt);
        let mut tries = Tries::default();
        loop {
            // A pause that ends too late to charge is not waited for.
            if !self.may_wait(work.deadline) {
                return Err(Done::Counted(PaymentOutcome::InDoubt));
            }
            self.pace.pause().await;
            let is_permitted = self.clock.now().signed_duration_since(permit.allowed_at) < PERMISSION;
            if !is_permitted || !self.has_time_to_charge(work.deadline) {
                return Err(Done::Counted(PaymentOutcome::InDoubt));
            }
            if !work.run.is_charging() {
                return Err(switched_off(PaymentOutcome::InDoubt));
            }
            match self.gateway.charge(&request).await.unless_contradictory() {
                // It has made nothing: the same request is made again, while it is ours to make.
                ChargeAnswer::Throttled { retry_after } if self.pace.give_way(retry_after, &mut tries) => {
                    if self.may_wait(work.deadline) {
                        self.pace.turn().await;
                    }
                }
                answer @ (ChargeAnswer::Unknown { .. }
                | ChargeAnswer::Unusable { .. }
                | ChargeAnswer::Throttled { .. }) => return Ok(answer),
                answer => {
                    self.answered(work.run);
                    return Ok(answer);
                }
            }
        }
    }

    /// Looks up the payments of the customer of `attempt`, and judges what they mean for it.
    async fn looked_up(&self, run: &PaymentRun, subscription: &Subscription, attempt: &Attempt) -> LookedUp {
        let known = match self.look_up(run, attempt).await {
            Ok(known) => known,
            Err(error) => return LookedUp::Open(self.unanswered(run, attempt, &error)),
        };
        match resolve(subscription, attempt, &known, self.clock.now()) {
            Resolution::Settle(outcome) => LookedUp::Settle(outcome),
            Resolution::Processing => LookedUp::Open(self.processing(attempt)),
            Resolution::ChargeAgain => LookedUp::Nothing,
        }
    }

    /// What a request about `attempt` that told us nothing means for the row, and for the run. Only those about new attempts
    /// are counted against the gateway: that some old ones cannot be looked up says nothing about the others.
    pub(super) fn unanswered(&self, run: &PaymentRun, attempt: &Attempt, error: &GatewayError) -> Done {
        let age = self.clock.now().signed_duration_since(attempt.claimed_at);
        let stops = match error {
            GatewayError::Unknown { .. } | GatewayError::Throttled { .. } if age >= self.lease => None,
            error => run.breaker.count(error),
        };
        if let Some(reason) = stops {
            return Done::Stop { counted: Some(PaymentOutcome::InDoubt), reason };
        }
        tracing::warn!(%error, "an attempt is left in doubt");
        if age > MAX_DOUBT {
            let since = attempt.claimed_at.format("%Y-%m-%d %H:%M UTC");
            return Done::Failed { reason: format!("it has been in doubt since {since}: {error}; resolve it by hand") };
        }
        Done::Counted(PaymentOutcome::InDoubt)
    }

    /// What it means for the row that `attempt` is under way at the bank.
    pub(super) fn processing(&self, attempt: &Attempt) -> Done {
        if self.clock.now().signed_duration_since(attempt.claimed_at) > self.max_processing {
            let since = attempt.claimed_at.format("%Y-%m-%d %H:%M UTC");
            return Done::Failed {
                reason: format!("it has been under way at the bank since {since}: ask the gateway"),
            };
        }
        Done::Counted(PaymentOutcome::Processing)
    }
}
