//! The outlook: what happens next to a subscription without further changes, if each payment succeeds. Mails about
//! changes, schedules, lists of due payments, forecasts and explanations of future days take their dates and amounts from
//! here.

use chrono::{NaiveDate, NaiveTime};
use serde::Serialize;

use crate::settings::policy::{CatchUp, OnResume, Policy};
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::subscriptions::terms::WaitingChange;
use crate::values::calendar::Period;
use crate::values::calendar::days_after;
use crate::values::money::Money;

/// The number of planned payments in an [`SubscriptionOutlook`].
const PAYMENTS_IN_OUTLOOK: usize = 3;
/// The number of planned payments in an [`SubscriptionOutlook`] if a cancellation is planned: all payments before it, which are more
/// than three only after a long outage or for an imported subscription.
const PAYMENTS_BEFORE_END: usize = 24;

/// What happens next to a subscription without further changes, if each payment succeeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubscriptionOutlook {
    /// The day from which the outlook begins.
    pub today: NaiveDate,
    /// Why no attempt is made to charge the subscription; `None` if its payments are charged.
    pub hold: Option<ChargeHold>,
    /// The earliest payment that is owed: its due date has been reached. `None` if no payment is owed.
    pub owed: Option<OwedPayment>,
    /// The next three planned payments, or those until a planned cancellation (at most 24); the earliest first. A payment
    /// whose month is charged or waived depending on whether the run of today has ended is left out.
    pub payments: Vec<PlannedPayment>,
    /// The next payment if the paused subscription is resumed on `today`; `None` if it is not paused, or if the resumed
    /// subscription is not charged.
    pub if_resumed: Option<PlannedPayment>,
    /// The due dates that are waived when `payments` are charged (see [`Subscription::waived_due_dates`]).
    pub waived: Vec<NaiveDate>,
    /// The changes of price and payment day that wait for a later month, the earliest first.
    pub waiting_changes: Vec<WaitingChange>,
    /// Whether a cancellation is planned, and nothing except `payments` is charged before it.
    pub is_complete: bool,
    /// The date from which nothing more falls due, because a cancellation is planned.
    pub ends_on: Option<NaiveDate>,
}

/// The reason why no attempt is made to charge a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChargeHold {
    /// The subscription is paused. The policy decides what is charged when it is resumed.
    Paused { on_resume: OnResume },
    /// The last retry was declined: the subscription waits for a new payment method.
    Unpaid,
    /// The subscription is cancelled for good.
    Cancelled,
    /// The payment method is disputed: charges wait for the end of the dispute, or for a person.
    Disputed,
    /// The gateway has a payment without a receipt: charges wait for the decision of a person.
    OpenFinding,
}

/// A payment whose due date has been reached, and that is neither paid nor waived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwedPayment {
    pub due_on: NaiveDate,
    pub amount: Money,
    /// The date of the next attempt; `None` if no attempt is planned.
    pub payment_on: Option<NaiveDate>,
}

/// A future payment of a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedPayment {
    pub due_on: NaiveDate,
    /// The date of the run that charges the payment.
    pub payment_on: NaiveDate,
    /// The date on which the payment is charged at the latest: later than `payment_on` in an [`SubscriptionOutlook`] if the run of
    /// today may have ended, because the run of tomorrow then charges the first payment.
    pub latest_on: NaiveDate,
    /// The date of the reminder; `None` if no reminder will be sent any more.
    pub reminder_on: Option<NaiveDate>,
    /// The price of the month. If the payment has an open attempt, the amount of this attempt.
    pub amount: Money,
    pub reason: PaymentReason,
}

/// Why a planned payment is charged on its date.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "Why a payment is charged on its date. `due`: it falls due on this date. `overdue`: its due date has \
            passed, for example because of an outage or a pause. `retry`: an earlier attempt failed. `in_progress`: an \
            attempt has begun, and its outcome is not final yet."
    )
)]
pub enum PaymentReason {
    /// The payment falls due on this date.
    Due,
    /// The due date has passed, and no attempt has failed: for example, after an outage or a pause.
    Overdue,
    /// An earlier attempt was declined or rejected.
    Retry,
    /// An attempt has begun, and the gateway's final outcome is not known yet.
    InProgress,
}

impl Subscription {
    /// Returns what happens next to the subscription from `today` on.
    pub fn outlook(&self, policy: &Policy, today: NaiveDate) -> SubscriptionOutlook {
        let count = if self.cancel_from.is_some() { PAYMENTS_BEFORE_END } else { PAYMENTS_IN_OUTLOOK };
        let before_run: Vec<PlannedPayment> = self.planned_payments(policy, today).take(count).collect();
        let after_run = self.planned_payments(policy, days_after(today, 1)).take(count);
        let in_both = |late: PlannedPayment| {
            let early = before_run.iter().find(|early| (early.due_on, early.amount) == (late.due_on, late.amount))?;
            Some(PlannedPayment { latest_on: late.payment_on, ..*early })
        };
        let payments: Vec<PlannedPayment> = after_run.filter_map(in_both).collect();
        let hold = self.hold_reason(policy);
        let are_all_listed = before_run.len() < count && payments.len() == before_run.len();
        let is_complete = self.is_ending() || (self.cancel_from.is_some() && hold.is_none() && are_all_listed);
        let is_held_payment_owed = self.due_on <= today
            && self.is_charged_in(self.due_period())
            && matches!(hold, Some(ChargeHold::Unpaid | ChargeHold::Disputed | ChargeHold::OpenFinding));
        let (due_on, amount) = (self.due_on, self.price);
        let owed = match payments.first() {
            Some(&PlannedPayment { due_on, amount, payment_on, .. }) => {
                (due_on <= today).then_some(OwedPayment { due_on, amount, payment_on: Some(payment_on) })
            }
            None => is_held_payment_owed.then_some(OwedPayment { due_on, amount, payment_on: None }),
        };
        let waived = self.waived_due_dates(&payments);
        let if_resumed =
            matches!(hold, Some(ChargeHold::Paused { .. })).then(|| self.payment_if_resumed(policy, today)).flatten();
        let (waiting_changes, ends_on) = (self.waiting_changes(), self.cancels_on());
        SubscriptionOutlook { today, hold, owed, payments, if_resumed, waived, waiting_changes, is_complete, ends_on }
    }

    /// Returns the planned payments from `today` on, the earliest first. Without a planned cancellation, the iterator
    /// never ends. It contains only the payment of an open attempt, if there is one, while no other payment is charged
    /// (see [`ChargeHold`]).
    pub fn planned_payments(&self, policy: &Policy, today: NaiveDate) -> impl Iterator<Item = PlannedPayment> + use<> {
        let (subscription, policy) = (self.clone(), policy.clone());
        let is_held = self.hold_reason(&policy).is_some();
        let first = self.first_planned_payment(&policy, today);
        let after = move |paid: &PlannedPayment| {
            let paid_on = paid.payment_on.max(today);
            // The payment of the current due date waives the months that fell due while the subscription was unpaid.
            let due_on = match paid.due_on == subscription.due_on {
                true => subscription.due_after(paid.due_on, paid_on),
                false => subscription.due_in(Period::from_day(paid.due_on).next()),
            };
            // A subscription is charged at most once per day.
            let payment_on = due_on.max(days_after(paid_on, 1));
            let due_on = subscription.due_after_catch_up(policy.catch_up, due_on, payment_on);
            let is_charged = !is_held && subscription.is_charged_in(Period::from_day(due_on));
            is_charged.then(|| PlannedPayment {
                due_on,
                payment_on,
                latest_on: payment_on,
                reminder_on: (due_on > paid_on).then(|| policy.lead.date_before(due_on).max(paid_on)),
                amount: subscription.terms_in(Period::from_day(due_on)).price,
                reason: if due_on < payment_on { PaymentReason::Overdue } else { PaymentReason::Due },
            })
        };
        std::iter::successors(first, after)
    }

    /// Returns the next planned payment; `None` if no payment is planned.
    fn first_planned_payment(&self, policy: &Policy, today: NaiveDate) -> Option<PlannedPayment> {
        let reminder_on = self.next_reminder_on.filter(|_| self.due_on >= today);
        if let Some(open) = &self.attempt {
            let payment_on = self.next_payment_on.unwrap_or(today);
            return Some(PlannedPayment {
                due_on: open.due_on,
                payment_on,
                latest_on: payment_on,
                reminder_on,
                amount: open.amount,
                reason: PaymentReason::InProgress,
            });
        }
        let next_payment_on = self.next_payment_on.filter(|_| self.hold_reason(policy).is_none())?;
        let payment_on = self.expected_payment_on(next_payment_on, today).max(today);
        let is_retry = self.status == SubscriptionStatus::PastDue || self.rejections > 0;
        let catch_up = if self.status == SubscriptionStatus::Active { policy.catch_up } else { CatchUp::Each };
        let due_on = self.due_after_catch_up(catch_up, self.due_on, payment_on);
        let period = Period::from_day(due_on);
        self.is_charged_in(period).then(|| PlannedPayment {
            due_on,
            payment_on,
            latest_on: payment_on,
            reminder_on: reminder_on.filter(|_| due_on == self.due_on),
            amount: self.terms_in(period).price,
            reason: match due_on < payment_on {
                _ if is_retry && due_on == self.due_on => PaymentReason::Retry,
                true => PaymentReason::Overdue,
                false => PaymentReason::Due,
            },
        })
    }

    /// Returns the next payment if the paused subscription is resumed on `today`.
    fn payment_if_resumed(&self, policy: &Policy, today: NaiveDate) -> Option<PlannedPayment> {
        let now = today.and_time(NaiveTime::MIN).and_utc();
        let resumed = self.resume(policy.on_resume, policy.lead, today, now).ok()?;
        resumed.subscription.planned_payments(policy, today).next()
    }

    /// Returns the due dates before the last of `payments` that are never charged: after an outage or an unpaid time, the
    /// charge of a later month waives them. `payments` are the next planned payments.
    pub fn waived_due_dates(&self, payments: &[PlannedPayment]) -> Vec<NaiveDate> {
        let charged: Vec<Period> = payments.iter().map(|payment| Period::from_day(payment.due_on)).collect();
        let before_last = |period: &Period| charged.last().is_some_and(|last| period < last);
        std::iter::successors(Some(self.due_period()), |period| Some(period.next()))
            .take_while(before_last)
            .filter(|period| !charged.contains(period))
            .map(|period| self.due_in(period))
            .collect()
    }

    /// Returns why no attempt is made to charge the subscription; `None` if its payments are charged.
    pub fn hold_reason(&self, policy: &Policy) -> Option<ChargeHold> {
        match self.status {
            SubscriptionStatus::Paused | SubscriptionStatus::Unpaid if self.open_findings > 0 => {
                Some(ChargeHold::OpenFinding)
            }
            SubscriptionStatus::Paused if self.disputed_at.is_some() => Some(ChargeHold::Disputed),
            SubscriptionStatus::Paused => Some(ChargeHold::Paused { on_resume: policy.on_resume }),
            SubscriptionStatus::Unpaid => Some(ChargeHold::Unpaid),
            SubscriptionStatus::Cancelled => Some(ChargeHold::Cancelled),
            SubscriptionStatus::Active | SubscriptionStatus::PastDue if self.open_findings > 0 => {
                Some(ChargeHold::OpenFinding)
            }
            SubscriptionStatus::Active | SubscriptionStatus::PastDue => self.disputed_at.map(|_| ChargeHold::Disputed),
        }
    }

    /// Returns the stored date of the next charge, or of the look-up of the open attempt; `None` if no charge is planned.
    /// Unlike [`Subscription::outlook`], this needs neither the policy nor today's date.
    pub fn next_charge_on(&self) -> Option<NaiveDate> {
        let is_charged = self.status.is_chargeable() && !self.is_held() && !self.is_ending();
        self.next_payment_on.filter(|_| is_charged || self.attempt.is_some())
    }

    /// Returns whether a finding or a dispute prevents charges.
    pub(crate) fn is_held(&self) -> bool {
        self.open_findings > 0 || self.disputed_at.is_some()
    }

    /// Returns the due date that the run of `run_on` charges if all months from `due_on` on are owed: with
    /// [`CatchUp::Latest`], the latest due date that has been reached.
    fn due_after_catch_up(&self, catch_up: CatchUp, due_on: NaiveDate, run_on: NaiveDate) -> NaiveDate {
        let in_month = self.due_in(Period::from_day(run_on));
        let last = if in_month <= run_on { in_month } else { self.due_in(Period::from_day(run_on).previous()) };
        let before_end = self.cancel_from.map_or(Period::from_day(last), |from| from.previous());
        let latest = Period::from_day(last).min(before_end);
        if catch_up == CatchUp::Latest && latest > Period::from_day(due_on) { self.due_in(latest) } else { due_on }
    }

    /// Returns whether `period` is before a planned cancellation.
    fn is_charged_in(&self, period: Period) -> bool {
        self.cancel_from.is_none_or(|from| period < from)
    }
}
