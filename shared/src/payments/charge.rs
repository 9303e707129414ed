//! Charging an attempt that is ours, and what the gateway's answer means.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::pace::Tries;
use super::{ChargeDue, ChargeError, Done, switched_off};
use crate::billing::{Attempt, Outcome, Resolution, Subscription, resolve};
use crate::gateway::{ChargeAnswer, ChargeRequest, GatewayError};
use crate::table::{Claim, PaymentOutcome, TableError};

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
            None => Err(TableError::without_attempt(&subscription)),
        }
    }
}

impl ChargeDue {
    /// Charges the attempt of `permit` and settles what comes of it.
    pub(super) async fn charge(
        &self,
        permit: Permit,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> Result<Done, ChargeError> {
        let Permit { subscription, attempt, allowed_at } = permit;
        let request = ChargeRequest::of(&subscription, &attempt);
        let mut tries = Tries::default();
        let answer = loop {
            self.pace.pause().await;
            let is_permitted = self.clock.now().signed_duration_since(allowed_at) < PERMISSION;
            if !is_permitted || !self.has_time_to_charge(deadline) {
                return Ok(Done::Counted(PaymentOutcome::InDoubt));
            }
            if !self.is_charging() {
                return Ok(switched_off(PaymentOutcome::InDoubt));
            }
            match self.gateway.charge(&request).await {
                // It has made nothing: the same request is made again, while it is ours to make.
                ChargeAnswer::Throttled { retry_after } if self.pace.give_way(retry_after, &mut tries) => {
                    self.pace.turn().await;
                }
                answer => break answer,
            }
        };
        if !matches!(
            answer,
            ChargeAnswer::Unknown { .. } | ChargeAnswer::Unusable { .. } | ChargeAnswer::Throttled { .. }
        ) {
            self.answered();
        }
        let outcome = match answer {
            ChargeAnswer::Succeeded(payment) => Outcome::Succeeded(payment),
            ChargeAnswer::Declined(decline) => Outcome::Declined(decline),
            ChargeAnswer::Rejected { code } => Outcome::Rejected { code },
            ChargeAnswer::Processing => return Ok(self.processing(&attempt)),
            ChargeAnswer::Unknown { reason } => return Ok(self.unanswered(&attempt, &GatewayError::Unknown { reason })),
            ChargeAnswer::Throttled { retry_after } => {
                return Ok(self.unanswered(&attempt, &GatewayError::Throttled { retry_after }));
            }
            ChargeAnswer::Unusable { reason } => {
                return Ok(self.unanswered(&attempt, &GatewayError::Unusable { reason }));
            }
            ChargeAnswer::KeyReused => match self.look_up(&attempt).await {
                Err(error) => return Ok(self.unanswered(&attempt, &error)),
                Ok(known) => match resolve(&subscription, &attempt, &known, self.clock.now()) {
                    Resolution::Settle(outcome) => outcome,
                    Resolution::Processing => return Ok(self.processing(&attempt)),
                    Resolution::ChargeAgain => Outcome::Rejected { code: "idempotency_key_in_use".to_owned() },
                },
            },
        };
        self.settle(subscription, &attempt, outcome, today).await
    }

    /// What a request about `attempt` that told us nothing means for the row, and for the run. Only those about new attempts
    /// are counted against the gateway: that some old ones cannot be looked up says nothing about the others.
    pub(super) fn unanswered(&self, attempt: &Attempt, error: &GatewayError) -> Done {
        let age = self.clock.now().signed_duration_since(attempt.claimed_at);
        let stops = match error {
            GatewayError::Unknown { .. } | GatewayError::Throttled { .. } if age >= self.lease => None,
            error => self.breaker.count(error),
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
