//! Charges a claimed attempt, and decides from the gateway's response whether to settle the attempt, to send the charge
//! again, or to leave the attempt open.

use chrono::{DateTime, TimeDelta, Utc};

use super::request_pace::ThrottleCount;
use super::row_error::RowError;
use super::run::RowContext;
use super::{IN_DOUBT_MESSAGE, PaymentBatch, PaymentOutcome, PaymentRun, RowResult, deferred_because_charging_is_off};
use billing::{Attempt, Outcome, PaymentMethod, Resolution, Subscription, resolve};
use gateways::{ChargeRequest, ChargeResponse, GatewayError};
use settling::SettleError;
use store::{Claim, SubscriptionKey, TableError};

/// The longest time after the claim or take-over of an attempt within which the attempt may be charged. If a process
/// was suspended after the claim, it must not charge the attempt, because another worker may have taken over the
/// attempt. The shortest allowed lease is twice as long. The difference is a reserve for slow requests and for
/// differences between clocks.
const MAX_TIME_FROM_CLAIM_TO_CHARGE: TimeDelta = TimeDelta::minutes(5);

/// How long an attempt may stay in doubt. After this time, every run reports the attempt's row as failed until the
/// attempt is resolved.
const MAX_TIME_IN_DOUBT: TimeDelta = TimeDelta::days(1);

/// The permission to charge an attempt that this worker has claimed or taken over.
pub(super) struct ChargePermit {
    pub subscription: Subscription,
    pub attempt: Attempt,
    /// The time of the claim or take-over.
    claimed_at: DateTime<Utc>,
}

impl ChargePermit {
    /// Creates the permission to charge the open attempt of `subscription`, which `claim` has claimed or taken over.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if the subscription has no open attempt, although a claim always writes one.
    pub fn from_claim(subscription: Subscription, claim: Claim) -> Result<Self, TableError> {
        match subscription.attempt.clone() {
            Some(attempt) => Ok(Self { subscription, attempt, claimed_at: claim.now }),
            None => Err(TableError::unreadable(
                SubscriptionKey::from_subscription(&subscription).key(),
                "the subscription was claimed, but has no open attempt",
            )),
        }
    }
}

/// The result of charging an attempt.
enum ChargeResult {
    /// The outcome of the attempt is known and final.
    Outcome(Outcome),
    /// The attempt stays open. Contains the result that the run records for the subscription's row.
    Open(RowResult),
}

/// The conclusion from the look-up of an attempt at the gateway.
enum LookUpResult {
    /// The attempt must be settled with this outcome: the gateway has the payment, or the subscription was stopped.
    Settle(Outcome),
    /// The attempt stays open. Contains the result that the run records for the subscription's row.
    Open(RowResult),
    /// The gateway has no payment of the period.
    NoPayment,
}

impl PaymentBatch {
    /// Charges the attempt of `permit`, which was just claimed. If the gateway may have made the payment of an earlier
    /// attempt of the same due date, for example although it rejected that attempt, first looks up that payment.
    pub(super) async fn charge_claimed_attempt(
        &self,
        context: RowContext<'_>,
        permit: ChargePermit,
    ) -> Result<RowResult, SettleError> {
        if let Some(customer) = permit.subscription.rejected_customer.clone() {
            let earlier = Attempt {
                payment_method: PaymentMethod { customer, ..permit.attempt.payment_method.clone() },
                ..permit.attempt.clone()
            };
            match self.look_up_outcome(context.run, &permit.subscription, &earlier).await {
                LookUpResult::Settle(outcome) => {
                    return self.settle(context, permit.subscription, &permit.attempt, outcome).await;
                }
                LookUpResult::Open(done) => return Ok(done),
                LookUpResult::NoPayment => {}
            }
        }
        self.charge(context, permit).await
    }

    /// Charges the attempt of `permit` and settles its outcome.
    pub(super) async fn charge(&self, context: RowContext<'_>, permit: ChargePermit) -> Result<RowResult, SettleError> {
        match self.charge_until_outcome_known(context, &permit).await {
            ChargeResult::Outcome(outcome) => self.settle(context, permit.subscription, &permit.attempt, outcome).await,
            ChargeResult::Open(done) => Ok(done),
        }
    }

    /// Sends the charge of `permit` until its outcome is known or the attempt must stay open. If the gateway returns an
    /// error that does not prove that no payment was made, looks up the attempt. If the gateway has no payment, sends
    /// the same request once more. If the gateway then returns the same error again and still has no payment, the
    /// attempt counts as rejected.
    async fn charge_until_outcome_known(&self, context: RowContext<'_>, permit: &ChargePermit) -> ChargeResult {
        let ChargePermit { subscription, attempt, .. } = permit;
        let mut previous_code: Option<String> = None;
        loop {
            let response = match self.send_charge(context, permit).await {
                Ok(response) => response,
                Err(result) => return ChargeResult::Open(result),
            };
            let in_doubt = |error: GatewayError| {
                ChargeResult::Open(self.result_without_response(context.run, (subscription, attempt), &error))
            };
            let (code, is_final) = match response {
                ChargeResponse::Succeeded(payment) => return ChargeResult::Outcome(Outcome::Succeeded(payment)),
                ChargeResponse::Declined(decline) => return ChargeResult::Outcome(Outcome::Declined(decline)),
                ChargeResponse::Rejected { code } => return ChargeResult::Outcome(Outcome::Rejected { code }),
                ChargeResponse::Processing => {
                    return ChargeResult::Open(self.result_of_processing_attempt(context.run, attempt));
                }
                ChargeResponse::Unknown { reason } => return in_doubt(GatewayError::Unknown { reason }),
                ChargeResponse::Throttled { retry_after } => return in_doubt(GatewayError::Throttled { retry_after }),
                ChargeResponse::Unusable { reason } => return in_doubt(GatewayError::Unusable { reason }),
                ChargeResponse::KeyReused => ("idempotency_key_in_use".to_owned(), true),
                ChargeResponse::Inconclusive { code } => {
                    let is_same = previous_code.as_ref() == Some(&code);
                    (code, is_same)
                }
            };
            match self.look_up_outcome(context.run, subscription, attempt).await {
                LookUpResult::Settle(outcome) => return ChargeResult::Outcome(outcome),
                LookUpResult::Open(result) => return ChargeResult::Open(result),
                LookUpResult::NoPayment if is_final => return ChargeResult::Outcome(Outcome::Rejected { code }),
                // Two different errors do not prove that no payment was made: a later run looks the attempt up again.
                LookUpResult::NoPayment if previous_code.is_some() => {
                    return in_doubt(GatewayError::Unknown { reason: code });
                }
                LookUpResult::NoPayment => previous_code = Some(code),
            }
        }
    }

    /// Sends the charge of `permit`, if the permission is still valid and enough time is left. Repeats the request if
    /// the gateway refuses it because of the gateway's rate limit. If the charge must not be sent, returns the result
    /// of the row as `Err`.
    async fn send_charge(&self, context: RowContext<'_>, permit: &ChargePermit) -> Result<ChargeResponse, RowResult> {
        let request = ChargeRequest::from_attempt(&permit.subscription, &permit.attempt);
        let mut throttle_count = ThrottleCount::default();
        loop {
            // If the current pause, which the gateway's rate limit requires, ends too late for a charge before the
            // deadline, do not wait for the end of the pause.
            if !self.has_time_to_charge_after_pause(context.deadline) {
                return Err(RowResult::Counted(PaymentOutcome::InDoubt));
            }
            self.pace.wait_for_pause_end().await;
            let is_permitted =
                self.clock.now().signed_duration_since(permit.claimed_at) < MAX_TIME_FROM_CLAIM_TO_CHARGE;
            if !is_permitted || !self.has_time_to_charge(context.deadline) {
                return Err(RowResult::Counted(PaymentOutcome::InDoubt));
            }
            if !context.run.is_charging_enabled() {
                return Err(deferred_because_charging_is_off(PaymentOutcome::InDoubt));
            }
            let sent_at = self.clock.now();
            let response = self.gateway.charge(&request).await.or_unknown_if_contradictory();
            context.run.add_charge(&response, self.clock.now().signed_duration_since(sent_at));
            match response {
                // The gateway refused the request because of its rate limit, and made no payment. Repeat the same
                // request while the permission is valid.
                ChargeResponse::Throttled { retry_after } if self.pace.back_off(retry_after, &mut throttle_count) => {
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

    /// Looks up `attempt` in the gateway's list of the customer's payments. Decides whether to settle the attempt or to
    /// leave it open, or finds that the gateway has no payment.
    async fn look_up_outcome(&self, run: &PaymentRun, subscription: &Subscription, attempt: &Attempt) -> LookUpResult {
        let listed = match self.list_payments_of_customer(run, attempt).await {
            Ok(listed) => listed,
            Err(error) => {
                return LookUpResult::Open(self.result_without_response(run, (subscription, attempt), &error));
            }
        };
        match resolve(subscription, attempt, &listed, self.clock.now()) {
            Resolution::Settle(outcome) => LookUpResult::Settle(outcome),
            Resolution::Processing => LookUpResult::Open(self.result_of_processing_attempt(run, attempt)),
            Resolution::ChargeAgain => LookUpResult::NoPayment,
        }
    }

    /// Returns the result of a row if the gateway returned no usable response to the charge or the look-up of
    /// `attempt`. Adds the attempt to the attempts in doubt of the run. If `attempt` was claimed longer ago than a
    /// lease lasts, the circuit breaker does not count an unknown outcome or a throttled request: other attempts can
    /// probably be charged even if the look-up of an old attempt fails.
    pub(super) fn result_without_response(
        &self,
        run: &PaymentRun,
        (subscription, attempt): (&Subscription, &Attempt),
        error: &GatewayError,
    ) -> RowResult {
        run.add_in_doubt(attempt.claimed_at);
        let age = self.clock.now().signed_duration_since(attempt.claimed_at);
        let stop_reason = match error {
            GatewayError::Unknown { .. } | GatewayError::Throttled { .. } if age >= self.lease => None,
            error => run.breaker.count_failure(error),
        };
        if let Some(reason) = stop_reason {
            return RowResult::StopRun { counted: Some(PaymentOutcome::InDoubt), reason };
        }
        let (account, id) = (&subscription.account, subscription.id);
        tracing::warn!(%account, subscription = %id, %error, error_type = error.error_type(), "{IN_DOUBT_MESSAGE}");
        if age > MAX_TIME_IN_DOUBT {
            return RowError::InDoubtTooLong { since: attempt.claimed_at, error: error.clone() }.into();
        }
        RowResult::Counted(PaymentOutcome::InDoubt)
    }

    /// Returns the result of a row of `run` whose `attempt` the bank is processing.
    pub(super) fn result_of_processing_attempt(&self, run: &PaymentRun, attempt: &Attempt) -> RowResult {
        if self.clock.now().signed_duration_since(attempt.claimed_at) > run.max_processing() {
            return RowError::ProcessingTooLong { since: attempt.claimed_at }.into();
        }
        RowResult::Counted(PaymentOutcome::Processing)
    }
}
