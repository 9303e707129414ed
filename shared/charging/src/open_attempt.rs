//! Applies what the gateway reports, or what a person states, to an open attempt that no worker holds. A person states
//! the outcome, for example, because the gateway has lost the payment. The attempt is looked up at the gateway first. A
//! stated outcome that contradicts the gateway is accepted only if the operator requests that the gateway is ignored.

use billing::{
    AccountId, Attempt, AttemptOutcome, ClaimToken, GatewayToken, InDoubtResolution, Payment, PaymentStatus,
    Subscription, SubscriptionId, successful_payments,
};
use chrono::NaiveDate;
use gateways::PaymentGateway;
use store::{Claim, ClaimOutcome, SubscriptionKey, TableError};

use crate::{ApplyError, ApplyResult, ChargingEngine, LookUpError, LookedUp, OpenReason, UncountedCharges};

/// The outcome with which an attempt must be resolved, as the caller states it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatedOutcome {
    /// Use the outcome that the gateway reports.
    AsGatewayReports,
    /// The attempt was charged. Contains the gateway's id of the payment.
    Charged(GatewayToken),
    /// The attempt was not charged, and never will be.
    NotCharged,
}

impl ChargingEngine {
    /// Settles the open attempt of the subscription `id` with the outcome `stated`, on the day `today`. A charged
    /// attempt gets a receipt. If the attempt was not charged, its payment is charged tomorrow with a new attempt; if the
    /// subscription is stopped, the attempt is dropped. `gateway` is the gateway at which the attempt is looked up; `None`
    /// to ignore the gateway and use only the stated outcome.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn resolve_attempt(
        &self,
        gateway: Option<&dyn PaymentGateway>,
        account: &AccountId,
        id: SubscriptionId,
        stated: &StatedOutcome,
        today: NaiveDate,
    ) -> Result<ApplyResult, TableError> {
        match self.table.get_subscription(account, id).await? {
            Some(stored) => self.apply_to_open_attempt(gateway, stored, stated, today).await,
            None => Ok(ApplyResult::Missing),
        }
    }

    /// Like [`ChargingEngine::resolve_attempt`], for the subscription `stored`, which was just read. The attempt is first
    /// looked up. Then, if it has not changed, it is taken over, so that no other worker settles or charges it at the
    /// same time.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub(crate) async fn apply_to_open_attempt(
        &self,
        gateway: Option<&dyn PaymentGateway>,
        stored: Subscription,
        stated: &StatedOutcome,
        today: NaiveDate,
    ) -> Result<ApplyResult, TableError> {
        let Some(attempt) = stored.attempt.clone() else { return Ok(ApplyResult::NothingOpen) };
        let open = |reason| Ok(ApplyResult::Open(reason));
        let now = self.clock.now();
        // If the lease ends later than any valid lease, the clock of the machine that wrote the lease is wrong, or the
        // clock of this machine is wrong. Only a person can decide which of them is wrong, so such a lease is ignored
        // only if a person states the outcome.
        let is_lease_too_long =
            *stated != StatedOutcome::AsGatewayReports && attempt.leased_until > now + Attempt::LEASE;
        if !attempt.is_in_doubt(now) && !is_lease_too_long {
            return open(OpenReason::Leased { until: attempt.leased_until });
        }
        // Look the attempt up before the first write (the lease): after a contradiction, the operator can then repeat
        // the command immediately, without waiting for the end of a lease.
        let outcome = match self.find_outcome(gateway, &stored, &attempt, stated).await? {
            Ok(outcome) => outcome,
            Err(reason) => return open(reason),
        };
        let claim = Claim { token: ClaimToken(self.clock.ulid()), now, leased_until: now + Attempt::LEASE };
        let stored =
            match self.table.take_over_attempt(&SubscriptionKey::from_subscription(&stored), &attempt, claim).await? {
                ClaimOutcome::Claimed(stored) | ClaimOutcome::Refused(Some(stored)) => *stored,
                ClaimOutcome::Refused(None) => return Ok(ApplyResult::Missing),
            };
        let attempt = match stored.attempt.clone() {
            None => return Ok(ApplyResult::NothingOpen),
            Some(taken) if taken.claim_token != claim.token => {
                return open(OpenReason::Leased { until: taken.leased_until });
            }
            Some(taken) => taken,
        };
        let (shard, charges) = (stored.shard, UncountedCharges::default());
        let applied = match stated {
            StatedOutcome::AsGatewayReports => self.apply(stored, &attempt, outcome, today, &charges).await,
            StatedOutcome::Charged(_) | StatedOutcome::NotCharged => {
                self.apply_as_decided(stored, &attempt, outcome, today, &charges).await
            }
        };
        charges.write_or_warn(&self.table, today, shard).await;
        match applied {
            Ok(applied) => Ok(applied),
            Err(ApplyError::Table(error)) => Err(error),
            Err(error) => open(OpenReason::ReportContradicts(error.to_string())),
        }
    }

    /// Returns the outcome of `attempt`, the open attempt of `stored`, that follows from `stated` and from the look-up
    /// at `gateway`. The inner error is the reason why the attempt stays open.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    async fn find_outcome(
        &self,
        gateway: Option<&dyn PaymentGateway>,
        stored: &Subscription,
        attempt: &Attempt,
        stated: &StatedOutcome,
    ) -> Result<Result<AttemptOutcome, OpenReason>, TableError> {
        let outcome = match gateway {
            Some(gateway) => match self.look_up(gateway, stored, attempt).await {
                Ok(found) => outcome_of_payments(stored, attempt, stated, &found),
                Err(LookUpError::Gateway(error)) => return Ok(Err(OpenReason::NoResponse(error))),
                Err(LookUpError::Table(error)) => return Err(error),
            },
            None => outcome_without_gateway(stated, stored, attempt).map_err(OpenReason::ReportContradicts),
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(reason) => return Ok(Err(reason)),
        };
        if let (StatedOutcome::AsGatewayReports, AttemptOutcome::Succeeded(payment)) = (stated, &outcome) {
            match self.verify_payment(stored, attempt, payment).await {
                Ok(()) => {}
                Err(ApplyError::Table(error)) => return Err(error),
                Err(error) => return Ok(Err(OpenReason::ReportContradicts(error.to_string()))),
            }
        }
        Ok(Ok(outcome))
    }
}

/// Returns the outcome of `attempt` of `stored` that follows from `stated` and from what the look-up has `found`.
///
/// # Errors
/// The reason why the attempt stays open, if `stated` contradicts the gateway, or if the gateway reports no outcome.
fn outcome_of_payments(
    stored: &Subscription,
    attempt: &Attempt,
    stated: &StatedOutcome,
    found: &LookedUp,
) -> Result<AttemptOutcome, OpenReason> {
    let paid = successful_payments(stored, attempt, &found.listed);
    if let Some(message) = &found.paid_twice {
        tracing::error!(reason = %message, "a month was paid more than once");
    }
    let contradicted = |reason: String| Err(OpenReason::ReportContradicts(reason));
    match stated {
        StatedOutcome::AsGatewayReports => match &found.resolution {
            InDoubtResolution::Settle(outcome @ (AttemptOutcome::Succeeded(_) | AttemptOutcome::Declined(_))) => {
                Ok(outcome.clone())
            }
            InDoubtResolution::Settle(AttemptOutcome::Rejected { .. } | AttemptOutcome::Dropped)
            | InDoubtResolution::ChargeAgain => Err(OpenReason::NoPayment),
            InDoubtResolution::Processing => Err(OpenReason::Processing),
        },
        StatedOutcome::NotCharged => {
            match (paid.first(), found.listed.iter().find(|payment| is_payment_processing(payment, attempt))) {
                (Some(paid), _) => {
                    contradicted(format!("the gateway reports that the attempt was charged: {}", paid.id))
                }
                (None, Some(open)) => contradicted(format!("the gateway reports that {} is processing", open.id)),
                (None, None) => outcome_without_gateway(stated, stored, attempt).map_err(OpenReason::ReportContradicts),
            }
        }
        StatedOutcome::Charged(id) => match paid.iter().find(|payment| payment.id == *id) {
            Some(payment) if payment.amount == attempt.amount => Ok(AttemptOutcome::Succeeded((*payment).clone())),
            Some(payment) => contradicted(format!(
                "the gateway reports that the amount of {id} is {}, and {} was requested",
                payment.amount, attempt.amount
            )),
            None => {
                let month = attempt.period();
                contradicted(format!("the gateway lists no successful payment {id} of this subscription for {month}"))
            }
        },
    }
}

/// Returns whether `payment` is a payment of the period of `attempt`, and the bank is still processing it.
fn is_payment_processing(payment: &Payment, attempt: &Attempt) -> bool {
    payment.status == PaymentStatus::Processing && payment.period() == attempt.period()
}

/// Returns the outcome of `attempt` of `stored` that follows from `stated` alone, without the gateway.
fn outcome_without_gateway(
    stated: &StatedOutcome,
    stored: &Subscription,
    attempt: &Attempt,
) -> Result<AttemptOutcome, String> {
    Ok(match stated {
        StatedOutcome::AsGatewayReports => return Err("no outcome was stated, and no gateway was asked".to_owned()),
        StatedOutcome::Charged(payment) => AttemptOutcome::Succeeded(Payment {
            id: payment.clone(),
            table: attempt.table,
            account: stored.account.clone(),
            subscription: stored.id,
            due_on: attempt.due_on,
            attempt_no: attempt.no,
            amount: attempt.amount,
            status: PaymentStatus::Succeeded,
            card: None,
            created_at: attempt.claimed_at,
        }),
        StatedOutcome::NotCharged if stored.status.is_chargeable() => {
            AttemptOutcome::Rejected { code: "resolved_by_hand".to_owned() }
        }
        StatedOutcome::NotCharged => AttemptOutcome::Dropped,
    })
}
