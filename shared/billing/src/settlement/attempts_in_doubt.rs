//! The rules for an attempt in doubt (its lease has ended without an outcome).

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use ulid::Ulid;

use crate::records::attempt::{Attempt, AttemptOutcome, ClaimToken};
use crate::records::payment::{Payment, PaymentStatus};
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;
use crate::values::money::Money;

/// The age above which an attempt in doubt is settled as rejected, if the gateway lists no payment of the attempt. All
/// charge requests of such an attempt have failed for two days. No request can still be running, because the lease has
/// ended, and the worker has just looked up the attempt at the gateway.
pub const MAX_ATTEMPT_AGE: TimeDelta = TimeDelta::hours(48);

/// The reason why a worker could not claim a payment: the conditional write of the claim was refused. The reason is
/// computed from the stored item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimRefusal {
    /// The item already contains the claim of this worker. The worker wrote the claim earlier, but did not receive the
    /// response of the table.
    OwnClaim,
    /// An attempt is open, and its lease belongs to another worker.
    Leased,
    /// An attempt is open, and its lease has ended: the worker must take over the attempt, and look up the attempt at
    /// the gateway.
    InDoubt(Attempt),
    /// The subscription is due, but the date in the index was stale. Contains the stored date, with which the worker
    /// must claim again.
    DueOn(NaiveDate),
    /// The item is damaged: its next payment date `on` is before its due date. A person must correct the item.
    DueLater { on: NaiveDate },
    /// The item is damaged: the month of its due date is already paid. A person must correct the item.
    AlreadyPaid,
    /// There is nothing to charge: the payment is already settled, or is not due any more.
    NotDue,
    /// The payment method is disputed, and must not be charged.
    Disputed,
    /// There is an open finding (a successful payment without a receipt): a person must decide before the next charge.
    OpenFinding,
    /// The due date of a planned cancellation has been reached: the worker must cancel the subscription.
    CancellationDue,
    /// The status of the subscription does not allow charges, but the payment index contains it: the worker must remove
    /// the subscription from the index.
    NotChargeable,
}

/// Returns the reason why the claim with the token `token` was refused. `subscription` is the stored item. `indexed_on`
/// is the payment date that the index returned, with which the worker tried the claim.
pub fn claim_refusal(
    subscription: &Subscription,
    token: ClaimToken,
    indexed_on: NaiveDate,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> ClaimRefusal {
    match (&subscription.attempt, subscription.next_payment_on) {
        (Some(attempt), _) if attempt.claim_token == token => ClaimRefusal::OwnClaim,
        (Some(attempt), _) if attempt.is_in_doubt(now) => ClaimRefusal::InDoubt(attempt.clone()),
        (Some(_), _) => ClaimRefusal::Leased,
        (None, Some(_)) if !subscription.status.is_chargeable() => ClaimRefusal::NotChargeable,
        (None, Some(next_on)) if next_on <= today && subscription.is_ending() => ClaimRefusal::CancellationDue,
        (None, Some(next_on)) if next_on <= today && next_on < subscription.due_on => {
            ClaimRefusal::DueLater { on: next_on }
        }
        (None, Some(next_on)) if next_on <= today && subscription.is_due_month_paid() => ClaimRefusal::AlreadyPaid,
        (None, Some(next_on)) if next_on <= today && subscription.open_findings > 0 => ClaimRefusal::OpenFinding,
        (None, Some(next_on)) if next_on <= today && subscription.disputed_at.is_some() => ClaimRefusal::Disputed,
        (None, Some(next_on)) if next_on <= today && next_on != indexed_on => ClaimRefusal::DueOn(next_on),
        (None, _) => ClaimRefusal::NotDue,
    }
}

impl Subscription {
    /// Returns the period that is due next, or that is owed.
    pub fn due_period(&self) -> Period {
        Period::from_day(self.due_on)
    }

    /// Returns whether an attempt to charge `period` is open.
    pub fn has_open_attempt_of(&self, period: Period) -> bool {
        self.attempt.as_ref().is_some_and(|open| open.period() == period)
    }

    /// Returns whether the month of the due date is already paid. This happens only if the item is damaged.
    pub fn is_due_month_paid(&self) -> bool {
        self.chargeable_from.is_some_and(|from| self.due_period() < from)
    }
}

/// The reason why the open attempt of a subscription must not be charged again: the attempt contradicts the
/// subscription. While an attempt is open, neither its due date nor the price of its month can change, so the item is
/// damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AttemptContradiction {
    #[error("the open attempt is for {attempt}, but the subscription is due on {due_on}")]
    DueDate { attempt: NaiveDate, due_on: NaiveDate },
    #[error("the open attempt is for {attempt}, but the price of its month is {price}")]
    Amount { attempt: Money, price: Money },
    #[error("the open attempt contains no table id, so it cannot be charged again with the same idempotency key")]
    Table,
    #[error("the open attempt has the number {attempt}, but the latest attempt has the number {latest}")]
    Number { attempt: u32, latest: u32 },
}

/// Returns how the open attempt `attempt` contradicts `subscription`; `None` if they agree.
pub fn attempt_contradiction(subscription: &Subscription, attempt: &Attempt) -> Option<AttemptContradiction> {
    if attempt.due_on != subscription.due_on {
        return Some(AttemptContradiction::DueDate { attempt: attempt.due_on, due_on: subscription.due_on });
    }
    if attempt.amount != subscription.price {
        return Some(AttemptContradiction::Amount { attempt: attempt.amount, price: subscription.price });
    }
    if attempt.table.is_none() {
        return Some(AttemptContradiction::Table);
    }
    let (number, latest) = (attempt.no, subscription.attempt_seq);
    (number != latest).then_some(AttemptContradiction::Number { attempt: number, latest })
}

/// The next step for an attempt in doubt after the look-up at the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InDoubtResolution {
    /// Settle the attempt with this outcome.
    Settle(AttemptOutcome),
    /// Wait: the bank is still processing the payment.
    Processing,
    /// Repeat the same charge with the same idempotency key: the gateway has no payment of the attempt.
    ChargeAgain,
}

/// Returns the next step for `attempt`, the attempt in doubt of `subscription`. `listed` are the payments that the
/// gateway lists for the customer of the attempt.
///
/// A payment of the same subscription and month that succeeded or is being processed decides the next step, even if an
/// earlier attempt made this payment, because an earlier attempt may have succeeded after it was closed. A declined
/// payment counts only if this attempt made it.
pub fn resolve_attempt_in_doubt(
    subscription: &Subscription,
    attempt: &Attempt,
    listed: &[Payment],
    now: DateTime<Utc>,
) -> InDoubtResolution {
    let payments_of_month = || listed.iter().filter(|payment| is_payment_of_month(payment, subscription, attempt));
    if let Some(paid) = successful_payments(subscription, attempt, listed).first() {
        return InDoubtResolution::Settle(AttemptOutcome::Succeeded((*paid).clone()));
    }
    if payments_of_month().any(|p| p.status == PaymentStatus::Processing) {
        return InDoubtResolution::Processing;
    }
    let declined = payments_of_month().filter(|p| p.attempt_no == attempt.no).find_map(|p| match &p.status {
        PaymentStatus::Declined(decline) => Some(decline.clone()),
        _ => None,
    });
    match (declined, subscription.status) {
        (Some(decline), _) => InDoubtResolution::Settle(AttemptOutcome::Declined(decline)),
        (None, SubscriptionStatus::Paused | SubscriptionStatus::Cancelled) => {
            InDoubtResolution::Settle(AttemptOutcome::Dropped)
        }
        (None, _) if now.signed_duration_since(attempt.claimed_at) > MAX_ATTEMPT_AGE => {
            InDoubtResolution::Settle(AttemptOutcome::Rejected { code: "unknown_to_gateway".to_owned() })
        }
        (None, _) => InDoubtResolution::ChargeAgain,
    }
}

/// Selects from `listed` the successful payments of the month for which `attempt` is. The payment that this attempt
/// made is the first one. If there is more than one payment, the customer paid twice.
pub fn successful_payments<'a>(
    subscription: &Subscription,
    attempt: &Attempt,
    listed: &'a [Payment],
) -> Vec<&'a Payment> {
    let is_success = |payment: &&Payment| {
        payment.status == PaymentStatus::Succeeded && is_payment_of_month(payment, subscription, attempt)
    };
    let mut successes: Vec<&Payment> = listed.iter().filter(is_success).collect();
    successes.sort_by_key(|payment| (payment.attempt_no != attempt.no, payment.attempt_no));
    // A list that contains one payment twice does not show that the customer paid twice.
    let mut ids = HashSet::new();
    successes.retain(|payment| ids.insert(&payment.id));
    successes
}

/// Returns a message for the operator if `listed`, the gateway's list, contains more than one successful payment of the
/// period of `attempt`; otherwise `None`.
pub fn describe_double_payment(subscription: &Subscription, attempt: &Attempt, listed: &[Payment]) -> Option<String> {
    let made: Vec<String> =
        successful_payments(subscription, attempt, listed).iter().map(|payment| payment.id.to_string()).collect();
    let (month, payments) = (attempt.period(), made.join(", "));
    (made.len() > 1).then(|| format!("{month} was paid more than once, by {payments}: refund all except the first"))
}

/// Returns whether `payment` is a declined payment of the month for which `attempt` is. A gateway can list a payment as
/// declined although its money moved, so a decline must be confirmed before the month is charged again.
pub fn is_decline_of_month(payment: &Payment, subscription: &Subscription, attempt: &Attempt) -> bool {
    matches!(payment.status, PaymentStatus::Declined(_)) && is_payment_of_month(payment, subscription, attempt)
}

impl Subscription {
    /// Returns the payments of this subscription in `listed` whose attempt number is higher than that of the
    /// subscription's latest attempt in the table `table`. Attempt numbers never decrease, so such a payment proves
    /// that the table was restored from an older backup. Payments of other tables and subscriptions prove nothing, and
    /// neither do payments that were created after `now`: a simulation of past days, such as the demo, may have made
    /// them before.
    pub fn payments_of_later_attempts<'a>(
        &'a self,
        table: Ulid,
        listed: &'a [Payment],
        now: DateTime<Utc>,
    ) -> impl Iterator<Item = &'a Payment> {
        listed.iter().filter(move |payment| {
            payment.table == Some(table)
                && (&payment.account, payment.subscription) == (&self.account, self.id)
                && payment.attempt_no > self.attempt_seq
                && payment.created_at <= now
        })
    }
}

/// Returns whether `payment` belongs to the subscription and month of `attempt`. Compares the month and not the due
/// date, because a change of the payment day moves the due date within the month. Also compares the table, because
/// another table may contain a subscription with the same id and use the same gateway.
fn is_payment_of_month(payment: &Payment, subscription: &Subscription, attempt: &Attempt) -> bool {
    (payment.table.is_none() || payment.table == attempt.table)
        && payment.account == subscription.account
        && payment.subscription == subscription.id
        && payment.period() == attempt.period()
}
