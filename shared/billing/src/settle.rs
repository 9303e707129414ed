//! Settling: what becomes of a subscription when the outcome of its open attempt is known.
//!
//! [`settle`] is a function of the stored item alone, so it can be computed again whenever the item turns out to have
//! changed in the meantime, and whoever computes it gets the same answer.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::calendar::days_after;
use super::{
    AfterLastRetry, Attempt, AttemptEnd, AttemptRecord, Decline, LeadDays, Money, Outcome, Payment, Period, Policy,
    Receipt, Status, Subscription, WaivedPeriod, WaivedReason,
};

/// At most this many months are recorded as waived at once: a transaction takes a hundred items.
const MAX_WAIVED: usize = 90;

/// From so many days after a month's first decline, a decline makes it unpaid, under whatever card: cards that are changed
/// again and again must not keep it past due for ever.
pub(super) const MAX_PAST_DUE_DAYS: u32 = 28;

/// A charge is sent within this time of its claim. An attempt that is settled later was in doubt once: the gateway may still carry out an
/// earlier request of it.
const LATEST_CHARGE: TimeDelta = TimeDelta::minutes(6);

/// From the third in a row, a rejection counts as a soft decline.
const MAX_REJECTIONS: u32 = 3;

/// The next state and what is recorded with it, to be written in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    pub subscription: Subscription,
    pub receipt: Option<Receipt>,
    pub record: Option<AttemptRecord>,
    /// The months waived by it.
    pub waived: Vec<WaivedPeriod>,
}

impl From<Subscription> for Settlement {
    /// Only the next state.
    fn from(subscription: Subscription) -> Self {
        Self { subscription, receipt: None, record: None, waived: Vec::new() }
    }
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
    let mut next = Subscription { attempt: None, ..subscription.clone() };
    let recorded = |end, said: &Decline| Some(record(subscription, attempt, end, said, now));
    let settlement = match outcome {
        Outcome::Succeeded(payment) => succeeded(subscription, attempt.due_on, payment, policy.lead, sweep_on, now),
        Outcome::Declined(decline) => {
            next.rejections = 0;
            if now.signed_duration_since(attempt.claimed_at) > LATEST_CHARGE {
                next.rejected_customer = Some(attempt.payment_method.customer.clone());
            }
            let record = recorded(AttemptEnd::Declined, decline);
            Settlement { record, ..declined(next, attempt, decline, policy, sweep_on, now) }
        }
        Outcome::Rejected { code } => {
            let refused = Decline { code: code.clone(), hard: false };
            next.rejections = next.rejections.saturating_add(1);
            next.rejected_customer = Some(attempt.payment_method.customer.clone());
            if next.is_rejected_for_good() {
                let record = recorded(AttemptEnd::Declined, &refused);
                Settlement { record, ..declined(next, attempt, &refused, policy, sweep_on, now) }
            } else {
                let record = recorded(AttemptEnd::Rejected, &refused);
                Settlement { record, ..look_again(next, days_after(sweep_on, 1), now) }
            }
        }
        Outcome::Dropped => {
            next.rejected_customer = Some(attempt.payment_method.customer.clone());
            let stopped = Decline { code: subscription.status.to_string(), hard: false };
            let record = recorded(AttemptEnd::Dropped, &stopped);
            Settlement { record, ..look_again(next, sweep_on, now) }
        }
    };
    Settled::Write(Box::new(settlement))
}

impl Subscription {
    /// Whether it was rejected so often in a row that a rejection counts as a soft decline: what the gateway does not know
    /// today it will not know tomorrow.
    pub fn is_rejected_for_good(&self) -> bool {
        self.rejections >= MAX_REJECTIONS
    }
}

/// Pays the period of `due_on`, which is the one that is due.
pub(super) fn succeeded(
    subscription: &Subscription,
    due_on: NaiveDate,
    payment: &Payment,
    lead: LeadDays,
    sweep_on: NaiveDate,
    now: DateTime<Utc>,
) -> Settlement {
    let mut next = Subscription { attempt: None, ..subscription.clone() };
    let receipt = Receipt {
        account: next.account.clone(),
        subscription: next.id,
        sku: next.sku.clone(),
        product_name: next.product_name.clone(),
        email: next.email.clone(),
        due_on,
        amount: payment.amount,
        payment: payment.id.clone(),
        customer: subscription.attempt.as_ref().map(|attempt| attempt.payment_method.customer.clone()),
        card: payment.card.as_deref().cloned(),
        processed_at: now,
        refunded: Money::new(0, payment.amount.currency()),
        reversal: None,
    };
    let paid = Period::of(due_on);
    let due_next = match next.cancel_from.filter(|_| next.status == Status::Cancelled) {
        // What was owed besides was waived when it was cancelled.
        Some(end) => end,
        None => Period::of(next.course().due_after(due_on, sweep_on)),
    };
    let waived = if next.status == Status::Cancelled {
        Vec::new()
    } else {
        // Owed once, and waived because the subscription was unpaid.
        waive(subscription, paid.next(), due_next, WaivedReason::Unpaid, now)
    };
    next.move_to(due_next);
    next.unpaid_since = None;
    next.failed_attempts = 0;
    (next.rejections, next.rejected_customer) = (0, None);
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
    Settlement { receipt: Some(receipt), waived, ..next.into() }
}

/// The months of `subscription` from `first` on and before `end`, recorded as waived for `reason`: the latest, if they are
/// more than a transaction takes.
pub(super) fn waive(
    subscription: &Subscription,
    first: Period,
    end: Period,
    reason: WaivedReason,
    now: DateTime<Utc>,
) -> Vec<WaivedPeriod> {
    let waived = |period: Period| WaivedPeriod {
        account: subscription.account.clone(),
        subscription: subscription.id,
        due_on: subscription.due_in(period),
        reason,
        waived_at: now,
    };
    let backwards = std::iter::successors(Some(end.previous()), |period| Some(period.previous()));
    let mut latest: Vec<_> = backwards.take_while(|period| *period >= first).take(MAX_WAIVED).map(waived).collect();
    latest.reverse();
    latest
}

fn declined(
    mut next: Subscription,
    attempt: &Attempt,
    decline: &Decline,
    policy: &Policy,
    sweep_on: NaiveDate,
    now: DateTime<Utc>,
) -> Settlement {
    if !next.status.is_chargeable() {
        return look_again(next, sweep_on, now);
    }
    next.next_reminder_on = None;
    let first_declined_on = *next.first_declined_on.get_or_insert(sweep_on);
    let has_time = sweep_on < days_after(first_declined_on, MAX_PAST_DUE_DAYS);
    let gap_days = if next.payment_method != attempt.payment_method {
        // The customer changed the card while the old one was being tried: the new one gets a schedule of its own.
        next.failed_attempts = 0;
        Some(1)
    } else {
        next.failed_attempts = next.failed_attempts.saturating_add(1);
        policy.dunning.gap_days(next.failed_attempts).filter(|_| !decline.hard)
    };
    if let Some(gap_days) = gap_days.filter(|_| has_time) {
        next.status = Status::PastDue;
        return look_again(next, days_after(sweep_on, gap_days), now);
    }
    give_up(next, policy, sweep_on, now)
}

/// What was not paid is not tried again.
pub(super) fn give_up(mut next: Subscription, policy: &Policy, sweep_on: NaiveDate, now: DateTime<Utc>) -> Settlement {
    next.status = Status::Unpaid;
    next.next_reminder_on = None;
    next.unpaid_since = next.unpaid_since.or(Some(sweep_on));
    next.next_payment_on = None;
    if policy.after_last_retry == AfterLastRetry::Cancelled || next.cancel_from.is_some() {
        return next.cancel(sweep_on, now);
    }
    next.into()
}

/// Due again on `on`. If it was stopped meanwhile, it is in no index any more; if cancelled, its month is waived now that it
/// is known to be unpaid.
fn look_again(mut next: Subscription, on: NaiveDate, now: DateTime<Utc>) -> Settlement {
    next.next_payment_on = next.status.is_chargeable().then_some(on);
    if next.status != Status::Cancelled {
        return next.into();
    }
    let unpaid = Period::of(next.due_on);
    let end = next.cancel_from.unwrap_or(unpaid.next());
    let waived = waive(&next, unpaid, unpaid.next(), WaivedReason::Cancelled, now);
    next.cancel_from = Some(end);
    next.move_to(end);
    Settlement { waived, ..next.into() }
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
        customer: Some(attempt.payment_method.customer.clone()),
        outcome,
        code: said.code.clone(),
        hard: said.hard,
        processed_at: now,
    }
}
