//! The checks after a completed run and at the end of the simulation. These checks report work that should have been
//! done, but was not.

use billing::PaymentStatus;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::expected_subscription::ExpectedSubscription;
use super::{ActorRole, Oracle};
use crate::calendar::{month_of, next_month};
use crate::lagging_index::MAX_LAG;
use crate::stored_items::display_name;

/// The maximum time for which an attempt may be open after its payment was made. A bank debit is processing for two
/// days, and the first run after that looks up the payment and settles the attempt.
const MAX_OPEN_TIME_AFTER_PAYMENT: TimeDelta = TimeDelta::days(4);

/// The maximum time from a late payment until Dueday has received its event.
const MAX_EVENT_DELAY: TimeDelta = TimeDelta::days(4);

/// A batch run that has read all due rows of the index.
#[derive(Clone, Debug)]
pub struct CompletedRun {
    pub role: ActorRole,
    /// The due date up to which the run reads rows.
    pub date: NaiveDate,
    pub started_at: DateTime<Utc>,
    /// The number of rows that the run reports as left for a later run.
    pub rows_left: u64,
}

impl Oracle {
    /// Checks a completed run: every row that was due during the whole run was processed, except for the rows that the
    /// run reports as left.
    pub fn record_completed_run(&mut self, now: DateTime<Utc>, run: &CompletedRun) {
        let is_due = |on: Option<NaiveDate>| on.is_some_and(|on| on <= run.date);
        let is_left = |expected: &&ExpectedSubscription| match run.role {
            ActorRole::Reminders => {
                let is_leased = |claim: &super::expected_subscription::ReminderClaim| {
                    claim.leased_until + TimeDelta::minutes(6) > run.started_at
                };
                is_due(expected.next_reminder) && !expected.reminder_claim.as_ref().is_some_and(is_leased)
            }
            _ => is_due(expected.next_payment) && expected.open.is_none(),
        };
        let was_unchanged_in_index = |expected: &&ExpectedSubscription| expected.changed_at + MAX_LAG < run.started_at;
        let left: Vec<String> = self
            .expected_subscriptions
            .values()
            .filter(is_left)
            .filter(was_unchanged_in_index)
            .map(|expected| display_name(&expected.name))
            .collect();
        if left.len() as u64 > run.rows_left {
            let name = ("a run".to_owned(), format!("{:?} of {}", run.role, run.date));
            self.report_violation(
                now,
                &name,
                format!("the run reports {} rows as left, but these are left: {}", run.rows_left, left.join(", ")),
            );
        }
    }

    /// Checks that no work is left at the end of `as_of`, after some days without faults. Each subscription must be up
    /// to date, and each successful payment must have a receipt or a finding (an entry for an operator).
    pub fn check_end_of_simulation(&mut self, now: DateTime<Utc>, as_of: NaiveDate) {
        let mut violations = Vec::new();
        for expected in self.expected_subscriptions.values() {
            violations.extend(
                self.unfinished_work(expected, now, as_of).into_iter().map(|reason| (expected.name.clone(), reason)),
            );
        }
        for (payment, ledger_payment) in &self.ledger.payments {
            if ledger_payment.status != PaymentStatus::Succeeded || self.ledger.receipted.contains(payment) {
                continue;
            }
            if self.ledger.findings.contains(payment) {
                self.counts.findings += 1;
                continue;
            }
            // The gateway may not have delivered the event about this late payment yet.
            if ledger_payment.made_late_at.is_some_and(|at| now - at < MAX_EVENT_DELAY) {
                continue;
            }
            violations.push((
                ledger_payment.subscription.clone(),
                format!("{payment}, due on {}, succeeded, but has neither a receipt nor a finding", ledger_payment.due),
            ));
        }
        for (subscription, reason) in violations {
            self.report_violation(now, &subscription, reason);
        }
    }

    /// Describes all work on a subscription that should have been completed by the end of `as_of`.
    fn unfinished_work(&self, expected: &ExpectedSubscription, now: DateTime<Utc>, as_of: NaiveDate) -> Vec<String> {
        let mut left = Vec::new();
        let has_recent_payment = |no| {
            self.ledger
                .payments_of_attempt(&expected.name, no)
                .any(|ledger_payment| now - ledger_payment.at < MAX_OPEN_TIME_AFTER_PAYMENT)
        };
        if let Some(open) = expected.open.as_ref().filter(|open| !has_recent_payment(open.no)) {
            left.push(format!("attempt {} of {} has been open since {}", open.no, open.due, open.claimed_at));
        }
        if expected.open.is_none() && expected.next_payment.is_some_and(|next| next <= as_of) {
            left.push(format!("{} is owed and should have been charged on {:?}", expected.due, expected.next_payment));
        }
        if expected.is_chargeable() && expected.next_payment.is_none() {
            left.push(format!("the subscription is {:?}, but will never be charged", expected.status));
        }
        if expected.next_reminder.is_some_and(|on| on <= as_of) {
            left.push(format!("the reminder of the payment due on {} was not sent", expected.due));
        }
        let mut month = month_of(expected.first_due);
        while month < month_of(expected.due) {
            if !expected.paid.contains_key(&month) && !expected.waived.contains_key(&month) {
                left.push(format!("the month {}-{:02} is neither paid nor waived nor owed", month.0, month.1));
            }
            month = next_month(month);
        }
        left
    }
}
