//! Charges a claimed attempt, and decides from the gateway's response whether to settle the attempt, to send the charge
//! again, or to leave the attempt open.

use billing::{Attempt, Outcome, PaymentMethod, Resolution, Subscription};
use chrono::TimeDelta;
use gateways::{ChargeRequest, ChargeResponse, GatewayError};

use crate::request_pace::ThrottleCount;
use crate::{Applied, ApplyError, ChargeContext, ChargePermit, Charger, LookUpError, LookedUp, OpenReason};

/// The longest time after the claim or take-over of an attempt within which the attempt may be charged. If a process
/// was suspended after the claim, it must not charge the attempt, because another worker may have taken over the
/// attempt. The shortest allowed lease is twice as long. The difference is a reserve for slow requests and for differences
/// between clocks.
const MAX_TIME_FROM_CLAIM_TO_CHARGE: TimeDelta = TimeDelta::minutes(5);

/// The reason why a charge has no outcome.
pub(crate) enum NotCharged {
    /// The attempt stays open.
    Open(OpenReason),
    /// A request to the table failed: the attempt may stay open.
    Error(ApplyError),
}

impl<E: Into<ApplyError>> From<E> for NotCharged {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl Charger {
    /// Charges the attempt of `permit`, which was just claimed, and settles its outcome. If the gateway may have made the
    /// payment of an earlier attempt of the same due date, for example although it rejected that attempt, first looks up
    /// that payment. Adds a charge to the uncounted charges of the run.
    ///
    /// # Errors
    /// The errors of [`ChargingEngine::apply`](crate::ChargingEngine::apply).
    pub async fn charge_claimed(
        &self,
        context: ChargeContext<'_>,
        permit: ChargePermit,
    ) -> Result<Applied, ApplyError> {
        let earlier = permit.subscription.rejected_customer.clone().map(|customer| Attempt {
            payment_method: PaymentMethod { customer, ..permit.attempt.payment_method.clone() },
            ..permit.attempt.clone()
        });
        if let Some(earlier) = earlier {
            match self.look_up(context, (&permit.subscription, &earlier)).await {
                Ok(LookedUp { resolution: Resolution::ChargeAgain, .. }) => {}
                found => return self.apply_look_up(context, permit, found).await,
            }
        }
        self.charge(context, permit).await
    }

    /// Charges the attempt of `permit` and settles its outcome.
    pub(crate) async fn charge(&self, context: ChargeContext<'_>, permit: ChargePermit) -> Result<Applied, ApplyError> {
        match self.charge_until_outcome_known(context, &permit).await {
            Ok(outcome) => self.settle(context, permit, outcome).await,
            Err(NotCharged::Open(reason)) => Ok(Applied::Open(reason)),
            Err(NotCharged::Error(error)) => Err(error),
        }
    }

    /// Settles the attempt of `permit` with `outcome`.
    pub(crate) async fn settle(
        &self,
        context: ChargeContext<'_>,
        ChargePermit { subscription, attempt, .. }: ChargePermit,
        outcome: Outcome,
    ) -> Result<Applied, ApplyError> {
        self.engine.apply(subscription, &attempt, outcome, context.today, &context.run.uncounted_charges).await
    }

    /// Sends the charge of `permit` until its outcome is known or the attempt must stay open. If the gateway returns an
    /// error that does not prove that no payment was made, looks up the attempt. If the gateway has no payment, sends
    /// the same request once more. If the gateway then returns the same error again and still has no payment, the
    /// attempt counts as rejected.
    async fn charge_until_outcome_known(
        &self,
        context: ChargeContext<'_>,
        permit: &ChargePermit,
    ) -> Result<Outcome, NotCharged> {
        let in_doubt = |error: GatewayError| Err(NotCharged::Open(OpenReason::NoResponse(error)));
        let mut previous_code: Option<String> = None;
        loop {
            let (code, is_final) = match self.send_charge(context, permit).await.map_err(NotCharged::Open)? {
                ChargeResponse::Succeeded(payment) => return Ok(Outcome::Succeeded(payment)),
                ChargeResponse::Declined(decline) => return Ok(Outcome::Declined(decline)),
                ChargeResponse::Rejected { code } => return Ok(Outcome::Rejected { code }),
                ChargeResponse::Processing => return Err(NotCharged::Open(OpenReason::Processing)),
                ChargeResponse::Unknown { reason } => return in_doubt(GatewayError::Unknown { reason }),
                ChargeResponse::Throttled { retry_after } => return in_doubt(GatewayError::Throttled { retry_after }),
                ChargeResponse::Unusable { reason } => return in_doubt(GatewayError::Unusable { reason }),
                ChargeResponse::KeyReused => ("idempotency_key_in_use".to_owned(), true),
                ChargeResponse::Inconclusive { code } => {
                    let is_same = previous_code.as_ref() == Some(&code);
                    (code, is_same)
                }
            };
            match self.look_up(context, (&permit.subscription, &permit.attempt)).await {
                Ok(LookedUp { resolution: Resolution::Settle(outcome), .. }) => return Ok(outcome),
                Ok(LookedUp { resolution: Resolution::Processing, .. }) => {
                    return Err(NotCharged::Open(OpenReason::Processing));
                }
                Err(LookUpError::Gateway(error)) => return in_doubt(error),
                Err(LookUpError::Table(error)) => return Err(error.into()),
                Ok(_) if is_final => return Ok(Outcome::Rejected { code }),
                // Two different errors do not prove that no payment was made: a later run looks the attempt up again.
                Ok(_) if previous_code.is_some() => return in_doubt(GatewayError::Unknown { reason: code }),
                Ok(_) => previous_code = Some(code),
            }
        }
    }

    /// Sends the charge of `permit`, if the permission is still valid and enough time is left. Repeats the request if
    /// the gateway refuses it because of the gateway's rate limit. If the gateway refuses it until the permission or the
    /// time has ended, returns the refusal, so that the circuit breaker counts it.
    ///
    /// # Errors
    /// The reason why the attempt stays open, if the charge must not be sent for another reason.
    async fn send_charge(
        &self,
        context: ChargeContext<'_>,
        permit: &ChargePermit,
    ) -> Result<ChargeResponse, OpenReason> {
        let request = ChargeRequest::from_attempt(&permit.subscription, &permit.attempt);
        let (mut throttle_count, mut refusal) = (ThrottleCount::default(), None);
        let must_not_send = |refusal: Option<ChargeResponse>| refusal.ok_or(OpenReason::NotSent);
        let clock = self.engine.clock.as_ref();
        loop {
            // If the current pause, which the gateway's rate limit requires, ends too late for a charge before the
            // deadline, do not wait for the end of the pause.
            if !self.has_time_to_charge_after_pause(context.deadline) {
                return must_not_send(refusal);
            }
            self.pace.wait_for_pause_end().await;
            let is_permitted = clock.now().signed_duration_since(permit.claimed_at) < MAX_TIME_FROM_CLAIM_TO_CHARGE;
            if !is_permitted || !self.has_time_to_charge(context.deadline) {
                return must_not_send(refusal);
            }
            if !context.run.is_charging_enabled() {
                return Err(OpenReason::ChargingIsOff);
            }
            let sent_at = clock.now();
            let response = self.gateway.charge(&request).await.or_unknown_if_contradictory();
            context.run.add_request(&response, clock.now().signed_duration_since(sent_at));
            match response {
                // The gateway refused the request because of its rate limit, and made no payment. Repeat the same
                // request while the permission is valid.
                ChargeResponse::Throttled { retry_after } if self.pace.back_off(retry_after, &mut throttle_count) => {
                    refusal = Some(ChargeResponse::Throttled { retry_after });
                    if self.has_time_to_charge_after_pause(context.deadline) {
                        self.pace.wait_for_turn().await;
                    }
                }
                response @ (ChargeResponse::Unknown { .. }
                | ChargeResponse::Unusable { .. }
                | ChargeResponse::Throttled { .. }) => return Ok(response),
                response => {
                    self.record_response(context.run);
                    return Ok(response);
                }
            }
        }
    }

    /// Looks `attempt` of `subscription` up. Repeats the look-up while the gateway refuses its requests because of the
    /// gateway's rate limit, unless the pause before the next request ends too late for a charge before the deadline. If
    /// the payments prove that the table was restored from a backup, the run charges nothing more.
    pub(crate) async fn look_up(
        &self,
        context: ChargeContext<'_>,
        attempt: (&Subscription, &Attempt),
    ) -> Result<LookedUp, LookUpError> {
        let mut throttle_count = ThrottleCount::default();
        loop {
            self.pace.wait_for_turn().await;
            match self.engine.look_up(self.gateway.as_ref(), attempt).await {
                Err(LookUpError::Gateway(GatewayError::Throttled { retry_after }))
                    if self.pace.back_off(retry_after, &mut throttle_count)
                        && self.has_time_to_charge_after_pause(context.deadline) =>
                {
                    self.pace.wait_for_turn().await;
                }
                Err(error) => return Err(error),
                Ok(found) => {
                    self.record_response(context.run);
                    if found.is_table_older {
                        context.run.disable_charging();
                    }
                    return Ok(found);
                }
            }
        }
    }
}
