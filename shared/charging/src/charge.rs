//! Charges a claimed attempt, and decides from the gateway's response whether to settle the attempt, to send the charge
//! again, or to leave the attempt open.

use billing::{Attempt, AttemptOutcome, InDoubtResolution, PaymentMethod, Subscription};
use chrono::TimeDelta;
use gateways::{ChargeRequest, ChargeResponse, GatewayError};

use crate::request_pace::ThrottleCount;
use crate::{ApplyError, ApplyResult, ChargeContext, ChargePermit, Charger, LookUpError, LookedUp, OpenReason};

/// The longest time after the claim or take-over of an attempt within which the attempt may be charged. If a process
/// was suspended after the claim, it must not charge the attempt, because another worker may have taken over the
/// attempt. [`Attempt::LEASE`] is four times as long. The difference is a reserve for slow requests and for differences
/// between clocks.
const MAX_TIME_FROM_CLAIM_TO_CHARGE: TimeDelta = TimeDelta::minutes(5);

impl Charger {
    /// Charges the attempt of `permit`, which was just claimed, and settles its outcome. If the gateway may have made the
    /// payment of an earlier attempt of the same due date, for example although it rejected that attempt, first looks up
    /// that payment. Adds a charge to the uncounted charges of the run.
    ///
    /// # Errors
    /// [`ApplyError`], if the outcome could not be applied.
    pub async fn charge_claimed(
        &self,
        context: ChargeContext<'_>,
        permit: ChargePermit,
    ) -> Result<ApplyResult, ApplyError> {
        let earlier = permit.subscription.rejected_customer.clone().map(|customer| Attempt {
            payment_method: PaymentMethod { customer, ..permit.attempt.payment_method.clone() },
            ..permit.attempt.clone()
        });
        if let Some(earlier) = earlier {
            let found = self.look_up(context, &permit.subscription, &earlier).await;
            if let Some(applied) = Box::pin(self.settle_found(context, &permit, found)).await? {
                return Ok(applied);
            }
            self.wait_for_turn().await;
        }
        self.charge_attempt(context, permit).await
    }

    /// Charges the attempt of `permit` and settles its outcome, or leaves the attempt open. If the gateway returns an
    /// error that does not prove that no payment was made, looks up the attempt. If the gateway has no payment, sends the
    /// same request once more. If the gateway then returns the same error again and still has no payment, the attempt
    /// counts as rejected.
    pub(crate) async fn charge_attempt(
        &self,
        context: ChargeContext<'_>,
        permit: ChargePermit,
    ) -> Result<ApplyResult, ApplyError> {
        let open = |reason| Ok(ApplyResult::Open(reason));
        let in_doubt = |error: GatewayError| open(OpenReason::NoResponse(error));
        let mut previous_code: Option<String> = None;
        let outcome = loop {
            let response = match self.send_charge(context, &permit).await {
                Ok(response) => response,
                Err(reason) => return open(reason),
            };
            let (code, is_final) = match response {
                ChargeResponse::Succeeded(payment) => break AttemptOutcome::Succeeded(payment),
                ChargeResponse::Declined(decline) => break AttemptOutcome::Declined(decline),
                ChargeResponse::Rejected { code } => break AttemptOutcome::Rejected { code },
                ChargeResponse::Processing => return open(OpenReason::Processing),
                ChargeResponse::Unknown { reason } => return in_doubt(GatewayError::Unknown { reason }),
                ChargeResponse::Throttled { retry_after } => return in_doubt(GatewayError::Throttled { retry_after }),
                ChargeResponse::Unusable { reason } => return in_doubt(GatewayError::Unusable { reason }),
                ChargeResponse::KeyReused => ("idempotency_key_in_use".to_owned(), true),
                ChargeResponse::Inconclusive { code } => {
                    let is_same = previous_code.as_ref() == Some(&code);
                    (code, is_same)
                }
            };
            let found = self.look_up(context, &permit.subscription, &permit.attempt).await;
            if let Some(applied) = Box::pin(self.settle_found(context, &permit, found)).await? {
                return Ok(applied);
            }
            if is_final {
                break AttemptOutcome::Rejected { code };
            }
            // Two different errors do not prove that no payment was made: a later run looks the attempt up again.
            if previous_code.is_some() {
                return in_doubt(GatewayError::Unknown { reason: code });
            }
            previous_code = Some(code);
            self.wait_for_turn().await;
        };
        self.settle_attempt(context, permit, outcome).await
    }

    /// Settles the attempt of `permit` with what its look-up has `found`, or leaves it open. Returns `None` if the gateway
    /// has no payment, so that the attempt may be charged again.
    pub(crate) async fn settle_found(
        &self,
        context: ChargeContext<'_>,
        permit: &ChargePermit,
        found: Result<LookedUp, LookUpError>,
    ) -> Result<Option<ApplyResult>, ApplyError> {
        let LookedUp { resolution, paid_twice, .. } = match found {
            Ok(found) => found,
            Err(LookUpError::Gateway(error)) => return Ok(Some(ApplyResult::Open(OpenReason::NoResponse(error)))),
            Err(LookUpError::Table(error)) => return Err(error.into()),
        };
        Ok(match resolution {
            InDoubtResolution::Settle(outcome) => {
                Some(self.settle_attempt(context, permit.clone(), outcome).await?.with_paid_twice(paid_twice))
            }
            InDoubtResolution::Processing => Some(ApplyResult::Open(OpenReason::Processing)),
            InDoubtResolution::ChargeAgain => None,
        })
    }

    /// Settles the attempt of `permit` with `outcome`.
    async fn settle_attempt(
        &self,
        context: ChargeContext<'_>,
        ChargePermit { subscription, attempt, .. }: ChargePermit,
        outcome: AttemptOutcome,
    ) -> Result<ApplyResult, ApplyError> {
        self.engine.apply(subscription, &attempt, outcome, context.today, &context.run.uncounted_charges).await
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
        subscription: &Subscription,
        attempt: &Attempt,
    ) -> Result<LookedUp, LookUpError> {
        let mut throttle_count = ThrottleCount::default();
        loop {
            self.pace.wait_for_turn().await;
            match self.engine.look_up(self.gateway.as_ref(), subscription, attempt).await {
                Err(LookUpError::Gateway(GatewayError::Throttled { retry_after }))
                    if self.pace.back_off(retry_after, &mut throttle_count)
                        && self.has_time_to_charge_after_pause(context.deadline) => {}
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
