//! Runs that came to the end of the index, and the end of everything: nothing that was to be done is left.

use billing::PaymentStatus;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::agreement::Agreement;
use super::{Oracle, Role};
use crate::calendar::{month_of, next_month};
use crate::lagging_index::MAX_LAG;
use crate::stored::name;

/// A bank debit is under way two days, and the next run asks for it.
const LONGEST_DEBIT: TimeDelta = TimeDelta::days(4);

/// An event about a payment that was made late has been received after this time.
const LATEST_EVENT: TimeDelta = TimeDelta::days(4);

/// A run that has walked the index from its start to its end.
#[derive(Clone, Debug)]
pub struct Walked {
    pub role: Role,
    pub date: NaiveDate,
    pub started_at: DateTime<Utc>,
    /// Rows that it says it has left.
    pub left: u64,
}

impl Oracle {
    /// A run has walked the index to its end: what was due all the time is done, but for what it says it has left.
    pub fn walked(&mut self, now: DateTime<Utc>, run: &Walked) {
        let is_due = |on: Option<NaiveDate>| on.is_some_and(|on| on <= run.date);
        let is_left = |agreement: &&Agreement| match run.role {
            Role::Reminders => {
                let is_held =
                    |held: &super::agreement::Reminding| held.leased_until + TimeDelta::minutes(6) > run.started_at;
                is_due(agreement.remind) && !agreement.reminding.as_ref().is_some_and(is_held)
            }
            _ => is_due(agreement.next) && agreement.open.is_none(),
        };
        let was_there = |agreement: &&Agreement| agreement.changed_at + MAX_LAG < run.started_at;
        let left: Vec<String> =
            self.agreements.values().filter(is_left).filter(was_there).map(|agreement| name(&agreement.who)).collect();
        if left.len() as u64 > run.left {
            let who = ("a run".to_owned(), format!("{:?} of {}", run.role, run.date));
            self.is_wrong(now, &who, format!("it says that {} are left, and there are: {}", run.left, left.join(", ")));
        }
    }

    /// Everything is over: after days without trouble nothing that could be paid is owed by the end of `as_of`.
    pub fn close(&mut self, now: DateTime<Utc>, as_of: NaiveDate) {
        let mut wrong = Vec::new();
        for agreement in self.agreements.values() {
            wrong.extend(self.left_of(agreement, now, as_of).into_iter().map(|what| (agreement.who.clone(), what)));
        }
        for (payment, made) in &self.ledger.made {
            if made.status != PaymentStatus::Succeeded || self.ledger.receipted.contains(payment) {
                continue;
            }
            if self.ledger.found.contains(payment) {
                self.judged.found += 1;
                continue;
            }
            // Its event is on the way.
            if made.repaired_at.is_some_and(|at| now - at < LATEST_EVENT) {
                continue;
            }
            wrong.push((made.who.clone(), format!("{payment} of {} was paid, and has no receipt", made.due)));
        }
        for (who, what) in wrong {
            self.is_wrong(now, &who, what);
        }
    }

    fn left_of(&self, agreement: &Agreement, now: DateTime<Utc>, as_of: NaiveDate) -> Vec<String> {
        let mut left = Vec::new();
        let made = |no| self.ledger.of_attempt(&agreement.who, no).any(|made| now - made.at < LONGEST_DEBIT);
        if let Some(open) = agreement.open.as_ref().filter(|open| !made(open.no)) {
            left.push(format!("attempt {} of {} is open since {}", open.no, open.due, open.claimed_at));
        }
        if agreement.open.is_none() && agreement.next.is_some_and(|next| next <= as_of) {
            left.push(format!("{} is owed, and was to be charged on {:?}", agreement.due, agreement.next));
        }
        if agreement.is_chargeable() && agreement.next.is_none() {
            left.push(format!("it is {:?}, and will never be charged", agreement.status));
        }
        if agreement.remind.is_some_and(|on| on <= as_of) {
            left.push(format!("a reminder of {} was not sent", agreement.due));
        }
        let mut month = month_of(agreement.first_due);
        while month < month_of(agreement.due) {
            if !agreement.paid.contains_key(&month) && !agreement.waived.contains_key(&month) {
                left.push(format!("{}-{:02} is neither paid nor waived nor owed", month.0, month.1));
            }
            month = next_month(month);
        }
        left
    }
}
