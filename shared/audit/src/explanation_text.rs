//! The text of an explanation. It states only facts that the records show.

use std::fmt;

use chrono::NaiveDate;

use super::past_holds::{HoldKind, PastHold};
use super::{ChargeExplanation, ChargeReason, LaterOutcome, ReasonCode};
use billing::{AttemptEnd, AttemptRecord, Receipt, WaivedPeriod, WaivedReason};
use days::RequestedDay;
use days::{ShardProof, ShardState};

impl fmt::Display for ChargeExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.day.on;
        match &self.why {
            ChargeReason::Charged(receipt) => {
                let returned = self.returned_text(receipt);
                let Receipt { amount, due_on, payment, .. } = receipt;
                write!(f, "charged on {on}: {amount}, due on {due_on}, payment {payment}{returned}")
            }
            ChargeReason::Planned { due_on } => write!(f, "to be charged on {on}: the payment due on {due_on}"),
            ChargeReason::NotDue { next_on: Some(next_on) } => {
                write!(f, "nothing is due on {on}: the next payment is on {next_on}")
            }
            ChargeReason::NotDue { next_on: None } => write!(f, "nothing is due on {on}, and no payment is planned"),
            ChargeReason::Expired => {
                write!(f, "the records of {on} may have expired: records are kept for {} days", self.day.kept_days)
            }
            ChargeReason::Open(_) | ChargeReason::Owed { .. } => {
                write!(f, "no charge is recorded on {on}: {}", self.reason_text())
            }
            _ if self.day.is_in_future() => write!(f, "not to be charged on {on}: {}", self.reason_text()),
            _ => write!(f, "not charged on {on}: {}", self.reason_text()),
        }
    }
}

impl ChargeExplanation {
    /// Returns the part of the text that states the reason; empty if the first part of the text is complete without it.
    fn reason_text(&self) -> String {
        match &self.why {
            ChargeReason::Open(open) => format!(
                "an attempt to charge the payment due on {} began at {}, and its outcome is not known yet",
                open.due_on,
                open.claimed_at.format("%Y-%m-%d %H:%M UTC")
            ),
            ChargeReason::Tried { attempt, next } => {
                format!("{}{}", attempt_text(attempt), later_outcome_text(*next, &self.day))
            }
            ChargeReason::BetweenTries { last, next } => {
                let last_on = self.day.date_of(last.processed_at);
                // The records do not contain past retry dates. If the runs of the explained day were incomplete, they
                // may have missed a due retry, so the text also describes these runs.
                let is_walked = |run: &&ShardProof| run.is_complete() && run.stopped.is_none();
                let run = self.run.as_ref().filter(|run| self.day.on < self.day.today && !is_walked(run));
                let run = run.map(|run| format!(" ({})", self.run_text(run))).unwrap_or_default();
                format!(
                    "{} on {last_on}, and there was no attempt on this day{run}{}",
                    attempt_text(last),
                    later_outcome_text(*next, &self.day)
                )
            }
            ChargeReason::Owed { due_on, next } => {
                let run = self.run.as_ref().map(|run| format!(", and {}", self.run_text(run))).unwrap_or_default();
                format!("the payment due on {due_on} was owed{run}{}", later_outcome_text(*next, &self.day))
            }
            ChargeReason::Paid(receipt) => {
                let paid_on = self.day.date_of(receipt.processed_at);
                format!("the payment due on {} was made on {paid_on}{}", receipt.due_on, self.returned_text(receipt))
            }
            ChargeReason::Waived(WaivedPeriod { due_on, reason, waived_at, .. }) => {
                let waived_on = self.day.date_of(*waived_at);
                format!("the payment due on {due_on} was waived on {waived_on}, {}", waived_reason_text(*reason))
            }
            ChargeReason::Held { due_on, hold, next } => {
                // While the hold lasts, nothing else is planned for the payment.
                let next = next.filter(|_| hold.until.is_some());
                format!("{}{}", hold.describe_payment(*due_on), later_outcome_text(next, &self.day))
            }
            ChargeReason::Ending { on } => {
                format!("the cancellation of the subscription is planned for {on}, without a charge")
            }
            ChargeReason::NotBegun { created_on, first_due_on } => {
                format!(
                    "no payment is due before {first_due_on}, the first due date of the subscription, which was created on {created_on}"
                )
            }
            ChargeReason::Unrecorded { period } => format!(
                "the payment of {period} is neither paid nor waived nor owed: an outage missed it, or it fell due \
                 during a pause before pauses were recorded"
            ),
            ChargeReason::Charged(_)
            | ChargeReason::Planned { .. }
            | ChargeReason::NotDue { .. }
            | ChargeReason::Expired => String::new(),
        }
    }

    /// Returns the text about the refunds and the bank's reversal of the payment of `receipt`; empty if there are
    /// neither refunds nor a reversal.
    fn returned_text(&self, receipt: &Receipt) -> String {
        let date = |at| self.day.date_of(at);
        let refund_date = receipt.refunded_at.map(|at| format!(", requested last on {}", date(at))).unwrap_or_default();
        let refund = (receipt.refunded.minor() > 0)
            .then(|| format!("; refunded: {}{refund_date}; pending refunds included", receipt.refunded));
        let reversal = receipt.reversal.map(|reversal| {
            format!(
                "; on {} the gateway reported that the bank reversed {}; a person must decide whether to collect it",
                date(reversal.at),
                reversal.amount
            )
        });
        [refund, reversal].into_iter().flatten().collect()
    }

    /// Returns the text about the runs of the shard on the explained day, for an owed payment without an attempt.
    fn run_text(&self, run: &ShardProof) -> String {
        let shard = run.shard;
        let walked = match run.walked {
            ShardState::Expired => format!("the run records of shard {shard} may have expired"),
            ShardState::Missing if self.day.on == self.day.today => format!("no run of shard {shard} is recorded yet"),
            ShardState::Missing => format!("no run of shard {shard} is recorded"),
            ShardState::Open => format!("a run of shard {shard} has begun and has not ended"),
            ShardState::Gap => format!("a run of shard {shard} began at a position at which no other run had ended"),
            ShardState::Unfinished => format!("no run reached the end of shard {shard}"),
            ShardState::Stopped => format!("shard {shard} was not processed to its end"),
            ShardState::Complete | ShardState::Running | ShardState::LeftBehind | ShardState::Rejected => {
                format!("a run reached the end of shard {shard}")
            }
        };
        match (self.reason(), &run.stopped) {
            (_, Some(reason)) => format!("{walked}, and a run of the shard stopped early or deferred rows: {reason}"),
            (ReasonCode::LeftUnsettled, None) => {
                let left = payment_count_text(run.rows_without_final_outcome());
                format!(
                    "{walked}, and left {left} unsettled (the records do not show whether this payment is among them)"
                )
            }
            (ReasonCode::Unexplained, None) => {
                format!(
                    "{walked} without a charge of this payment, and the records do not explain why; it may have become \
                     payable after the last run, for example when the subscription was resumed"
                )
            }
            _ => walked,
        }
    }
}

/// Returns the text about an attempt that failed.
fn attempt_text(attempt: &AttemptRecord) -> String {
    let AttemptRecord { attempt_no, due_on, amount, outcome, code, hard, .. } = attempt;
    let ended = match outcome {
        AttemptEnd::Declined if *hard => "declined permanently",
        AttemptEnd::Declined => "declined",
        AttemptEnd::Rejected => "rejected by the gateway",
        AttemptEnd::Dropped => "dropped",
    };
    let code = if code.is_empty() { String::new() } else { format!(" ({code})") };
    format!("attempt {attempt_no} to charge {amount}, due on {due_on}, was {ended}{code}")
}

/// Returns the text about the outcome of the payment after the explained day, or about the plan for the payment.
fn later_outcome_text(next: Option<LaterOutcome>, day: &RequestedDay) -> String {
    match next {
        None => String::new(),
        Some(LaterOutcome::Paid { on }) => format!("; it was paid on {on}"),
        Some(LaterOutcome::Waived { on, reason }) => format!("; it was waived on {on}, {}", waived_reason_text(reason)),
        Some(LaterOutcome::Open { since }) => {
            format!("; an attempt began at {} and is still open", since.format("%Y-%m-%d %H:%M UTC"))
        }
        Some(LaterOutcome::Due { on }) if on <= day.today => "; it will be tried at the next run".to_owned(),
        Some(LaterOutcome::Due { on }) => format!("; it will be tried again on {on}"),
        Some(LaterOutcome::Held { hold }) => format!("; {}", hold.reason_text()),
    }
}

/// Returns the text about the reason why a payment was waived.
fn waived_reason_text(reason: WaivedReason) -> &'static str {
    match reason {
        WaivedReason::Unpaid => "because the subscription was unpaid",
        WaivedReason::Outage => "because an outage missed it",
        WaivedReason::Paused => "because the subscription was paused",
        WaivedReason::Cancelled => "because the subscription was cancelled",
        WaivedReason::Disputed => "because it fell due during a dispute that the merchant won",
        WaivedReason::Merchant => "by the merchant",
        WaivedReason::PaidElsewhere => "because the customer paid it in another way",
    }
}

fn payment_count_text(number: u64) -> String {
    if number == 1 { "1 payment".to_owned() } else { format!("{number} payments") }
}

impl PastHold {
    /// Returns the text about the payment due on `due_on`, which was or will be owed during the hold.
    fn describe_payment(&self, due_on: NaiveDate) -> String {
        let Self { kind, until, .. } = self;
        match (kind, until) {
            (HoldKind::Disputed, None) => {
                format!(
                    "the payment due on {due_on} is owed, but {}: the payment is not charged unless the merchant wins the \
                     dispute (which may waive the payment), the customer gives another payment method, or an operator \
                     retries the payment (dueday subscription retry)",
                    self.reason_text()
                )
            }
            (HoldKind::OpenFinding, None) => {
                format!(
                    "the payment due on {due_on} waits until a person has resolved the open finding (dueday findings)"
                )
            }
            (_, None) => self.reason_text(),
            (_, Some(_)) => format!("the payment due on {due_on} was owed, and {}", self.reason_text()),
        }
    }

    /// Returns the text about the hold and its time.
    fn reason_text(&self) -> String {
        let Self { kind, since, until } = self;
        let (object, state) = match kind {
            HoldKind::Cancelled => ("the subscription", "cancelled"),
            HoldKind::Unpaid => ("the subscription", "unpaid"),
            HoldKind::Paused => ("the subscription", "paused"),
            HoldKind::Disputed => ("the payment method", "disputed"),
            HoldKind::OpenFinding => ("the subscription", "blocked by a payment without a receipt"),
        };
        match (since, until) {
            (Some(since), None) => format!("{object} has been {state} since {since}"),
            (None, None) => format!("{object} is {state} now; the records do not show since when"),
            (Some(since), Some(until)) => format!("{object} was {state} from {since} to {until}"),
            (None, Some(until)) => format!("{object} was {state} until {until}; the records do not show since when"),
        }
    }
}
