//! Charging an attempt that is ours, and what the gateway's answer means.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::{ChargeDue, ChargeError, Done, in_doubt};
use crate::billing::{Attempt, Outcome, Resolution, Subscription, resolve};
use crate::gateway::{ChargeAnswer, ChargeRequest, LookUpError};
use crate::table::{Claim, PaymentOutcome, TableError};

/// A charge starts at most this long after the claim or take-over that allows it: a process that was suspended in between
/// must not wake up and charge what others may have taken over. The shortest lease is twice as long, which is left for a
/// request that is slow on its way and for clocks that differ.
const PERMISSION: TimeDelta = TimeDelta::minutes(5);

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
        self.at_the_gateways_rate().await;
        let is_permitted = self.clock.now().signed_duration_since(permit.allowed_at) < PERMISSION;
        if !is_permitted || !self.has_time_to_charge(deadline) {
            return Ok(Done::Counted(PaymentOutcome::InDoubt));
        }
        let Permit { subscription, attempt, .. } = permit;
        let answer = self.gateway.charge(&ChargeRequest::of(&subscription, &attempt)).await;
        if !matches!(answer, ChargeAnswer::Unknown { .. } | ChargeAnswer::Unusable { .. }) {
            self.breaker.reset();
        }
        let outcome = match answer {
            ChargeAnswer::Succeeded(payment) => Outcome::Succeeded(payment),
            ChargeAnswer::Declined(decline) => Outcome::Declined(decline),
            ChargeAnswer::Rejected { code } => Outcome::Rejected { code },
            ChargeAnswer::Processing => return Ok(Done::Counted(PaymentOutcome::Processing)),
            ChargeAnswer::Unknown { reason } => return Ok(self.unanswered(&LookUpError::Unknown { reason })),
            ChargeAnswer::Unusable { reason } => return Ok(self.unanswered(&LookUpError::Unusable { reason })),
            ChargeAnswer::KeyReused => match self.look_up(&attempt).await {
                Err(error) => return Ok(self.unanswered(&error)),
                Ok(known) => match resolve(&subscription, &attempt, &known, self.clock.now()) {
                    Resolution::Settle(outcome) => outcome,
                    Resolution::Processing => return Ok(Done::Counted(PaymentOutcome::Processing)),
                    Resolution::ChargeAgain => Outcome::Rejected { code: "idempotency_key_in_use".to_owned() },
                },
            },
        };
        self.settle(subscription, &attempt, outcome, today).await
    }

    /// What a request to the gateway that told us nothing means for the row, and for the run.
    pub(super) fn unanswered(&self, error: &LookUpError) -> Done {
        match self.breaker.count(error) {
            Some(reason) => Done::Stop { counted: Some(PaymentOutcome::InDoubt), reason },
            None => in_doubt(error),
        }
    }
}
