//! Cancellations: now, at the end of a period, or by becoming unpaid.

use billing::{AfterLastRetry, Outcome, Period, Policy, Refusal, Status, Subscription};

use crate::changes::to_day;
use crate::lifecycle::{LEAD, claimed, dates, declined, paid, settled};
use crate::pauses::waived;
use crate::world::{date, morning, new_subscription};

#[test]
fn cancel_waives_what_is_owed_and_keeps_the_first_month_that_is_not() {
    let active = new_subscription(10, "2026-03-01");
    let paused = active.pause(date("2026-03-02")).unwrap();
    let past_due = Subscription { status: Status::PastDue, ..active.clone() };
    let unpaid = Subscription { status: Status::Unpaid, next_payment_on: None, ..active.clone() };
    let ending = past_due.cancel_at_period_end(date("2026-03-12")).unwrap();
    for (story, subscription, today, first_unowed, expected) in [
        ("before the due date", &active, "2026-03-09", "2026-03", &[][..]),
        ("on the due date", &active, "2026-03-10", "2026-04", &["2026-03-10 cancelled"]),
        ("after an outage", &active, "2026-04-11", "2026-05", &["2026-03-10 cancelled", "2026-04-10 cancelled"]),
        ("past due", &past_due, "2026-03-12", "2026-04", &["2026-03-10 cancelled"]),
        ("unpaid for months", &unpaid, "2026-04-12", "2026-05", &["2026-03-10 unpaid", "2026-04-10 unpaid"]),
        ("paused, before the due date", &paused, "2026-03-09", "2026-03", &[]),
        ("paused for months", &paused, "2026-04-12", "2026-05", &["2026-03-10 paused", "2026-04-10 cancelled"]),
        ("ending anyway, late", &ending, "2026-06-01", "2026-04", &["2026-03-10 cancelled"]),
    ] {
        let settlement = subscription.cancel(date(today), morning(today));
        let cancelled = &settlement.subscription;
        assert_eq!(waived(&settlement), expected, "{story}");
        assert_eq!(cancelled.cancel_from, Some(first_unowed.parse().unwrap()), "{story}");
        assert_eq!((cancelled.status, cancelled.next_payment_on), (Status::Cancelled, None), "{story}");
        assert_eq!(Period::of(cancelled.due_on), first_unowed.parse().unwrap(), "{story}: nothing before it is owed");
        assert_eq!(cancelled.cancel(date("2027-01-01"), morning(today)), cancelled.clone().into(), "twice is once");
    }
}

#[test]
fn cancel_waives_the_month_of_an_open_attempt_only_once_it_is_settled_unpaid() {
    let open = claimed(&new_subscription(10, "2026-03-01"));
    // Nobody ran for a month: April is owed as well.
    let settlement = open.cancel(date("2026-04-12"), morning("2026-04-12"));
    assert_eq!(waived(&settlement), ["2026-04-10 cancelled"]);
    let cancelled = settlement.subscription;
    assert_eq!((cancelled.due_on, cancelled.next_payment_on), (date("2026-03-10"), Some(date("2026-03-10"))));
    for (outcome, expected) in [
        (paid(&cancelled), &[][..]),
        (declined(false), &["2026-03-10 cancelled"]),
        (Outcome::Rejected { code: "no".to_owned() }, &["2026-03-10 cancelled"]),
        (Outcome::Dropped, &["2026-03-10 cancelled"]),
    ] {
        let settled = settled(&cancelled, &outcome, &Policy::default(), "2026-04-12");
        assert_eq!(waived(&settled), expected, "{outcome:?}");
        assert_eq!(settled.receipt.is_some(), expected.is_empty(), "{outcome:?}");
        assert_eq!(dates(&settled.subscription), ["2026-05-10", "-", "-"], "{outcome:?}");
        assert_eq!(settled.subscription.status, Status::Cancelled, "{outcome:?}");
    }
}

#[test]
fn becoming_unpaid_ends_what_was_to_end() {
    let last = Subscription { failed_attempts: 4, status: Status::PastDue, ..new_subscription(10, "2026-03-01") };
    let to_end = last.cancel_at_period_end(date("2026-03-12")).unwrap();
    let end = settled(&claimed(&to_end), &declined(false), &Policy::default(), "2026-03-17");
    assert_eq!((end.subscription.status, waived(&end)), (Status::Cancelled, vec!["2026-03-10 unpaid".to_owned()]));
    let policy = Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() };
    let end = settled(&claimed(&last), &declined(false), &policy, "2026-04-17");
    assert_eq!(waived(&end), ["2026-03-10 unpaid", "2026-04-10 unpaid"]);
    assert_eq!((end.subscription.status, dates(&end.subscription)[0].as_str()), (Status::Cancelled, "2026-05-10"));
}

#[test]
fn cancel_at_period_end_takes_effect_on_the_next_due_date() {
    let active = new_subscription(10, "2026-03-01");
    for (story, subscription, today, ends_on) in [
        ("before the due date", active.clone(), "2026-03-09", "2026-03-10"),
        ("on the day it is owed already", active.clone(), "2026-03-10", "2026-04-10"),
        ("while it is charged", claimed(&active), "2026-03-10", "2026-04-10"),
        ("months late", active.clone(), "2026-06-20", "2026-07-10"),
        ("while past due", Subscription { status: Status::PastDue, ..active.clone() }, "2026-03-12", "2026-04-10"),
    ] {
        let ending = subscription.cancel_at_period_end(date(today)).unwrap();
        assert_eq!(ending.cancels_on(), Some(date(ends_on)), "{story}");
        assert_eq!(ending.cancel_at_period_end(date(ends_on)).unwrap(), ending, "{story}: twice is once");
        let kept = ending.uncancel(LEAD(), date(today)).unwrap();
        assert_eq!((kept.cancels_on(), kept.next_payment_on), (None, subscription.next_payment_on), "{story}");
        if subscription.status == Status::Active {
            assert_eq!(ending.pause(date(today)), Err(Refusal::Ending), "{story}");
        }
    }
    let ending = active.cancel_at_period_end(date("2026-03-05")).unwrap();
    assert_eq!(dates(&ending), ["2026-03-10", "2026-03-10", "-"], "nothing to remind of");
    assert_eq!(
        dates(&ending.uncancel(LEAD(), date("2026-03-09")).unwrap()),
        ["2026-03-10", "2026-03-10", "2026-03-03"]
    );
    assert_eq!(ending.uncancel(LEAD(), date("2026-03-10")), Err(Refusal::Ended { on: date("2026-03-10") }));
    assert_eq!(
        to_day(&ending, 20, "2026-03-05").cancels_on(),
        Some(date("2026-03-20")),
        "its month ends it, not its day"
    );
    let paid_once = claimed(&active).cancel_at_period_end(date("2026-03-10")).unwrap();
    let paid_once = settled(&paid_once, &paid(&paid_once), &Policy::default(), "2026-03-10").subscription;
    assert_eq!(dates(&paid_once), ["2026-04-10", "2026-04-10", "-"], "in the index, to be ended on the day");
    for status in [Status::Paused, Status::Unpaid] {
        let stopped = Subscription { status, ..active.clone() };
        assert_eq!(stopped.cancel_at_period_end(date("2026-03-05")), Err(Refusal::NoPeriod { status }));
    }
    assert!(
        active
            .cancel(date("2026-03-05"), morning("2026-03-05"))
            .subscription
            .uncancel(LEAD(), date("2026-03-05"))
            .is_err(),
        "cancelled now is final"
    );
}
