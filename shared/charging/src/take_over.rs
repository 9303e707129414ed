//! Takes over attempts in doubt: open attempts whose lease has ended without a known outcome. Each attempt is looked up
//! at the gateway before it is settled or charged again.

use billing::{Attempt, attempt_contradiction};
use store::{ClaimOutcome, SubscriptionKey};

use crate::{ApplyError, ApplyResult, ChargeContext, ChargePermit, Charger, OpenReason};

impl Charger {
    /// Takes over the attempt `lapsed`, whose lease has ended, and looks it up at the gateway. Settles the attempt if
    /// the gateway has its payment. If the gateway has no payment, and the attempt may still be charged, sends the same
    /// charge again under the same idempotency key.
    ///
    /// # Errors
    /// [`ApplyError`], if the outcome could not be applied.
    pub async fn take_over_attempt(
        &self,
        context: ChargeContext<'_>,
        key: &SubscriptionKey,
        lapsed: &Attempt,
    ) -> Result<ApplyResult, ApplyError> {
        let claim = self.new_claim();
        let subscription = match self.engine.table.take_over_attempt(key, lapsed, claim).await? {
            ClaimOutcome::Claimed(held) => *held,
            ClaimOutcome::Refused(Some(stored)) => *stored,
            ClaimOutcome::Refused(None) => return Ok(ApplyResult::Missing),
        };
        match &subscription.attempt {
            Some(open) if open.claim_token == claim.token => {}
            Some(open) => return Ok(ApplyResult::Open(OpenReason::Leased { until: open.leased_until })),
            None => return Ok(ApplyResult::NothingOpen),
        }
        let permit = ChargePermit::from_claim(subscription, claim)?;
        let found = self.look_up(context, &permit.subscription, &permit.attempt).await;
        if let Some(applied) = Box::pin(self.settle_found(context, &permit, found)).await? {
            return Ok(applied);
        }
        let open = |reason| Ok(ApplyResult::Open(reason));
        if permit.subscription.disputed_at.is_some() || permit.subscription.open_findings > 0 {
            return open(OpenReason::Blocked);
        }
        if !context.run.is_charging_enabled() {
            return open(OpenReason::ChargingIsOff);
        }
        if let Some(contradiction) = attempt_contradiction(&permit.subscription, &permit.attempt) {
            return open(OpenReason::AttemptContradicts(contradiction));
        }
        self.wait_for_turn().await;
        self.charge_attempt(context, permit).await
    }
}
