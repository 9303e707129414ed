//! Takes over attempts in doubt: open attempts whose lease has ended without a known outcome. Each attempt is looked up
//! at the gateway before it is settled or charged again.

use billing::{Attempt, Resolution, attempt_contradiction};
use store::{ClaimOutcome, SubscriptionKey};

use crate::{Applied, ApplyError, ChargeContext, ChargePermit, Charger, LookUpError, LookedUp, OpenReason};

impl Charger {
    /// Takes over the attempt `lapsed`, whose lease has ended, and looks it up at the gateway. Settles the attempt if
    /// the gateway has its payment. If the gateway has no payment, and the attempt may still be charged, sends the same
    /// charge again under the same idempotency key.
    ///
    /// # Errors
    /// The errors of [`ChargingEngine::apply`](crate::ChargingEngine::apply).
    pub async fn take_over(
        &self,
        context: ChargeContext<'_>,
        key: &SubscriptionKey,
        lapsed: &Attempt,
    ) -> Result<Applied, ApplyError> {
        let claim = self.new_claim();
        let subscription = match self.engine.table.take_over(key, lapsed, claim).await? {
            ClaimOutcome::Claimed(held) => *held,
            ClaimOutcome::Refused(Some(stored)) => *stored,
            ClaimOutcome::Refused(None) => return Ok(Applied::Missing),
        };
        match &subscription.attempt {
            Some(open) if open.claim_token == claim.token => {}
            Some(open) => return Ok(Applied::Open(OpenReason::Leased { until: open.leased_until })),
            None => return Ok(Applied::NothingOpen),
        }
        let permit = ChargePermit::from_claim(subscription, claim)?;
        let found = self.look_up(context, (&permit.subscription, &permit.attempt)).await;
        self.apply_look_up(context, permit, found).await
    }

    /// Applies what the look-up of the attempt of `permit` has `found`: settles the attempt, leaves it open, or charges
    /// it again.
    pub(crate) async fn apply_look_up(
        &self,
        context: ChargeContext<'_>,
        permit: ChargePermit,
        found: Result<LookedUp, LookUpError>,
    ) -> Result<Applied, ApplyError> {
        let open = |reason| Ok(Applied::Open(reason));
        let LookedUp { resolution, paid_twice, .. } = match found {
            Ok(found) => found,
            Err(LookUpError::Gateway(error)) => return open(OpenReason::NoResponse(error)),
            Err(LookUpError::Table(error)) => return Err(error.into()),
        };
        match resolution {
            Resolution::Settle(outcome) => Ok(self.settle(context, permit, outcome).await?.with_paid_twice(paid_twice)),
            Resolution::Processing => open(OpenReason::Processing),
            Resolution::ChargeAgain
                if permit.subscription.disputed_at.is_some() || permit.subscription.open_findings > 0 =>
            {
                open(OpenReason::Blocked)
            }
            Resolution::ChargeAgain if !context.run.is_charging_enabled() => open(OpenReason::ChargingIsOff),
            Resolution::ChargeAgain => {
                if let Some(contradiction) = attempt_contradiction(&permit.subscription, &permit.attempt) {
                    return open(OpenReason::Contradiction(contradiction));
                }
                self.wait_for_turn().await;
                self.charge(context, permit).await
            }
        }
    }
}
