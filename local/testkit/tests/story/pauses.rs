//! Tests of pauses: when pausing and resuming are rejected, and which months are waived.

use billing::{ChangeRefusal, OnResume, Settlement, Subscription, SubscriptionChanges, SubscriptionStatus};

use crate::lifecycle::{LEAD, dates, with_open_attempt};
use crate::subscription_changes::change_payment_day;
use crate::world::{billing_time, date, new_subscription};

/// Returns the due date and the reason of each month that `settlement` waives.
pub fn waived_months(settlement: &Settlement) -> Vec<String> {
    settlement.waived.iter().map(|waived| format!("{} {}", waived.due_on, waived.reason)).collect()
}

/// Resumes `paused` on the day `today`.
fn resume(paused: &Subscription, on_resume: OnResume, today: &str) -> Settlement {
    paused.resume(on_resume, LEAD(), date(today), billing_time(today)).unwrap()
}

#[test]
fn resume_charges_or_waits_and_waives_the_earlier_months_of_the_pause() {
    use OnResume::{Charge, Wait};
    for (on_resume, today, due_on, payable_on, expected) in [
        (Charge, "2026-03-04", "2026-03-10", "2026-03-10", &[][..]),
        (Charge, "2026-03-10", "2026-03-10", "2026-03-10", &[]),
        (Charge, "2026-03-11", "2026-03-10", "2026-03-11", &[]),
        (Charge, "2026-04-09", "2026-03-10", "2026-04-09", &[]),
        (Charge, "2026-04-10", "2026-04-10", "2026-04-10", &["2026-03-10 paused"]),
        (Charge, "2026-06-01", "2026-05-10", "2026-06-01", &["2026-03-10 paused", "2026-04-10 paused"]),
        (Wait, "2026-03-09", "2026-03-10", "2026-03-10", &[]),
        (Wait, "2026-03-10", "2026-03-10", "2026-03-10", &[]),
        (Wait, "2026-03-11", "2026-04-10", "2026-04-10", &["2026-03-10 paused"]),
        (Wait, "2026-04-10", "2026-04-10", "2026-04-10", &["2026-03-10 paused"]),
        (Wait, "2026-04-11", "2026-05-10", "2026-05-10", &["2026-03-10 paused", "2026-04-10 paused"]),
    ] {
        let paused = new_subscription(10, "2026-03-01").pause(date("2026-03-02")).unwrap();
        assert_eq!((paused.next_payment_on, paused.next_reminder_on), (None, None));
        assert_eq!(paused.pause(date(today)).unwrap(), paused, "pausing twice changes nothing");
        let settlement = resume(&paused, on_resume, today);
        let resumed = &settlement.subscription;
        let found = (resumed.status, resumed.due_on, resumed.next_payment_on);
        assert_eq!(
            found,
            (SubscriptionStatus::Active, date(due_on), Some(date(payable_on))),
            "{on_resume:?} on {today}"
        );
        assert_eq!(waived_months(&settlement), expected, "{on_resume:?} on {today}");
        let second = resume(resumed, on_resume, today);
        assert_eq!(second, Settlement::from(resumed.clone()), "resuming twice changes nothing");
    }
}

#[test]
fn pause_is_rejected_while_a_payment_is_owed_or_open() {
    let active = new_subscription(10, "2026-03-01");
    let (due_on, day_before) = (date("2026-03-10"), date("2026-03-09"));
    assert!(active.pause(day_before).is_ok());
    assert_eq!(active.pause(due_on), Err(ChangeRefusal::Owed { due_on }), "on the due date");
    assert_eq!(
        active.pause(date("2026-05-01")),
        Err(ChangeRefusal::Owed { due_on }),
        "the payment batch did not run for weeks"
    );
    let paying = ChangeRefusal::Paying { due_on, action: "paused" };
    assert_eq!(
        with_open_attempt(&active).pause(day_before),
        Err(paying),
        "a worker with a fast clock has claimed the attempt"
    );
    let open = Subscription { status: SubscriptionStatus::Paused, ..with_open_attempt(&active) };
    let resuming = open.resume(OnResume::Charge, LEAD(), date("2026-04-11"), billing_time("2026-04-11"));
    assert_eq!(
        resuming,
        Err(ChangeRefusal::Paying { due_on, action: "resumed" }),
        "an earlier version of Dueday paused the subscription despite the open attempt"
    );
}

#[test]
fn change_of_the_payment_day_is_rejected_while_paused() {
    let paused = new_subscription(10, "2026-03-01").pause(date("2026-03-02")).unwrap();
    let new_day = |day: i64| SubscriptionChanges { payment_day: day.try_into().ok(), ..SubscriptionChanges::default() };
    assert_eq!(paused.apply_changes(&new_day(11), LEAD(), date("2026-03-02")), Err(ChangeRefusal::PausedDay));
    assert_eq!(paused.apply_changes(&new_day(10), LEAD(), date("2026-03-02")), Ok(paused.clone()));
    // A change that undoes a pending change of the payment day is rejected, too.
    let pending = change_payment_day(&new_subscription(10, "2026-03-01"), 3, "2026-03-05");
    let pending = pending.pause(date("2026-03-05")).unwrap();
    assert_eq!(pending.apply_changes(&new_day(10), LEAD(), date("2026-03-05")), Err(ChangeRefusal::PausedDay));
}

#[test]
fn pause_does_not_skip_a_month_whose_payment_day_was_changed_too_late() {
    let earlier_day = change_payment_day(&new_subscription(10, "2026-05-01"), 3, "2026-05-05");
    let paused = earlier_day.pause(date("2026-05-06")).unwrap();
    assert_eq!(
        dates(&resume(&paused, OnResume::Charge, "2026-05-07").subscription),
        ["2026-05-10", "2026-05-10", "2026-05-03"]
    );
}

#[test]
fn at_most_the_latest_ninety_waived_months_are_recorded() {
    let paused = new_subscription(10, "2010-01-01").pause(date("2010-01-02")).unwrap();
    let settlement = resume(&paused, OnResume::Charge, "2026-03-10");
    assert_eq!(settlement.waived.len(), 90, "a DynamoDB transaction has at most 100 writes");
    assert_eq!(settlement.waived.last().unwrap().due_on, date("2026-02-10"));
}

#[test]
fn pause_and_resume_are_rejected_if_past_due_unpaid_or_cancelled() {
    for status in [SubscriptionStatus::PastDue, SubscriptionStatus::Unpaid, SubscriptionStatus::Cancelled] {
        let subscription = Subscription { status, ..new_subscription(10, "2026-03-01") };
        let today = date("2026-03-05");
        assert_eq!(subscription.pause(today), Err(ChangeRefusal::Status { status, action: "paused" }));
        let resumed = subscription.resume(OnResume::Charge, LEAD(), today, billing_time("2026-03-05"));
        assert_eq!(resumed, Err(ChangeRefusal::Status { status, action: "resumed" }));
    }
    let cancelled =
        new_subscription(10, "2026-03-01").cancel(date("2026-03-02"), billing_time("2026-03-02")).subscription;
    assert_eq!(dates(&cancelled), ["2026-03-10", "-", "-"]);
    let changed = cancelled.apply_changes(
        &SubscriptionChanges { amount: Some(1), ..SubscriptionChanges::default() },
        LEAD(),
        date("2026-03-02"),
    );
    assert_eq!(changed, Err(ChangeRefusal::Status { status: SubscriptionStatus::Cancelled, action: "changed" }));
}
