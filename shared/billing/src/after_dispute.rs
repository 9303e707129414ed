//! What disputes do to a subscription: they stop the charging of its payment method, and leave periods that fell due meanwhile.

use chrono::{DateTime, NaiveDate, Utc};

use super::calendar::days_after;
use super::settle::{MAX_PAST_DUE_DAYS, Settlement, give_up, waive};
use super::{AfterWonDispute, CatchUp, Dispute, Period, Policy, Status, Subscription, WaivedReason};

impl Subscription {
    /// Returns the subscription with the mark that `disputes`, those of its account, give it: since when they stop its
    /// payment method from being charged. Disputes opened before a person decided to charge it all the same do not count.
    pub fn disputed_by(&self, disputes: &[Dispute]) -> Subscription {
        let disputed_at = self.stopped_by(disputes).map(|dispute| dispute.opened_at).min();
        Subscription { disputed_at, ..self.clone() }
    }

    /// Does as [`Subscription::disputed_by`] if the payment method is not the one of `before`. The mark of an unchanged
    /// payment method stays: it may be newer than `disputes`.
    pub fn disputed_anew(self, before: &Subscription, disputes: &[Dispute]) -> Subscription {
        if self.payment_method == before.payment_method { self } else { self.disputed_by(disputes) }
    }

    /// Returns the subscription with its mark as [`Subscription::disputed_by`] computes it. If that removes the mark, the
    /// periods that fell due while it was there are waived or owed, as `policy` says. `day_of` is the date of an instant in
    /// the billing time zone.
    pub fn settle_disputes(
        &self,
        disputes: &[Dispute],
        policy: &Policy,
        day_of: impl Fn(DateTime<Utc>) -> NaiveDate,
        now: DateTime<Utc>,
    ) -> Settlement {
        let next = self.disputed_by(disputes);
        match self.disputed_at {
            Some(marked_at) if next.disputed_at.is_none() => {
                let since = self.stopped_since(disputes, marked_at);
                next.after_won_dispute(day_of(since), policy, day_of(now), now)
            }
            _ => next.into(),
        }
    }

    /// Gives up what is owed 28 days after the last of the disputes that stop charging was lost. Returns `None` before that.
    /// No time limit applies to a dispute that is open: the bank takes months to decide.
    pub fn give_up_after_lost_dispute(
        &self,
        disputes: &[Dispute],
        policy: &Policy,
        day_of: impl Fn(DateTime<Utc>) -> NaiveDate,
        now: DateTime<Utc>,
    ) -> Option<Settlement> {
        let lost_on = |dispute: &Dispute| dispute.closed_at.filter(|_| dispute.status.is_reversal()).map(&day_of);
        let lost_on: Option<Vec<NaiveDate>> = self.stopped_by(disputes).map(lost_on).collect();
        let since = lost_on?.into_iter().max()?.max(self.due_on);
        let is_over = days_after(since, MAX_PAST_DUE_DAYS) <= day_of(now);
        let is_owed = self.disputed_at.is_some() && self.attempt.is_none() && self.status.is_chargeable();
        (is_over && is_owed).then(|| give_up(self.clone(), policy, day_of(now), now))
    }

    /// Since when its payment method was not charged without a break, if a dispute stopped it at `marked_at`: a dispute that
    /// was closed later began before.
    fn stopped_since(&self, disputes: &[Dispute], marked_at: DateTime<Utc>) -> DateTime<Utc> {
        let mut since = marked_at;
        loop {
            let is_before = |dispute: &&Dispute| {
                dispute.payment_method == self.payment_method.payment_method
                    && dispute.opened_at < since
                    && dispute.closed_at.is_some_and(|closed_at| closed_at >= since)
                    && self.charged_though_disputed_at.is_none_or(|at| dispute.opened_at > at)
            };
            match disputes.iter().filter(is_before).map(|dispute| dispute.opened_at).min() {
                Some(earlier) => since = earlier,
                None => return since,
            }
        }
    }

    /// The disputes that stop its payment method from being charged.
    fn stopped_by<'a>(&'a self, disputes: &'a [Dispute]) -> impl Iterator<Item = &'a Dispute> {
        disputes.iter().filter(|dispute| {
            dispute.payment_method == self.payment_method.payment_method
                && dispute.stops_charging()
                && self.charged_though_disputed_at.is_none_or(|at| dispute.opened_at > at)
        })
    }

    /// Waives the periods that fell due from `since`, the day of the dispute, to the day before `today`, or leaves them owed,
    /// as `policy` says. What falls due today is owed. A period that was owed before the dispute stays owed; those after it
    /// are waived when it is paid, as those of an unpaid subscription are.
    fn after_won_dispute(
        mut self,
        since: NaiveDate,
        policy: &Policy,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Settlement {
        // An earlier version gave up what was disputed for 28 days. It was never declined.
        let was_given_up = self.status == Status::Unpaid && self.first_declined_on.is_none();
        let last = self.last_due_by(today).filter(|_| was_given_up || self.status.is_chargeable());
        let Some(last) = last else { return self.into() };
        let is_waived = policy.after_won_dispute == AfterWonDispute::Waive;
        let oldest = Period::of(self.due_on);
        let not_owed_from = |period: Period| self.cancel_from.map_or(period, |from| from.min(period)).max(oldest);
        // The first period that is not over, and the latest that is owed.
        let ahead = not_owed_from(if last == today { Period::of(last) } else { Period::of(last).next() });
        let latest = not_owed_from(Period::of(last).next()).previous().max(oldest);
        if self.attempt.is_some() || self.due_on < since {
            if is_waived && oldest.next() < ahead {
                self.unpaid_since = self.unpaid_since.or(Some(since));
            }
            if self.attempt.is_none() {
                self.retry_from(today);
            }
            return self.into();
        }
        let next = match policy.catch_up {
            _ if is_waived => ahead,
            CatchUp::Latest => latest,
            CatchUp::Each => oldest,
        };
        let waived = waive(&self, oldest, next, WaivedReason::Disputed, now);
        if next > oldest || was_given_up {
            self.move_to(next);
            self.status = Status::Active;
            self.unpaid_since = None;
        }
        self.retry_from(today);
        self.plan_reminder(policy.lead, today);
        Settlement { waived, ..self.into() }
    }

    /// Makes what is owed payable from `today` on, with a retry schedule of its own.
    fn retry_from(&mut self, today: NaiveDate) {
        if self.status == Status::Unpaid {
            self.status = Status::PastDue;
        }
        self.failed_attempts = 0;
        self.rejections = 0;
        self.first_declined_on = None;
        self.next_payment_on = Some(self.due_on.max(today));
    }
}
