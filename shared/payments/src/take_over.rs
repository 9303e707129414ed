//! Taking over an attempt in doubt: looked up at the gateway first, always.

use super::charge::Permit;
use super::pace::Tries;
use super::run::Work;
use super::{ChargeDue, Done, PaymentOutcome, PaymentRun, switched_off};
use billing::{Attempt, Payment, Resolution, resolve};
use gateways::GatewayError;
use settling::SettleError;
use settling::{paid_twice, payments_since};
use store::{Claimed, SubscriptionKey};

impl ChargeDue {
    /// Takes over `lapsed`, whose lease has ended: what the gateway knows is settled; if it knows nothing, the same charge
    /// is made again under the same key.
    pub(super) async fn take_over(
        &self,
        work: Work<'_>,
        key: &SubscriptionKey,
        lapsed: Attempt,
    ) -> Result<Done, SettleError> {
        let claim = self.new_claim();
        let subscription = match self.table.take_over(key, &lapsed, claim).await? {
            Claimed::Held(held) => *held,
            Claimed::Refused(Some(stored)) => *stored,
            Claimed::Refused(None) => return Ok(Done::PassedBy),
        };
        match &subscription.attempt {
            Some(open) if open.held_by == claim.token => {}
            // Another worker was quicker, and has it under lease.
            Some(_) => return Ok(Done::Counted(PaymentOutcome::InDoubt)),
            None => return Ok(Done::PassedBy),
        }
        let permit = Permit::of(subscription, claim)?;
        let known = match self.look_up(work.run, &permit.attempt).await {
            Ok(known) => known,
            Err(error) => return Ok(self.unanswered(work.run, &permit.attempt, &error)),
        };
        match resolve(&permit.subscription, &permit.attempt, &known, self.clock.now()) {
            Resolution::Settle(outcome) => {
                let Permit { subscription, attempt, .. } = permit;
                let twice = paid_twice(&subscription, &attempt, &known);
                let done = self.settle(work, subscription, &attempt, outcome).await?;
                // The month is receipted once. The other payment is to be refunded, and only a person can do that.
                Ok(twice.map_or(done, |reason| Done::Failed { reason }))
            }
            Resolution::Processing => Ok(self.processing(&permit.attempt)),
            // It was claimed before that was known. Nothing was made of it.
            Resolution::ChargeAgain
                if permit.subscription.disputed_at.is_some() || permit.subscription.open_findings > 0 =>
            {
                Ok(Done::Counted(PaymentOutcome::InDoubt))
            }
            Resolution::ChargeAgain if !work.run.is_charging() => Ok(switched_off(PaymentOutcome::InDoubt)),
            Resolution::ChargeAgain => {
                self.pace.turn().await;
                self.charge(work, permit).await
            }
        }
    }

    /// Asks the gateway for the payments of the attempt's customer.
    pub(super) async fn look_up(&self, run: &PaymentRun, attempt: &Attempt) -> Result<Vec<Payment>, GatewayError> {
        let (customer, since) = (&attempt.payment_method.customer, payments_since(attempt));
        let mut tries = Tries::default();
        loop {
            self.pace.turn().await;
            match self.gateway.payments_of(customer, since).await {
                Err(GatewayError::Throttled { retry_after }) if self.pace.give_way(retry_after, &mut tries) => {
                    self.pace.turn().await;
                }
                Err(error) => return Err(error),
                Ok(known) => {
                    self.answered(run);
                    return Ok(known);
                }
            }
        }
    }
}
