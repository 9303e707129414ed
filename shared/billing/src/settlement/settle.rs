//! Settling: the next state of a subscription, computed from the outcome of its open attempt.
//!
//! [`settle_open_attempt`] is a pure function of the stored item and the outcome. After a write conflict, the worker calls
//! [`settle_open_attempt`] again with the newly stored item. All workers get the same result.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use crate::records::attempt::{Attempt, AttemptOutcome};
use crate::records::attempt_record::{AttemptEnd, AttemptRecord};
use crate::records::payment::{Decline, Payment};
use crate::records::receipt::Receipt;
use crate::records::refund::Refund;
use crate::records::waived_period::{WaivedPeriod, WaivedReason};
use crate::settings::dunning::AfterLastRetry;
use crate::settings::policy::{LeadDays, Policy};
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;
use crate::values::calendar::days_after;
use crate::values::money::Money;

/// The maximum number of waived months that one settlement records, because a DynamoDB transaction has at most 100
/// items.
const MAX_WAIVED_PERIODS: usize = 90;

/// The maximum number of days for which a subscription stays past due. If a payment is declined again this many days
/// after its first decline, or later, the subscription becomes unpaid or cancelled, even if the customer has changed
/// the card. Without this limit, a customer who changes cards again and again would stay past due for ever.
pub(crate) const MAX_PAST_DUE_DAYS: u32 = 28;

/// The maximum time from the claim of an attempt to the gateway's response, if the attempt was never in doubt. An
/// attempt that is declined after a longer time was in doubt: the gateway may still process an earlier charge request
/// of this attempt.
const MAX_TIME_TO_CHARGE: TimeDelta = TimeDelta::minutes(6);

/// The next state of a subscription and the new records of the subscription. One transaction writes all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    pub subscription: Subscription,
    /// The receipt, if the payment succeeded.
    pub receipt: Option<Receipt>,
    /// The refunds that the gateway has made of the payment of the receipt, if the payment was refunded before it got
    /// its receipt.
    pub refunds: Vec<Refund>,
    /// The record of the attempt, if it did not succeed.
    pub record: Option<AttemptRecord>,
    /// The months that the settlement waives.
    pub waived: Vec<WaivedPeriod>,
}

impl From<Subscription> for Settlement {
    /// Creates a settlement that only changes the subscription, without a receipt or other records.
    fn from(subscription: Subscription) -> Self {
        Self { subscription, receipt: None, refunds: Vec::new(), record: None, waived: Vec::new() }
    }
}

/// The reason why [`settle_open_attempt`] does not settle an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotSettled {
    /// The stored item does not contain this attempt any more, because another worker has settled the attempt.
    #[error("another worker has settled the attempt")]
    AlreadySettled,
    /// The attempt stays open, and is charged again with the same idempotency key. The gateway has made no payment, but
    /// this outcome is not final, for one of two reasons:
    /// - Another worker has taken over the attempt that this worker claimed.
    /// - The attempt was dropped because the subscription was paused, and the subscription has been resumed since.
    #[error("the gateway has made no payment, but this is not final")]
    StaysOpen,
}

/// Settles the open attempt of `subscription` with `outcome`. `held` is the attempt as this worker claimed it. `today`
/// is the current date in the billing time zone, which may be later than the date of the run.
///
/// A payment that the gateway has made (successful or declined) is final, so any worker may settle the attempt with it.
/// The outcome that no payment was made is reliable only while no other worker may charge the attempt: another worker
/// that has taken over the attempt may be charging it at this moment.
///
/// # Errors
/// [`NotSettled`] if the attempt must not be settled with this outcome.
pub fn settle_open_attempt(
    subscription: &Subscription,
    held: &Attempt,
    outcome: &AttemptOutcome,
    policy: &Policy,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Result<Settlement, NotSettled> {
    let Some(attempt) = subscription.attempt.as_ref().filter(|attempt| attempt.no == held.no) else {
        return Err(NotSettled::AlreadySettled);
    };
    let is_final = matches!(outcome, AttemptOutcome::Succeeded(_) | AttemptOutcome::Declined(_));
    let is_resumed = *outcome == AttemptOutcome::Dropped && subscription.status.is_chargeable();
    if (!is_final && attempt.claim_token != held.claim_token) || is_resumed {
        return Err(NotSettled::StaysOpen);
    }
    let mut next = Subscription { attempt: None, ..subscription.clone() };
    let recorded = |end, decline: &Decline| Some(new_attempt_record(subscription, attempt, end, decline, now));
    Ok(match outcome {
        AttemptOutcome::Succeeded(payment) => {
            settle_success(subscription, attempt.due_on, payment, policy.lead, today, now)
        }
        AttemptOutcome::Declined(decline) => {
            next.rejections = 0;
            if now.signed_duration_since(attempt.claimed_at) > MAX_TIME_TO_CHARGE {
                next.rejected_customer = Some(attempt.payment_method.customer.clone());
            }
            let record = recorded(AttemptEnd::Declined, decline);
            Settlement { record, ..settle_decline(next, attempt, decline, policy, today, now) }
        }
        AttemptOutcome::Rejected { code } => {
            let refused = Decline { code: code.clone(), hard: false };
            next.rejections = next.rejections.saturating_add(1);
            next.rejected_customer = Some(attempt.payment_method.customer.clone());
            let is_decline = next.is_rejection_counted_as_decline(code);
            let record = recorded(AttemptEnd::Rejected, &refused).map(|record| AttemptRecord { is_decline, ..record });
            if is_decline {
                Settlement { record, ..settle_decline(next, attempt, &refused, policy, today, now) }
            } else {
                Settlement { record, ..retry_payment_on(next, days_after(today, 1), now) }
            }
        }
        AttemptOutcome::Dropped => {
            next.rejected_customer = Some(attempt.payment_method.customer.clone());
            let stopped = Decline { code: subscription.status.to_string(), hard: false };
            let record = recorded(AttemptEnd::Dropped, &stopped);
            Settlement { record, ..retry_payment_on(next, today, now) }
        }
    })
}

/// Returns the changes that must be written after a successful payment: the receipt, the subscription with the next due
/// date, and the months that are waived. `due_on` is the due date of the payment.
pub(crate) fn settle_success(
    subscription: &Subscription,
    due_on: NaiveDate,
    payment: &Payment,
    lead: LeadDays,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Settlement {
    let next = Subscription { attempt: None, ..subscription.clone() };
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
        refunded_at: None,
        reversal: None,
    };
    let (mut next, waived) = end_billing_period(&next, due_on, lead, today, now);
    next.last_payment_at = Some(now);
    next.chargeable_from = next.chargeable_from.max(Some(Period::from_day(due_on).next()));
    // A table that was restored from a backup may not contain the attempt of the payment. Without this step, a later
    // attempt would get the number of that attempt again.
    next.attempt_seq = next.attempt_seq.max(payment.attempt_no);
    Settlement { receipt: Some(receipt), waived, ..next.into() }
}

/// Returns `subscription` after the period with the due date `due_on`, which is paid or waived: it is due in the next
/// period that is owed. Also returns the periods that are waived because they fell due while the subscription was
/// unpaid.
pub(crate) fn end_billing_period(
    subscription: &Subscription,
    due_on: NaiveDate,
    lead: LeadDays,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> (Subscription, Vec<WaivedPeriod>) {
    let (mut next, ended) = (subscription.clone(), Period::from_day(due_on));
    let due_next = match next.cancel_from.filter(|_| next.status == SubscriptionStatus::Cancelled) {
        // The cancellation has already waived all owed months except the month of this payment.
        Some(end) => end,
        None => Period::from_day(next.due_after(due_on, today)),
    };
    let waived = if next.status == SubscriptionStatus::Cancelled {
        Vec::new()
    } else {
        waive_periods(subscription, ended.next(), due_next, WaivedReason::Unpaid, now)
    };
    next.move_to_period(due_next);
    next.unpaid_since = None;
    next.failed_attempts = 0;
    (next.rejections, next.rejected_customer) = (0, None);
    if matches!(next.status, SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid) {
        next.status = SubscriptionStatus::Active;
    }
    if next.status == SubscriptionStatus::Active {
        // A subscription is charged at most once per day, so a later owed period waits until the next day.
        next.next_payment_on = Some(next.due_on.max(days_after(today, 1)));
        next.next_reminder_on = (next.due_on > today && !next.is_ending()).then(|| lead.date_before(next.due_on));
    } else {
        next.next_payment_on = None;
        next.next_reminder_on = None;
    }
    (next, waived)
}

/// Returns the records that waive the months of `subscription` from `first` to the month before `end`, for `reason`. If
/// there are more months than a transaction can contain, only the latest months get a record.
pub(crate) fn waive_periods(
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
    let mut latest: Vec<_> =
        backwards.take_while(|period| *period >= first).take(MAX_WAIVED_PERIODS).map(waived).collect();
    latest.reverse();
    latest
}

/// Returns the changes that must be written after a declined payment: the subscription with a planned retry, or, if no
/// retry follows, as unpaid or cancelled.
fn settle_decline(
    mut next: Subscription,
    attempt: &Attempt,
    decline: &Decline,
    policy: &Policy,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Settlement {
    if !next.status.is_chargeable() {
        return retry_payment_on(next, today, now);
    }
    next.next_reminder_on = None;
    let first_declined_on = *next.first_declined_on.get_or_insert(today);
    let has_time = today < days_after(first_declined_on, MAX_PAST_DUE_DAYS);
    let gap_days = if next.payment_method != attempt.payment_method {
        // The customer changed the card during the attempt: the new card gets a new schedule of retries.
        next.failed_attempts = 0;
        Some(1)
    } else {
        next.failed_attempts = next.failed_attempts.saturating_add(1);
        policy.dunning.gap_days(next.failed_attempts).filter(|_| !decline.hard)
    };
    if let Some(gap_days) = gap_days.filter(|_| has_time) {
        next.status = SubscriptionStatus::PastDue;
        return retry_payment_on(next, days_after(today, gap_days), now);
    }
    stop_collection(next, policy, today, now)
}

/// Stops the collection of the due payment: the subscription becomes unpaid or cancelled, and there are no more
/// retries.
pub(crate) fn stop_collection(
    mut next: Subscription,
    policy: &Policy,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Settlement {
    next.status = SubscriptionStatus::Unpaid;
    next.next_reminder_on = None;
    next.unpaid_since = next.unpaid_since.or(Some(today));
    next.next_payment_on = None;
    if policy.after_last_retry == AfterLastRetry::Cancelled || next.cancel_from.is_some() {
        return next.cancel(today, now);
    }
    next.into()
}

/// Makes the payment of the subscription payable again on `on`, after an attempt without success, but not before its
/// due date: the clock of the worker that claimed the attempt may have been ahead. If the subscription was paused or
/// became unpaid during the attempt, removes it from the payment index instead. If the subscription was cancelled
/// during the attempt, waives the due month, because the outcome shows that this month is not paid.
fn retry_payment_on(mut next: Subscription, on: NaiveDate, now: DateTime<Utc>) -> Settlement {
    next.next_payment_on = next.status.is_chargeable().then_some(on.max(next.due_on));
    if next.status != SubscriptionStatus::Cancelled {
        return next.into();
    }
    let unpaid = next.due_period();
    let end = next.cancel_from.unwrap_or(unpaid.next());
    let waived = waive_periods(&next, unpaid, unpaid.next(), WaivedReason::Cancelled, now);
    next.cancel_from = Some(end);
    next.move_to_period(end);
    Settlement { waived, ..next.into() }
}

/// Creates the record of an attempt without success, with the failure code of `decline`.
fn new_attempt_record(
    subscription: &Subscription,
    attempt: &Attempt,
    outcome: AttemptEnd,
    decline: &Decline,
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
        code: decline.code.clone(),
        hard: decline.hard,
        is_decline: outcome == AttemptEnd::Declined,
        processed_at: now,
    }
}
