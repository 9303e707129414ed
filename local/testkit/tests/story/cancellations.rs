//! Tests of cancellations: immediate, at the end of a period, or because the subscription is unpaid.

use billing::{AfterLastRetry, AttemptOutcome, ChangeRefusal, Period, Policy, Subscription, SubscriptionStatus};

use crate::lifecycle::{LEAD, dates, decline_outcome, settle_attempt, success_outcome, with_open_attempt};
use crate::pauses::waived_months;
use crate::subscription_changes::change_payment_day;
use crate::world::{billing_time, date, new_subscription};

#[test]
fn cancel_waives_the_owed_months() {
    let active = new_subscription(10, "2026-03-01");
    let paused = active.pause(date("2026-03-02")).unwrap();
    let past_due = Subscription { status: SubscriptionStatus::PastDue, ..active.clone() };
    let unpaid = Subscription { status: SubscriptionStatus::Unpaid, next_payment_on: None, ..active.clone() };
    let ending = past_due.cancel_at_period_end(date("2026-03-12")).unwrap();
    for (case, subscription, today, first_unowed, expected) in [
        ("before the due date", &active, "2026-03-09", "2026-03", &[][..]),
        ("on the due date", &active, "2026-03-10", "2026-04", &["2026-03-10 cancelled"]),
        (
            "after an outage of a month",
            &active,
            "2026-04-11",
            "2026-05",
            &["2026-03-10 cancelled", "2026-04-10 cancelled"],
        ),
        ("past due", &past_due, "2026-03-12", "2026-04", &["2026-03-10 cancelled"]),
        ("unpaid for months", &unpaid, "2026-04-12", "2026-05", &["2026-03-10 unpaid", "2026-04-10 unpaid"]),
        ("paused, before the due date", &paused, "2026-03-09", "2026-03", &[]),
        ("paused for months", &paused, "2026-04-12", "2026-05", &["2026-03-10 paused", "2026-04-10 cancelled"]),
        ("scheduled to end, cancelled late", &ending, "2026-06-01", "2026-04", &["2026-03-10 cancelled"]),
    ] {
        let settlement = subscription.cancel(date(today), billing_time(today));
        let cancelled = &settlement.subscription;
        assert_eq!(waived_months(&settlement), expected, "{case}");
        assert_eq!(cancelled.cancel_from, Some(first_unowed.parse().unwrap()), "{case}");
        assert_eq!((cancelled.status, cancelled.next_payment_on), (SubscriptionStatus::Cancelled, None), "{case}");
        assert_eq!(
            Period::from_day(cancelled.due_on),
            first_unowed.parse().unwrap(),
            "{case}: no earlier month is owed"
        );
        let second = cancelled.cancel(date("2027-01-01"), billing_time(today));
        assert_eq!(second, cancelled.clone().into(), "a second cancellation changes nothing");
    }
}

#[test]
fn cancel_waives_the_month_of_an_open_attempt_when_the_attempt_fails() {
    let open = with_open_attempt(&new_subscription(10, "2026-03-01"));
    // The payment batch did not run for a month, so April is owed as well.
    let settlement = open.cancel(date("2026-04-12"), billing_time("2026-04-12"));
    assert_eq!(waived_months(&settlement), ["2026-04-10 cancelled"]);
    let cancelled = settlement.subscription;
    assert_eq!((cancelled.due_on, cancelled.next_payment_on), (date("2026-03-10"), Some(date("2026-03-10"))));
    for (outcome, expected) in [
        (success_outcome(&cancelled), &[][..]),
        (decline_outcome(false), &["2026-03-10 cancelled"]),
        (AttemptOutcome::Rejected { code: "no".to_owned() }, &["2026-03-10 cancelled"]),
        (AttemptOutcome::Dropped, &["2026-03-10 cancelled"]),
    ] {
        let settled = settle_attempt(&cancelled, &outcome, &Policy::default(), "2026-04-12");
        assert_eq!(waived_months(&settled), expected, "{outcome:?}");
        assert_eq!(settled.receipt.is_some(), expected.is_empty(), "{outcome:?}");
        assert_eq!(dates(&settled.subscription), ["2026-05-10", "-", "-"], "{outcome:?}");
        assert_eq!(settled.subscription.status, SubscriptionStatus::Cancelled, "{outcome:?}");
    }
}

#[test]
fn last_decline_cancels_if_the_subscription_ends_anyway_or_the_policy_says_so() {
    let last =
        Subscription { failed_attempts: 4, status: SubscriptionStatus::PastDue, ..new_subscription(10, "2026-03-01") };
    let to_end = last.cancel_at_period_end(date("2026-03-12")).unwrap();
    let end = settle_attempt(&with_open_attempt(&to_end), &decline_outcome(false), &Policy::default(), "2026-03-17");
    assert_eq!(
        (end.subscription.status, waived_months(&end)),
        (SubscriptionStatus::Cancelled, vec!["2026-03-10 unpaid".to_owned()])
    );
    let policy = Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() };
    let end = settle_attempt(&with_open_attempt(&last), &decline_outcome(false), &policy, "2026-04-17");
    assert_eq!(waived_months(&end), ["2026-03-10 unpaid", "2026-04-10 unpaid"]);
    assert_eq!(
        (end.subscription.status, dates(&end.subscription)[0].as_str()),
        (SubscriptionStatus::Cancelled, "2026-05-10")
    );
}

/// In this test, the subscription was unpaid since January, became past due with a new card, and was then cancelled at
/// the end of the March period.
#[test]
fn payment_of_an_unpaid_subscription_waives_only_the_months_before_its_end() {
    let retried = Subscription {
        status: SubscriptionStatus::PastDue,
        unpaid_since: Some(date("2026-01-24")),
        ..new_subscription(10, "2026-01-01")
    };
    let ending = retried.cancel_at_period_end(date("2026-03-12")).unwrap();
    for (paid_on, waived, next_due) in [
        ("2026-03-13", &["2026-02-10 unpaid", "2026-03-10 unpaid"][..], "2026-04-10"),
        ("2026-06-01", &["2026-02-10 unpaid", "2026-03-10 unpaid"], "2026-04-10"),
    ] {
        let open = with_open_attempt(&ending);
        let paid = settle_attempt(&open, &success_outcome(&open), &Policy::default(), paid_on);
        let is_cancelled_next = paid.subscription.is_ending();
        assert_eq!((waived_months(&paid), is_cancelled_next), (waived.iter().map(ToString::to_string).collect(), true));
        assert_eq!(dates(&paid.subscription)[0], next_due, "paid on {paid_on}");
    }
}

#[test]
fn cancel_at_period_end_takes_effect_on_the_next_due_date() {
    let active = new_subscription(10, "2026-03-01");
    for (case, subscription, today, ends_on) in [
        ("before the due date", active.clone(), "2026-03-09", "2026-03-10"),
        ("on the due date", active.clone(), "2026-03-10", "2026-04-10"),
        ("during the charge", with_open_attempt(&active), "2026-03-10", "2026-04-10"),
        ("months late", active.clone(), "2026-06-20", "2026-07-10"),
        (
            "while past due",
            Subscription { status: SubscriptionStatus::PastDue, ..active.clone() },
            "2026-03-12",
            "2026-04-10",
        ),
    ] {
        let ending = subscription.cancel_at_period_end(date(today)).unwrap();
        assert_eq!(ending.cancels_on(), Some(date(ends_on)), "{case}");
        assert_eq!(ending.cancel_at_period_end(date(ends_on)).unwrap(), ending, "{case}: repeating changes nothing");
        let uncancelled = ending.uncancel(LEAD(), date(today)).unwrap();
        assert_eq!(
            (uncancelled.cancels_on(), uncancelled.next_payment_on),
            (None, subscription.next_payment_on),
            "{case}"
        );
        if subscription.status == SubscriptionStatus::Active {
            assert_eq!(ending.pause(date(today)), Err(ChangeRefusal::Ending), "{case}");
        }
    }
    let ending = active.cancel_at_period_end(date("2026-03-05")).unwrap();
    assert_eq!(
        dates(&ending),
        ["2026-03-10", "2026-03-10", "-"],
        "no reminder is planned, because no payment will follow"
    );
    assert_eq!(
        dates(&ending.uncancel(LEAD(), date("2026-03-09")).unwrap()),
        ["2026-03-10", "2026-03-10", "2026-03-03"]
    );
    assert_eq!(ending.uncancel(LEAD(), date("2026-03-10")), Err(ChangeRefusal::Ended { on: date("2026-03-10") }));
    assert_eq!(
        change_payment_day(&ending, 20, "2026-03-05").cancels_on(),
        Some(date("2026-03-20")),
        "the subscription still ends with the period of March, on the new payment day"
    );
    let paid_once = with_open_attempt(&active).cancel_at_period_end(date("2026-03-10")).unwrap();
    let paid_once =
        settle_attempt(&paid_once, &success_outcome(&paid_once), &Policy::default(), "2026-03-10").subscription;
    assert_eq!(
        dates(&paid_once),
        ["2026-04-10", "2026-04-10", "-"],
        "the subscription stays in the payment index, so that a run cancels it on the due date"
    );
    for status in [SubscriptionStatus::Paused, SubscriptionStatus::Unpaid] {
        let stopped = Subscription { status, ..active.clone() };
        assert_eq!(stopped.cancel_at_period_end(date("2026-03-05")), Err(ChangeRefusal::NoPeriod { status }));
    }
    assert!(
        active
            .cancel(date("2026-03-05"), billing_time("2026-03-05"))
            .subscription
            .uncancel(LEAD(), date("2026-03-05"))
            .is_err(),
        "an immediate cancellation cannot be undone"
    );
}
