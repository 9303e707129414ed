//! An explanation in words: one sentence that claims no more than the records show.

use std::fmt;

use chrono::NaiveDate;

use super::{Explanation, Next, Reason, Why};
use billing::{AttemptEnd, AttemptRecord, Receipt, Status, WaivedPeriod, WaivedReason};
use days::AskedDay;
use days::{ShardProof, Walked};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.day.on;
        match &self.why {
            Why::Charged(receipt) => {
                let reversed = self.taken_back(receipt);
                let Receipt { amount, due_on, payment, .. } = receipt;
                write!(f, "charged on {on}: {amount}, due on {due_on}, payment {payment}{reversed}")
            }
            Why::Planned { due_on } => write!(f, "to be charged on {on}: the payment due on {due_on}"),
            Why::NotDue { next_on: Some(next_on) } => {
                write!(f, "nothing is due on {on}: the next payment is on {next_on}")
            }
            Why::NotDue { next_on: None } => write!(f, "nothing is due on {on}, and no payment is planned"),
            Why::Expired => {
                write!(f, "what became of {on} may have expired: records are kept for {} days", self.day.kept_days)
            }
            Why::Open(_) | Why::Owed { .. } => write!(f, "no charge is recorded on {on}: {}", self.because()),
            _ if self.day.is_ahead() => write!(f, "not to be charged on {on}: {}", self.because()),
            _ => write!(f, "not charged on {on}: {}", self.because()),
        }
    }
}

impl Explanation {
    fn because(&self) -> String {
        match &self.why {
            Why::Open(open) => format!(
                "the payment due on {} has been begun at {}, and what came of it is not known yet",
                open.due_on,
                open.claimed_at.format("%Y-%m-%d %H:%M UTC")
            ),
            Why::Tried { attempt, next } => format!("{}{}", ended(attempt), then(*next, &self.day)),
            Why::BetweenTries { last, next } => {
                let last_on = self.day.date_of(last.processed_at);
                // The schedule it is tried by is not recorded: it may have been due, and nobody came.
                let is_walked = |run: &&ShardProof| run.holds() && run.stopped.is_none();
                let run = self.run.as_ref().filter(|run| self.day.on < self.day.today && !is_walked(run));
                let run = run.map(|run| format!(" ({})", self.told_by(run))).unwrap_or_default();
                format!("{} on {last_on}, and not tried on this day{run}{}", ended(last), then(*next, &self.day))
            }
            Why::Owed { due_on, next } => {
                let run = self.run.as_ref().map(|run| format!(", and {}", self.told_by(run))).unwrap_or_default();
                format!("the payment due on {due_on} was owed{run}{}", then(*next, &self.day))
            }
            Why::Paid(receipt) => {
                let paid_on = self.day.date_of(receipt.processed_at);
                format!("the payment due on {} was made on {paid_on}{}", receipt.due_on, self.taken_back(receipt))
            }
            Why::Waived(WaivedPeriod { due_on, reason, waived_at, .. }) => {
                let waived_on = self.day.date_of(*waived_at);
                format!("the payment due on {due_on} was waived on {waived_on}, {}", waived_because(*reason))
            }
            Why::Stopped { status, since, .. } => stopped(*status, *since),
            Why::Disputed { due_on, since } => format!(
                "the payment due on {due_on} is owed, and its payment method is disputed since {since}: it is not charged until \
                 the dispute is won, which may waive it, another one is given, or it is retried (dueday subscription retry)"
            ),
            Why::Ending { on } => format!("the subscription is to be cancelled on {on}, uncharged"),
            Why::NotBegun { created_on, first_due_on } => {
                format!("the subscription was created on {created_on}, and its first payment is due on {first_due_on}")
            }
            Why::Unrecorded { period } => format!(
                "the payment of {period} is neither made nor waived nor owed: it was missed, or fell due in a pause before \
                 pauses were recorded"
            ),
            Why::Charged(_) | Why::Planned { .. } | Why::NotDue { .. } | Why::Expired => String::new(),
        }
    }

    /// That the bank took the payment of `receipt` back, if it did.
    fn taken_back(&self, receipt: &Receipt) -> String {
        let Some(reversal) = receipt.reversal else { return String::new() };
        let on = self.day.date_of(reversal.at);
        format!("; on {on} we learned that the bank took {} back, which a person has to collect", reversal.amount)
    }

    /// What the runs of the day say of what was owed.
    fn told_by(&self, run: &ShardProof) -> String {
        let shard = run.shard;
        let walked = match run.walked {
            Walked::Expired => format!("the runs of shard {shard} may have expired"),
            Walked::Missing if self.day.on == self.day.today => format!("no run of shard {shard} is recorded yet"),
            Walked::Missing => format!("no run of shard {shard} is recorded"),
            Walked::Open => format!("a run of shard {shard} was begun and has not ended"),
            Walked::Gap => format!("a run of shard {shard} went on from where none had ended"),
            Walked::Unfinished => format!("no run of shard {shard} came to its end"),
            Walked::Stopped => format!("shard {shard} was not walked to its end"),
            Walked::Complete | Walked::Running | Walked::LeftBehind | Walked::Rejected => {
                format!("shard {shard} was walked to its end")
            }
        };
        match (self.reason(), &run.stopped) {
            (_, Some(reason)) => format!("{walked} and a run of it stopped or held back: {reason}"),
            (Reason::LeftUnsettled, None) => {
                let left = payments(run.unsettled());
                format!("{walked} with {left} left unsettled (whether this one is among them is not recorded)")
            }
            (Reason::Unexplained, None) => {
                format!(
                    "{walked} without it, which nothing explains, unless it became payable only after the last run, as it does when it is resumed"
                )
            }
            _ => walked,
        }
    }
}

fn ended(attempt: &AttemptRecord) -> String {
    let AttemptRecord { attempt_no, due_on, amount, outcome, code, hard, .. } = attempt;
    let ended = match outcome {
        AttemptEnd::Declined if *hard => "declined for good",
        AttemptEnd::Declined => "declined",
        AttemptEnd::Rejected => "rejected by the gateway",
        AttemptEnd::Dropped => "dropped",
    };
    let code = if code.is_empty() { String::new() } else { format!(" ({code})") };
    format!("attempt {attempt_no} to charge {amount}, due on {due_on}, was {ended}{code}")
}

/// What came of it after that day, or will.
fn then(next: Option<Next>, day: &AskedDay) -> String {
    match next {
        None => String::new(),
        Some(Next::Paid { on }) => format!("; it was paid on {on}"),
        Some(Next::Waived { on, reason }) => format!("; it was waived on {on}, {}", waived_because(reason)),
        Some(Next::Open { since }) => {
            format!("; it was begun at {}, and is open", since.format("%Y-%m-%d %H:%M UTC"))
        }
        Some(Next::Due { on }) if on <= day.today => "; it is tried at the next run".to_owned(),
        Some(Next::Due { on }) => format!("; it is tried again on {on}"),
        Some(Next::Stopped { status, since }) => format!("; {}", stopped(status, since)),
    }
}

fn waived_because(reason: WaivedReason) -> &'static str {
    match reason {
        WaivedReason::Unpaid => "because the subscription was unpaid",
        WaivedReason::Outage => "because it was missed",
        WaivedReason::Paused => "because the subscription was paused",
        WaivedReason::Cancelled => "because the subscription was cancelled",
        WaivedReason::Disputed => "because a payment was disputed, and the dispute was won",
    }
}

fn stopped(status: Status, since: Option<NaiveDate>) -> String {
    let status = status.to_string().replace('_', " ");
    match since {
        Some(since) => format!("the subscription is {status} since {since}"),
        None => format!("the subscription is {status} now; since when is not recorded"),
    }
}

fn payments(number: u64) -> String {
    if number == 1 { "1 payment".to_owned() } else { format!("{number} payments") }
}
