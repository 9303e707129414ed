//! Settling: what becomes of a subscription when the outcome of its open attempt is known.
//!
//! [`settle`] is a function of the stored item alone, so it can be computed again whenever the item turns out to have
//! changed in the meantime, and whoever computes it gets the same answer.

use chrono::{DateTime, NaiveDate, Utc};

use super::calendar::days_after;
use super::{
    AfterLastRetry, Attempt, AttemptEnd, AttemptRecord, CatchUp, Decline, Dunning, LeadDays, Payment, Period, Receipt,
    Status, Subscription, WaivedPeriod, WaivedReason,
};

/// At most this many months are recorded as waived at once: a transaction takes a hundred items.
const MAX_WAIVED: usize = 90;

/// What the gateway's answer, or its knowledge, means for the attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    Succeeded(Payment),
    /// It can no longer succeed.
    Declined(Decline),
    /// The gateway refused the request and made nothing.
    Rejected {
        code: String,
    },
    /// Stopped by the customer before the gateway knew anything of it.
    Dropped,
}

/// The merchant's settings that settling depends on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    pub dunning: Dunning,
    pub after_last_retry: AfterLastRetry,
    pub lead: LeadDays,
    pub catch_up: CatchUp,
}

/// The next state and what is recorded with it, to be written in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    pub subscription: Subscription,
    pub receipt: Option<Receipt>,
    pub record: Option<AttemptRecord>,
    /// The months waived by it.
    pub waived: Vec<WaivedPeriod>,
}

/// What settling an attempt comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Write this.
    Write(Box<Settlement>),
    /// The stored item no longer has this attempt: another worker settled it.
    Already,
    /// It stays open, and is charged under its own key: the gateway made nothing of it, and by now another worker has
    /// taken it over, or the customer has resumed what was to be dropped.
    StaysOpen,
}

/// Settles the attempt of `subscription` that a worker holds as `held` with `outcome`, during the sweep of `sweep_on`.
///
/// What the gateway has made is final, and whoever knows it may settle it. That it has made nothing is true only as long
/// as nobody else may charge: another worker that has taken the attempt over may be charging it at this moment.
pub fn settle(
    subscription: &Subscription,
    held: &Attempt,
    outcome: &Outcome,
    policy: &Policy,
    sweep_on: NaiveDate,
    now: DateTime<Utc>,
) -> Settled {
    let Some(attempt) = subscription.attempt.as_ref().filter(|attempt| attempt.no == held.no) else {
        return Settled::Already;
    };
    let is_made = matches!(outcome, Outcome::Succeeded(_) | Outcome::Declined(_));
    let is_resumed = *outcome == Outcome::Dropped && subscription.status.is_chargeable();
    if (!is_made && attempt.held_by != held.held_by) || is_resumed {
        return Settled::StaysOpen;
    }
    let next = Subscription { attempt: None, ..subscription.clone() };
    let settlement = match outcome {
        Outcome::Succeeded(payment) => succeeded(next, attempt, payment, policy.lead, sweep_on, now),
        Outcome::Declined(decline) => Settlement {
            record: Some(record(subscription, attempt, AttemptEnd::Declined, decline, now)),
            receipt: None,
            waived: Vec::new(),
            subscription: declined(next, attempt, decline, policy, sweep_on),
        },
        Outcome::Rejected { code } => {
            let refused = Decline { code: code.clone(), hard: false };
            Settlement {
                record: Some(record(subscription, attempt, AttemptEnd::Rejected, &refused, now)),
                receipt: None,
                waived: Vec::new(),
                subscription: look_again(next, days_after(sweep_on, 1)),
            }
        }
        Outcome::Dropped => {
            let stopped = Decline { code: subscription.status.to_string(), hard: false };
            Settlement {
                record: Some(record(subscription, attempt, AttemptEnd::Dropped, &stopped, now)),
                receipt: None,
                waived: Vec::new(),
                subscription: Subscription { next_payment_on: None, ..next },
            }
        }
    };
    Settled::Write(Box::new(settlement))
}

fn succeeded(
    mut next: Subscription,
    attempt: &Attempt,
    payment: &Payment,
    lead: LeadDays,
    sweep_on: NaiveDate,
    now: DateTime<Utc>,
) -> Settlement {
    let receipt = Receipt {
        account: next.account.clone(),
        subscription: next.id,
        sku: next.sku.clone(),
        product_name: next.product_name.clone(),
        email: next.email.clone(),
        due_on: attempt.due_on,
        amount: payment.amount,
        payment: payment.id.clone(),
        processed_at: now,
    };
    next.due_on = next.due_after(attempt.due_on, sweep_on);
    // Owed once, and waived because the subscription was unpaid.
    let waived = waive(&next, Period::of(attempt.due_on).next(), WaivedReason::Unpaid, now);
    next.unpaid_since = None;
    next.failed_attempts = 0;
    next.last_payment_at = Some(now);
    if matches!(next.status, Status::PastDue | Status::Unpaid) {
        next.status = Status::Active;
    }
    if next.status == Status::Active {
        // At most one charge per subscription and sweep date: a later owed period waits for tomorrow.
        next.next_payment_on = Some(next.due_on.max(days_after(sweep_on, 1)));
        next.next_reminder_on = (next.due_on > sweep_on && !next.is_ending()).then(|| lead.before(next.due_on));
    } else {
        next.next_payment_on = None;
        next.next_reminder_on = None;
    }
    Settlement { subscription: next, receipt: Some(receipt), record: None, waived }
}

/// The months from `first` on that `next` no longer owes, recorded as waived for `reason`.
pub(super) fn waive(next: &Subscription, first: Period, reason: WaivedReason, now: DateTime<Utc>) -> Vec<WaivedPeriod> {
    let end = Period::of(next.due_on);
    let periods = std::iter::successors(Some(first), |period| Some(period.next()));
    let waived = |period: Period| WaivedPeriod {
        account: next.account.clone(),
        subscription: next.id,
        due_on: next.payment_day.due_in(period),
        reason,
        waived_at: now,
    };
    periods.take_while(|period| *period < end).take(MAX_WAIVED).map(waived).collect()
}

fn declined(
    mut next: Subscription,
    attempt: &Attempt,
    decline: &Decline,
    policy: &Policy,
    sweep_on: NaiveDate,
) -> Subscription {
    if !next.status.is_chargeable() {
        next.next_payment_on = None;
        return next;
    }
    next.next_reminder_on = None;
    if next.payment_method != attempt.payment_method {
        // The customer changed the card while the old one was being tried: the new one gets a schedule of its own.
        next.failed_attempts = 0;
        next.status = Status::PastDue;
        return look_again(next, days_after(sweep_on, 1));
    }
    next.failed_attempts = next.failed_attempts.saturating_add(1);
    match policy.dunning.gap_days(next.failed_attempts).filter(|_| !decline.hard) {
        Some(gap_days) => {
            next.status = Status::PastDue;
            look_again(next, days_after(sweep_on, gap_days))
        }
        None => {
            next.status = match policy.after_last_retry {
                AfterLastRetry::Unpaid => {
                    next.unpaid_since = next.unpaid_since.or(Some(sweep_on));
                    Status::Unpaid
                }
                AfterLastRetry::Cancelled => {
                    next.cancel_from = None;
                    Status::Cancelled
                }
            };
            next.next_payment_on = None;
            next
        }
    }
}

/// Due again on `on`, unless it was stopped meanwhile.
fn look_again(mut next: Subscription, on: NaiveDate) -> Subscription {
    next.next_payment_on = next.status.is_chargeable().then_some(on);
    next
}

fn record(
    subscription: &Subscription,
    attempt: &Attempt,
    outcome: AttemptEnd,
    said: &Decline,
    now: DateTime<Utc>,
) -> AttemptRecord {
    AttemptRecord {
        account: subscription.account.clone(),
        subscription: subscription.id,
        due_on: attempt.due_on,
        attempt_no: attempt.no,
        amount: attempt.amount,
        outcome,
        code: said.code.clone(),
        hard: said.hard,
        processed_at: now,
    }
}
