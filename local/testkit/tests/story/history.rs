//! What is stored of one subscription after the days that a test lists, and what is explained of them.

use audit::{Explanation, Reason, why};
use billing::{Outcome, Policy, Records, Settlement, Subscription};
use chrono_tz::Tz;
use days::AskedDay;

use crate::lifecycle::{claimed, settled};
use crate::world::{date, new_subscription, paused};

/// A subscription and its records, as days pass.
pub struct History {
    pub now: Subscription,
    pub records: Records,
}

impl History {
    /// On the tenth, from 1 March.
    pub fn new() -> Self {
        Self::of(new_subscription(10, "2026-03-01"))
    }

    pub fn of(now: Subscription) -> Self {
        Self { now, records: Records::default() }
    }

    pub fn on(self, day: &str, outcome: impl Fn(&Subscription) -> Outcome) -> Self {
        self.by(day, outcome, &Policy::default())
    }

    pub fn by(self, day: &str, outcome: impl Fn(&Subscription) -> Outcome, policy: &Policy) -> Self {
        let mut open = claimed(&Subscription { next_payment_on: Some(date(day)), ..self.now.clone() });
        // Dropped is what was stopped meanwhile.
        let outcome = outcome(&open);
        if outcome == Outcome::Dropped {
            open = paused(&open);
        }
        let settlement = settled(&open, &outcome, policy, day);
        self.then(settlement)
    }

    pub fn then(mut self, settlement: Settlement) -> Self {
        self.records.receipts.extend(settlement.receipt);
        self.records.attempts.extend(settlement.record);
        self.records.waived.extend(settlement.waived);
        Self { now: settlement.subscription, ..self }
    }

    pub fn changed<S: Into<Settlement>>(self, change: impl Fn(&Subscription) -> S) -> Self {
        let settlement = change(&self.now).into();
        self.then(settlement)
    }

    pub fn explained(&self, on: &str, today: &str) -> Explanation {
        self.explained_in(Tz::UTC, on, today)
    }

    pub fn explained_in(&self, zone: Tz, on: &str, today: &str) -> Explanation {
        let day = AskedDay { on: date(on), today: date(today), zone, kept_days: 190 };
        let why = why(&self.now, &self.records, &day);
        Explanation { subscription: self.now.clone(), day, why, records: self.records.clone(), run: None }
    }

    /// Asks, on `today`, of each of these days.
    pub fn answers(&self, today: &str, expected: &[(&str, Reason, &str)]) {
        for (on, verdict, words) in expected {
            let explained = self.explained(on, today);
            assert_eq!((explained.reason(), explained.to_string().as_str()), (*verdict, *words), "{on}");
        }
    }
}
