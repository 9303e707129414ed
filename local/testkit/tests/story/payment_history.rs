//! A test helper that builds the payment records of one subscription step by step, and checks the explanations of its
//! days.

use audit::{ChargeExplanation, HoldRecords, ReasonCode, find_charge_reason};
use billing::{ActionKind, AttemptOutcome, NewAction, PaymentRecords, Policy, Settlement, Subscription};
use chrono_tz::Tz;
use days::RequestedDay;

use crate::lifecycle::{settle_attempt, with_open_attempt};
use crate::world::{date, new_subscription, pause};

/// A subscription with its payment records (receipts, attempt records and waived periods), and the records of the times
/// in which it was not charged.
pub struct History {
    pub subscription: Subscription,
    pub records: PaymentRecords,
    pub hold_records: HoldRecords,
}

impl History {
    /// Starts with a subscription that was created on March 1, 2026, and has the payment day 10.
    pub fn new() -> Self {
        Self::of_subscription(new_subscription(10, "2026-03-01"))
    }

    /// Starts with `subscription` and no records.
    pub fn of_subscription(subscription: Subscription) -> Self {
        Self { subscription, records: PaymentRecords::default(), hold_records: HoldRecords::default() }
    }

    /// Adds a payment attempt on `day` with this outcome.
    pub fn with_attempt(self, day: &str, outcome: impl Fn(&Subscription) -> AttemptOutcome) -> Self {
        self.with_attempt_and_policy(day, outcome, &Policy::default())
    }

    /// Adds a payment attempt on `day` with this outcome, settled according to `policy`.
    pub fn with_attempt_and_policy(
        self,
        day: &str,
        outcome: impl Fn(&Subscription) -> AttemptOutcome,
        policy: &Policy,
    ) -> Self {
        let mut open =
            with_open_attempt(&Subscription { next_payment_on: Some(date(day)), ..self.subscription.clone() });
        // An attempt is dropped only if the subscription was paused or cancelled during the attempt.
        let outcome = outcome(&open);
        if outcome == AttemptOutcome::Dropped {
            open = pause(&open);
        }
        let settlement = settle_attempt(&open, &outcome, policy, day);
        self.with_settlement(settlement)
    }

    /// Applies `settlement` to the subscription, and adds its receipt, attempt record and waived periods to the
    /// records.
    pub fn with_settlement(mut self, settlement: Settlement) -> Self {
        self.records.receipts.extend(settlement.receipt);
        self.records.attempts.extend(settlement.record);
        self.records.waived.extend(settlement.waived);
        Self { subscription: settlement.subscription, ..self }
    }

    /// Applies a change of the subscription.
    pub fn with_change<S: Into<Settlement>>(self, change: impl Fn(&Subscription) -> S) -> Self {
        let settlement = change(&self.subscription).into();
        self.with_settlement(settlement)
    }

    /// Applies a change of the subscription that is in the action log, made at 12:00 UTC on `day`.
    pub fn with_logged_change<S: Into<Settlement>>(self, day: &str, change: impl Fn(&Subscription) -> S) -> Self {
        let before = self.subscription.clone();
        let mut history = self.with_change(change);
        let action = NewAction {
            at: date(day).and_hms_opt(12, 0, 0).unwrap().and_utc(),
            ..testkit::sample_action(ActionKind::ChangeSubscription)
        };
        history.hold_records.actions.push(action.on_subscription(Some(&before), &history.subscription));
        history
    }

    /// Returns the explanation on `today` for the day `on`.
    pub fn explain(&self, on: &str, today: &str) -> ChargeExplanation {
        self.explain_in_zone(Tz::UTC, on, today)
    }

    /// Returns the explanation on `today` for the day `on`, both in the time zone `zone`.
    pub fn explain_in_zone(&self, zone: Tz, on: &str, today: &str) -> ChargeExplanation {
        let day = RequestedDay { on: date(on), today: date(today), zone, kept_days: 190 };
        let why = find_charge_reason(&self.subscription, &self.records, &self.hold_records, &Policy::default(), &day);
        ChargeExplanation {
            subscription: self.subscription.clone(),
            day,
            why,
            records: self.records.clone(),
            is_attempt_late: false,
            run: None,
        }
    }

    /// Asserts the reason and the text of the explanation, on `today`, for each of the expected days.
    pub fn assert_explanations(&self, today: &str, expected: &[(&str, ReasonCode, &str)]) {
        for (on, reason, text) in expected {
            let explanation = self.explain(on, today);
            assert_eq!((explanation.reason(), explanation.to_string().as_str()), (*reason, *text), "{on}");
        }
    }
}
