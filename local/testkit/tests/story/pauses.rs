//! Pauses: what is refused, and which months are waived.

use billing::{Changes, OnResume, Refusal, Settlement, Status, Subscription};

use crate::changes::to_day;
use crate::lifecycle::{LEAD, claimed, dates};
use crate::world::{date, morning, new_subscription};

/// The months that a settlement waives, with their reasons.
pub fn waived(settlement: &Settlement) -> Vec<String> {
    settlement.waived.iter().map(|waived| format!("{} {}", waived.due_on, waived.reason)).collect()
}

fn resumed(paused: &Subscription, on_resume: OnResume, today: &str) -> Settlement {
    paused.resume(on_resume, LEAD(), date(today), morning(today)).unwrap()
}

#[test]
fn resume_charges_the_last_payment_of_the_pause_and_waives_those_before_it() {
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
        assert_eq!(paused.pause(date(today)).unwrap(), paused, "twice is once");
        let settlement = resumed(&paused, on_resume, today);
        let again = &settlement.subscription;
        let found = (again.status, again.due_on, again.next_payment_on);
        assert_eq!(found, (Status::Active, date(due_on), Some(date(payable_on))), "{on_resume:?} on {today}");
        assert_eq!(waived(&settlement), expected, "{on_resume:?} on {today}");
        assert_eq!(resumed(again, on_resume, today), Settlement::from(again.clone()), "twice is once");
    }
}

#[test]
fn pause_is_refused_while_anything_is_owed_or_under_way() {
    let active = new_subscription(10, "2026-03-01");
    let (due_on, day_before) = (date("2026-03-10"), date("2026-03-09"));
    assert!(active.pause(day_before).is_ok());
    assert_eq!(active.pause(due_on), Err(Refusal::Owed { due_on }), "on the day");
    assert_eq!(active.pause(date("2026-05-01")), Err(Refusal::Owed { due_on }), "nobody ran for weeks");
    let paying = Refusal::Paying { due_on, action: "paused" };
    assert_eq!(claimed(&active).pause(day_before), Err(paying), "by a clock that is ahead");
    let open = Subscription { status: Status::Paused, ..claimed(&active) };
    let resuming = open.resume(OnResume::Charge, LEAD(), date("2026-04-11"), morning("2026-04-11"));
    assert_eq!(resuming, Err(Refusal::Paying { due_on, action: "resumed" }), "paused before it was refused");
}

#[test]
fn change_of_the_payment_day_is_refused_while_paused() {
    let paused = new_subscription(10, "2026-03-01").pause(date("2026-03-02")).unwrap();
    let to = |day: i64| Changes { payment_day: day.try_into().ok(), ..Changes::default() };
    assert_eq!(paused.change(&to(11), LEAD(), date("2026-03-02")), Err(Refusal::PausedDay));
    assert_eq!(paused.change(&to(10), LEAD(), date("2026-03-02")), Ok(paused.clone()));
    // A day that waits is not taken back either.
    let waiting = to_day(&new_subscription(10, "2026-03-01"), 3, "2026-03-05").pause(date("2026-03-05")).unwrap();
    assert_eq!(waiting.change(&to(10), LEAD(), date("2026-03-05")), Err(Refusal::PausedDay));
}

#[test]
fn pause_does_not_skip_a_month_whose_payment_day_was_changed_too_late() {
    let early = to_day(&new_subscription(10, "2026-05-01"), 3, "2026-05-05");
    let paused = early.pause(date("2026-05-06")).unwrap();
    assert_eq!(
        dates(&resumed(&paused, OnResume::Charge, "2026-05-07").subscription),
        ["2026-05-10", "2026-05-10", "2026-05-03"]
    );
}

#[test]
fn waived_months_are_the_latest_ninety() {
    let paused = new_subscription(10, "2010-01-01").pause(date("2010-01-02")).unwrap();
    let settlement = resumed(&paused, OnResume::Charge, "2026-03-10");
    assert_eq!(settlement.waived.len(), 90, "a transaction takes a hundred writes");
    assert_eq!(settlement.waived.last().unwrap().due_on, date("2026-02-10"));
}

#[test]
fn pause_and_resume_are_refused_when_past_due_unpaid_or_cancelled() {
    for status in [Status::PastDue, Status::Unpaid, Status::Cancelled] {
        let subscription = Subscription { status, ..new_subscription(10, "2026-03-01") };
        let today = date("2026-03-05");
        assert_eq!(subscription.pause(today), Err(Refusal::Status { status, action: "paused" }));
        let resumed = subscription.resume(OnResume::Charge, LEAD(), today, morning("2026-03-05"));
        assert_eq!(resumed, Err(Refusal::Status { status, action: "resumed" }));
    }
    let cancelled = new_subscription(10, "2026-03-01").cancel(date("2026-03-02"), morning("2026-03-02")).subscription;
    assert_eq!(dates(&cancelled), ["2026-03-10", "-", "-"]);
    let changed = cancelled.change(&Changes { amount: Some(1), ..Changes::default() }, LEAD(), date("2026-03-02"));
    assert_eq!(changed, Err(Refusal::Status { status: Status::Cancelled, action: "changed" }));
}
