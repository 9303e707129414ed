//! Converts what the engine has done into the result of a row, by which the run counts the row.

use billing::{
    Attempt, AttemptEnd, AttemptOutcome, AttemptRecord, is_rejection_of_payment_method, is_rejection_without_cause,
};
use charging::{ApplyResult, OpenReason, WrittenSettlement};
use chrono::{DateTime, TimeDelta, Utc};
use gateways::GatewayError;
use store::{SubscriptionKey, TableError};

use super::row_error::RowError;
use super::run::RowContext;
use super::{PaymentBatch, PaymentOutcome, PaymentRun, RowResult};

/// How long an attempt may stay in doubt. After this time, every run reports the attempt's row as failed until the
/// attempt is resolved.
const MAX_TIME_IN_DOUBT: TimeDelta = TimeDelta::days(1);

/// The log message of an attempt whose outcome is still unknown, with the error.
const IN_DOUBT_MESSAGE: &str = "an attempt stays in doubt";

impl PaymentBatch {
    /// Returns the result of the row `key`, whose attempt was first claimed at `claimed_at`, after the engine has
    /// `applied` what the gateway reports.
    pub(super) fn row_result(
        &self,
        RowContext { run, .. }: RowContext<'_>,
        key: &SubscriptionKey,
        claimed_at: DateTime<Utc>,
        applied: ApplyResult,
    ) -> RowResult {
        let reason = match applied {
            ApplyResult::Settled(settled) => return result_of_settlement(run, key, *settled),
            ApplyResult::AlreadySettled(outcome) => {
                return RowResult::Counted(match *outcome {
                    AttemptOutcome::Succeeded(_) => PaymentOutcome::Paid,
                    AttemptOutcome::Declined(_) => PaymentOutcome::Declined,
                    AttemptOutcome::Rejected { .. } => PaymentOutcome::Rejected,
                    AttemptOutcome::Dropped => PaymentOutcome::Skipped,
                });
            }
            // The engine stores findings only about payments that events and lists report.
            ApplyResult::FindingStored(_) | ApplyResult::NothingOpen | ApplyResult::Missing => {
                return RowResult::Counted(PaymentOutcome::Skipped);
            }
            ApplyResult::Open(reason) => reason,
        };
        match reason {
            OpenReason::NoResponse(error) => self.result_without_response(run, key, claimed_at, &error),
            OpenReason::Processing if self.clock.now().signed_duration_since(claimed_at) > run.max_processing() => {
                RowError::ProcessingTooLong { since: claimed_at }.into()
            }
            OpenReason::Processing => RowResult::Counted(PaymentOutcome::Processing),
            OpenReason::ChargingIsOff => deferred_because_charging_is_off(PaymentOutcome::InDoubt),
            OpenReason::AttemptContradicts(contradiction) => RowError::AttemptContradiction(contradiction).into(),
            OpenReason::NoPayment
            | OpenReason::Leased { .. }
            | OpenReason::NotSent
            | OpenReason::Blocked
            | OpenReason::NotFinal
            | OpenReason::ReportContradicts(_) => RowResult::Counted(PaymentOutcome::InDoubt),
        }
    }

    /// Returns the result of a row if the gateway returned no usable response to the charge or the look-up of its
    /// attempt. Adds the attempt to the attempts in doubt of the run. If the attempt was claimed longer ago than a lease
    /// lasts, the circuit breaker does not count an unknown outcome: other attempts can probably be charged even if the
    /// look-up of an old attempt fails. It always counts a request that the gateway refused because of its rate limit,
    /// because the rate limit applies to all requests.
    fn result_without_response(
        &self,
        run: &PaymentRun,
        SubscriptionKey { account, subscription, .. }: &SubscriptionKey,
        claimed_at: DateTime<Utc>,
        error: &GatewayError,
    ) -> RowResult {
        run.add_in_doubt(claimed_at);
        let age = self.clock.now().signed_duration_since(claimed_at);
        let stop_reason = match error {
            GatewayError::Unknown { .. } | GatewayError::Unreadable { .. } if age >= Attempt::LEASE => None,
            error => run.charges.breaker.count_failure(error),
        };
        if let Some(reason) = stop_reason {
            return RowResult::StopRun { counted: Some(PaymentOutcome::InDoubt), reason };
        }
        tracing::warn!(%account, %subscription, %error, error_type = error.error_type(), "{IN_DOUBT_MESSAGE}");
        if age > MAX_TIME_IN_DOUBT {
            return RowError::InDoubtTooLong { since: claimed_at, error: error.clone() }.into();
        }
        RowResult::Counted(PaymentOutcome::InDoubt)
    }
}

/// Returns the result of the row `key`, whose attempt was `settled`. Adds the payment to the totals of `run`.
fn result_of_settlement(
    run: &PaymentRun,
    SubscriptionKey { account, subscription, .. }: &SubscriptionKey,
    WrittenSettlement { settlement, was_reminded, paid_twice }: WrittenSettlement,
) -> RowResult {
    let outcome = match (&settlement.receipt, &settlement.record) {
        (Some(receipt), _) => {
            run.add_paid(receipt.amount, was_reminded);
            if !was_reminded {
                tracing::info!(%account, id = %subscription, "a payment was charged before its reminder was sent");
            }
            PaymentOutcome::Paid
        }
        (None, Some(record)) => outcome_of_record(record),
        (None, None) => PaymentOutcome::Skipped,
    };
    if let Some(AttemptRecord { due_on, amount, code, .. }) = &settlement.record {
        if outcome == PaymentOutcome::Declined {
            run.add_declined(*amount);
        }
        if outcome == PaymentOutcome::Rejected {
            let solve = rejection_remedy(code);
            tracing::error!(%account, id = %subscription, %due_on, %amount, code, solve, "the gateway rejected a payment");
        }
    }
    match paid_twice {
        Some(reason) => RowError::PaidTwice(reason).into(),
        None => RowResult::Counted(outcome),
    }
}

/// Returns the outcome by which a run counts an attempt with the record `record`. If the gateway keeps rejecting a payment
/// method, the customer must replace it, as after a decline, so the rejection counts as a decline. Every other rejection
/// is the merchant's to solve.
fn outcome_of_record(record: &AttemptRecord) -> PaymentOutcome {
    match record.outcome {
        AttemptEnd::Declined => PaymentOutcome::Declined,
        AttemptEnd::Rejected if record.is_decline => PaymentOutcome::Declined,
        AttemptEnd::Rejected => PaymentOutcome::Rejected,
        AttemptEnd::Dropped => PaymentOutcome::Skipped,
    }
}

/// Returns whether a row with the result `done` was counted and may still have an open payment attempt.
pub(super) fn may_have_open_attempt(done: &RowResult) -> bool {
    let is_open = |outcome: &PaymentOutcome| matches!(outcome, PaymentOutcome::InDoubt | PaymentOutcome::Processing);
    match done {
        RowResult::Counted(outcome) => is_open(outcome),
        RowResult::Failed { .. } | RowResult::Deferred { .. } => true,
        RowResult::StopRun { counted, .. } => counted.is_some(),
        RowResult::OutOfTime | RowResult::LeftToOtherLane => false,
    }
}

/// Returns the result of a row that is counted with `outcome`, but deferred because charging is switched off.
pub(super) fn deferred_because_charging_is_off(outcome: PaymentOutcome) -> RowResult {
    RowResult::Deferred { counted: outcome, reason: OpenReason::ChargingIsOff.to_string() }
}

/// Logs that the attempt of the subscription `key` stays in doubt because of the table's `error`. Returns the result of
/// the subscription's row.
pub(super) fn in_doubt_result(
    SubscriptionKey { account, subscription, .. }: &SubscriptionKey,
    error: &TableError,
) -> RowResult {
    tracing::warn!(%account, %subscription, %error, error_type = "Table", "{IN_DOUBT_MESSAGE}");
    RowResult::Counted(PaymentOutcome::InDoubt)
}

/// Returns the remedy of a rejection with the code `code`, for the operator.
fn rejection_remedy(code: &str) -> &'static str {
    match is_rejection_of_payment_method(code) {
        true => {
            "the run of tomorrow tries again; after three rejections, the customer must give another payment method"
        }
        false if is_rejection_without_cause(code) => {
            "the run of tomorrow tries again; nothing needs to be done unless it happens again"
        }
        false => {
            "correct the price (`dueday subscription correct-price`), waive the month (`waive`), or correct the account at the gateway"
        }
    }
}
