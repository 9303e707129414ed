//! The effect of disputes on a subscription. A dispute stops all charges of the disputed payment method. When the
//! dispute is won, the periods that fell due during the dispute are waived or owed.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::dispute::Dispute;
use crate::records::waived_period::WaivedReason;
use crate::settings::policy::{AfterWonDispute, CatchUp, Policy};
use crate::settlement::settle::{MAX_PAST_DUE_DAYS, Settlement, stop_collection, waive_periods};
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;
use crate::values::calendar::days_after;

impl Subscription {
    /// Returns the subscription with a newly computed dispute mark: the field `disputed_at`. While this field has a
    /// value, the subscription is not charged. `disputes` are all disputes of the account. The mark is the time at
    /// which the earliest dispute was opened. Only disputes that stop charges of the current payment method count. If
    /// an operator decided to charge the disputed payment method, the disputes that were opened before this decision do
    /// not count. The mark is `None` if no dispute counts.
    pub fn with_dispute_mark(&self, disputes: &[Dispute]) -> Subscription {
        let disputed_at = self.stopping_disputes(disputes).map(|dispute| dispute.opened_at).min();
        Subscription { disputed_at, ..self.clone() }
    }

    /// Returns the subscription with a newly computed dispute mark (see [`Subscription::with_dispute_mark`]) if a
    /// change has replaced the payment method. `before` is the subscription before the change. If the payment method is
    /// the same, the mark stays unchanged, because it may belong to a dispute that `disputes` does not contain yet.
    pub fn with_dispute_mark_if_method_changed(self, before: &Subscription, disputes: &[Dispute]) -> Subscription {
        if self.payment_method == before.payment_method { self } else { self.with_dispute_mark(disputes) }
    }

    /// Returns the subscription with a newly computed dispute mark (see [`Subscription::with_dispute_mark`]). If the
    /// subscription had a mark before and has none now, the periods that fell due during the dispute are waived or
    /// owed, according to `policy`. `day_of` returns the date of an instant in the billing time zone.
    pub fn apply_disputes(
        &self,
        disputes: &[Dispute],
        policy: &Policy,
        day_of: impl Fn(DateTime<Utc>) -> NaiveDate,
        now: DateTime<Utc>,
    ) -> Settlement {
        let next = self.with_dispute_mark(disputes);
        match self.disputed_at {
            Some(disputed_at) if next.disputed_at.is_none() => {
                let since = self.start_of_stopped_charges(disputes, disputed_at);
                next.resume_after_won_dispute(day_of(since), policy, day_of(now), now)
            }
            _ => next.into(),
        }
    }

    /// Returns the settlement that makes the subscription unpaid or cancelled after the bank has taken a payment back
    /// (a lost dispute or a returned debit); `None` if one of these conditions is not met:
    /// - The bank took the payment back at least 28 days ago. If there are several such payments, the last one counts.
    /// - Another payment is owed, and was due at least 28 days ago.
    /// - The payment method is still disputed, and the subscription is active or past due, without an open attempt.
    /// - No dispute that stops charges is still open. An open dispute has no time limit, because a bank can take months
    ///   to decide.
    pub fn stop_collection_after_lost_dispute(
        &self,
        disputes: &[Dispute],
        policy: &Policy,
        day_of: impl Fn(DateTime<Utc>) -> NaiveDate,
        now: DateTime<Utc>,
    ) -> Option<Settlement> {
        let lost_on = |dispute: &Dispute| dispute.closed_at.filter(|_| dispute.status.is_reversal()).map(&day_of);
        let lost_on: Option<Vec<NaiveDate>> = self.stopping_disputes(disputes).map(lost_on).collect();
        let since = lost_on?.into_iter().max()?.max(self.due_on);
        let is_over = days_after(since, MAX_PAST_DUE_DAYS) <= day_of(now);
        let is_owed = self.disputed_at.is_some() && self.attempt.is_none() && self.status.is_chargeable();
        (is_over && is_owed).then(|| stop_collection(self.clone(), policy, day_of(now), now))
    }

    /// Returns when disputes began to stop charges of the payment method without an interruption. `disputed_at` is the
    /// stored dispute mark. If an earlier dispute was still open at `disputed_at`, charges were already stopped when
    /// this earlier dispute was opened.
    fn start_of_stopped_charges(&self, disputes: &[Dispute], disputed_at: DateTime<Utc>) -> DateTime<Utc> {
        let mut since = disputed_at;
        loop {
            let lasted_until_since = |dispute: &&Dispute| {
                dispute.payment_method == self.payment_method.payment_method
                    && dispute.opened_at < since
                    && dispute.closed_at.is_some_and(|closed_at| closed_at >= since)
                    && self.charged_though_disputed_at.is_none_or(|at| dispute.opened_at > at)
            };
            match disputes.iter().filter(lasted_until_since).map(|dispute| dispute.opened_at).min() {
                Some(earlier) => since = earlier,
                None => return since,
            }
        }
    }

    /// Selects from `disputes` the disputes that stop charges of the current payment method of the subscription.
    fn stopping_disputes<'a>(&'a self, disputes: &'a [Dispute]) -> impl Iterator<Item = &'a Dispute> {
        disputes.iter().filter(|dispute| {
            dispute.payment_method == self.payment_method.payment_method
                && dispute.stops_charging()
                && self.charged_though_disputed_at.is_none_or(|at| dispute.opened_at > at)
        })
    }

    /// Makes the subscription chargeable after a won dispute. The periods that fell due from `since` (the day on which
    /// disputes began to stop charges) to the day before `today` are waived or owed, according to `policy`. A period
    /// that falls due today is owed. A period that was already owed before the dispute stays owed. In this case, the
    /// periods to waive are waived only when the customer pays the owed period, as for an unpaid subscription.
    fn resume_after_won_dispute(
        mut self,
        since: NaiveDate,
        policy: &Policy,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Settlement {
        // An earlier version of Dueday made a subscription unpaid after 28 days of dispute, even if no payment was
        // declined. Because the dispute was won, such a subscription becomes chargeable again.
        let was_given_up = self.status == SubscriptionStatus::Unpaid && self.first_declined_on.is_none();
        let last = self.last_due_by(today).filter(|_| was_given_up || self.status.is_chargeable());
        let Some(last) = last else { return self.into() };
        let is_waived = policy.after_won_dispute == AfterWonDispute::Waive;
        let oldest = self.due_period();
        let not_owed_from = |period: Period| self.cancel_from.map_or(period, |from| from.min(period)).max(oldest);
        // `ahead` is the next period to charge if the periods that fell due during the dispute are waived. `latest` is
        // the latest of these periods if they are owed.
        let ahead = not_owed_from(if last == today { Period::from_day(last) } else { Period::from_day(last).next() });
        let latest = not_owed_from(Period::from_day(last).next()).previous().max(oldest);
        if self.attempt.is_some() || self.due_on < since {
            if is_waived && oldest.next() < ahead {
                self.unpaid_since = self.unpaid_since.or(Some(since));
            }
            if self.attempt.is_none() {
                self.restart_retries_from(today);
            }
            return self.into();
        }
        let next = match policy.catch_up {
            _ if is_waived => ahead,
            CatchUp::Latest => latest,
            CatchUp::Each => oldest,
        };
        let waived = waive_periods(&self, oldest, next, WaivedReason::Disputed, now);
        if next > oldest || was_given_up {
            self.move_to_period(next);
            self.status = SubscriptionStatus::Active;
            self.unpaid_since = None;
        }
        self.restart_retries_from(today);
        self.plan_reminder(policy.lead, today);
        Settlement { waived, ..self.into() }
    }

    /// Makes the owed payment payable from `today` on, and restarts the retry schedule.
    fn restart_retries_from(&mut self, today: NaiveDate) {
        if self.status == SubscriptionStatus::Unpaid {
            self.status = SubscriptionStatus::PastDue;
        }
        self.failed_attempts = 0;
        self.rejections = 0;
        self.first_declined_on = None;
        self.next_payment_on = Some(self.due_on.max(today));
    }
}
