//! Takes over attempts in doubt: open attempts whose lease has ended without a known outcome. Each attempt is looked up
//! at the gateway before it is settled or charged again.

use super::charge::ChargePermit;
use super::claim::add_leased_attempt;
use super::request_pace::ThrottleCount;
use super::row_error::RowError;
use super::run::RowContext;
use super::{PaymentBatch, PaymentOutcome, PaymentRun, RowResult, deferred_because_charging_is_off};
use billing::{Attempt, Payment, Resolution, attempt_contradiction, resolve};
use gateways::GatewayError;
use settling::SettleError;
use settling::{describe_double_payment, payments_since};
use store::{ClaimOutcome, SubscriptionKey};

impl PaymentBatch {
    /// Takes over the attempt `lapsed`, whose lease has ended, and looks it up at the gateway. Settles the attempt if
    /// the gateway has its payment. If the gateway has no payment, and the attempt may still be charged, sends the same
    /// charge again under the same idempotency key.
    pub(super) async fn take_over(
        &self,
        context: RowContext<'_>,
        key: &SubscriptionKey,
        lapsed: Attempt,
    ) -> Result<RowResult, SettleError> {
        let claim = self.new_claim();
        let subscription = match self.table.take_over(key, &lapsed, claim).await? {
            ClaimOutcome::Claimed(held) => *held,
            ClaimOutcome::Refused(Some(stored)) => *stored,
            ClaimOutcome::Refused(None) => return Ok(RowResult::LeftToOtherLane),
        };
        match &subscription.attempt {
            Some(open) if open.claim_token == claim.token => {}
            // Another worker has already taken over and leased the attempt.
            Some(open) => {
                add_leased_attempt(context.run, &subscription, open);
                return Ok(RowResult::Counted(PaymentOutcome::InDoubt));
            }
            None => return Ok(RowResult::LeftToOtherLane),
        }
        let permit = ChargePermit::from_claim(subscription, claim)?;
        let listed = match self.list_payments_of_customer(context.run, &permit.attempt).await {
            Ok(listed) => listed,
            Err(error) => {
                let attempt = (&permit.subscription, &permit.attempt);
                return Ok(self.result_without_response(context.run, attempt, &error));
            }
        };
        match resolve(&permit.subscription, &permit.attempt, &listed, self.clock.now()) {
            Resolution::Settle(outcome) => {
                let ChargePermit { subscription, attempt, .. } = permit;
                let double_payment = describe_double_payment(&subscription, &attempt, &listed);
                let done = self.settle(context, subscription, &attempt, outcome).await?;
                Ok(double_payment.map_or(done, |reason| RowError::PaidTwice(reason).into()))
            }
            Resolution::Processing => Ok(self.result_of_processing_attempt(context.run, &permit.attempt)),
            // A dispute or a finding was stored after the attempt was claimed. The gateway has no payment, and the
            // dispute or finding forbids a charge now, so leave the attempt open.
            Resolution::ChargeAgain
                if permit.subscription.disputed_at.is_some() || permit.subscription.open_findings > 0 =>
            {
                Ok(RowResult::Counted(PaymentOutcome::InDoubt))
            }
            Resolution::ChargeAgain if !context.run.is_charging_enabled() => {
                Ok(deferred_because_charging_is_off(PaymentOutcome::InDoubt))
            }
            Resolution::ChargeAgain => {
                if let Some(contradiction) = attempt_contradiction(&permit.subscription, &permit.attempt) {
                    return Ok(RowError::AttemptContradiction(contradiction).into());
                }
                self.pace.wait_for_turn().await;
                self.charge(context, permit).await
            }
        }
    }

    /// Returns the gateway's list of the payments of the attempt's customer, from the time that [`payments_since`]
    /// returns.
    pub(super) async fn list_payments_of_customer(
        &self,
        run: &PaymentRun,
        attempt: &Attempt,
    ) -> Result<Vec<Payment>, GatewayError> {
        let (customer, since) = (&attempt.payment_method.customer, payments_since(attempt));
        let mut throttle_count = ThrottleCount::default();
        loop {
            self.pace.wait_for_turn().await;
            match self.gateway.payments_of(customer, since).await {
                Err(GatewayError::Throttled { retry_after })
                    if self.pace.back_off(retry_after, &mut throttle_count) =>
                {
                    self.pace.wait_for_turn().await;
                }
                Err(error) => return Err(error),
                Ok(listed) => {
                    self.record_response(run);
                    return Ok(listed);
                }
            }
        }
    }
}
