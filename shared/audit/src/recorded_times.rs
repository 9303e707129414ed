//! Checks that no time of an account's records is in the future. A worker whose clock was ahead recorded such a time.
//! These violations concern the past: they do not prevent a repair of the dates from which the next payment follows.

use billing::{Period, Receipt, Subscription, SubscriptionStatus};
use store::AccountPartition;

use super::invariants::{AccountViolations, Invariant, InvariantChecker};

impl InvariantChecker {
    /// Adds a violation for each time of `s` and of its records that is in the future, and for each payment of `s` that
    /// was made or declined before it was due because a clock was ahead. `key` is the key of `s`.
    pub(super) fn check_recorded_times(
        &self,
        s: &Subscription,
        key: &str,
        partition: &AccountPartition,
        violations: &mut AccountViolations,
    ) {
        let mut all = self.future_times(s);
        all.extend(self.early_payments(s));
        let is_in_future =
            |receipt: &&Receipt| receipt.subscription == s.id && self.present().is_in_future(receipt.processed_at);
        let in_future = partition.receipts.iter().filter(is_in_future);
        all.extend(
            in_future.map(|receipt| {
                format!("the receipt of {} is of {}, in the future", receipt.due_on, receipt.processed_at)
            }),
        );
        all.into_iter().for_each(|what| violations.add(Invariant::RecordedInPast, key, what));
    }

    /// Returns a description of each time and date of `s` that is in the future.
    fn future_times(&self, s: &Subscription) -> Vec<String> {
        let present = self.present();
        let times = [
            ("the subscription was created", Some(s.created_at)),
            ("the last payment was", s.last_payment_at),
            ("the last reminder was sent", s.last_reminder_at),
            ("the payment method was given", s.payment_method_at),
            ("the charge of a disputed payment method was allowed", s.charged_though_disputed_at),
        ];
        let times = times.into_iter().filter_map(|(what, at)| {
            let at = at.filter(|at| present.is_in_future(*at))?;
            Some(format!("{what} at {at}, in the future: the clock of the worker was ahead"))
        });
        let dates = [
            (format!("its payment of {} was declined first on", s.due_on), s.first_declined_on),
            ("it has been unpaid since".to_owned(), s.unpaid_since),
        ];
        let dates = dates.into_iter().filter_map(|(what, on)| {
            let on = on.filter(|on| *on > self.today)?;
            Some(format!("{what} {on}, in the future: the clock of the worker was ahead"))
        });
        times.chain(dates).collect()
    }

    /// Returns a description of each payment of `s` that succeeded or was declined long before it was due.
    fn early_payments(&self, s: &Subscription) -> Vec<String> {
        let mut all = Vec::new();
        if self.is_paid_in_advance(s) {
            all.push(format!("the months before {} are already paid: the clock of a worker was ahead", s.due_on));
        }
        if matches!(s.status, SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid) && s.due_on > self.today {
            all.push(format!("it is {}, but its payment is due only on {}", s.status, s.due_on));
        }
        all
    }

    /// Returns whether a month after the current month is already paid, according to the due date and to the record of
    /// the latest paid month. If only one of them says so, the item is damaged.
    pub(super) fn is_paid_in_advance(&self, s: &Subscription) -> bool {
        let due = s.due_period();
        due > Period::from_day(self.today).next() && s.chargeable_from == Some(due)
    }
}
