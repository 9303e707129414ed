//! The pure rules at their edges.

use billing::{
    AfterLastRetry, Attempt, AttemptEnd, Decline, LeadDays, Outcome, Payment, PaymentStatus, Policy, Reminder,
    Reminding, Resolution, Settled, Settlement, Status, Subscription, Token, mark_reminded, remind, resolve, settle,
};
use ulid::Ulid;

use crate::world::{cancelled, card, date, morning, new_subscription, paused};

pub const LEAD: fn() -> LeadDays = LeadDays::default;

/// `subscription` with an attempt open, as a claim on its next payment date leaves it.
pub fn claimed(subscription: &Subscription) -> Subscription {
    let no = subscription.attempt_seq + 1;
    let now = morning(&subscription.next_payment_on.unwrap().to_string());
    let attempt = Attempt {
        table: None,
        no,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: now,
        leased_until: now + chrono::TimeDelta::minutes(20),
        held_by: Token(Ulid::from_parts(9, u128::from(no))),
    };
    Subscription { attempt: Some(attempt), attempt_seq: no, ..subscription.clone() }
}

pub fn paid(claimed: &Subscription) -> Outcome {
    let attempt = claimed.attempt.as_ref().unwrap();
    Outcome::Succeeded(Payment {
        table: None,
        id: "pay_1".parse().unwrap(),
        account: claimed.account.clone(),
        subscription: claimed.id,
        due_on: attempt.due_on,
        attempt_no: attempt.no,
        amount: attempt.amount,
        status: PaymentStatus::Succeeded,
        card: None,
        created_at: attempt.claimed_at,
    })
}

pub fn declined(hard: bool) -> Outcome {
    Outcome::Declined(Decline { code: "card_declined".to_owned(), hard })
}

pub fn settled(subscription: &Subscription, outcome: &Outcome, policy: &Policy, day: &str) -> Settlement {
    let held = subscription.attempt.as_ref().unwrap();
    match settle(subscription, held, outcome, policy, date(day), morning(day)) {
        Settled::Write(settlement) => *settlement,
        other => panic!("{other:?}"),
    }
}

/// Due date, next payment date, next reminder date.
pub fn dates(subscription: &Subscription) -> [String; 3] {
    let text = |on: Option<chrono::NaiveDate>| on.map_or("-".to_owned(), |on| on.to_string());
    [subscription.due_on.to_string(), text(subscription.next_payment_on), text(subscription.next_reminder_on)]
}

#[test]
fn settle_of_a_success_moves_the_due_date_to_the_next_months_payment_day() {
    for (payment_day, created, sweep, expected) in [
        (31, "2026-01-30", "2026-01-31", ["2026-02-28", "2026-02-28", "2026-02-21"]),
        (31, "2026-02-27", "2026-02-28", ["2026-03-31", "2026-03-31", "2026-03-24"]),
        (31, "2028-01-31", "2028-02-29", ["2028-03-31", "2028-03-31", "2028-03-24"]),
        (1, "2026-11-30", "2026-12-01", ["2027-01-01", "2027-01-01", "2026-12-25"]),
        // A day late, a month late to the day, and two months late: never twice on one sweep date, and no reminder
        // of what is due already.
        (15, "2026-03-01", "2026-03-16", ["2026-04-15", "2026-04-15", "2026-04-08"]),
        (15, "2026-03-01", "2026-04-15", ["2026-04-15", "2026-04-16", "-"]),
        (15, "2026-03-01", "2026-05-20", ["2026-04-15", "2026-05-21", "-"]),
    ] {
        let before = claimed(&new_subscription(payment_day, created));
        let settlement = settled(&before, &paid(&before), &Policy::default(), sweep);
        assert_eq!(dates(&settlement.subscription), expected, "day {payment_day} from {created} charged on {sweep}");
        let receipt = settlement.receipt.unwrap();
        assert_eq!((receipt.due_on, receipt.amount), (before.due_on, before.price));
        assert_eq!(settlement.subscription.attempt, None);
    }
}

#[test]
fn settle_of_soft_declines_follows_the_schedule_and_ends_unpaid() {
    let mut subscription = new_subscription(10, "2026-03-01");
    let mut days = vec!["2026-03-10".to_owned()];
    while let Some(on) = subscription.next_payment_on {
        let day = on.to_string();
        subscription = settled(&claimed(&subscription), &declined(false), &Policy::default(), &day).subscription;
        days.extend(subscription.next_payment_on.map(|on| on.to_string()));
    }
    assert_eq!(days, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    assert_eq!((subscription.status, subscription.due_on), (Status::Unpaid, date("2026-03-10")));
    assert_eq!((subscription.failed_attempts, subscription.attempt_seq), (5, 5));
}

#[test]
fn settle_of_a_hard_decline_plans_no_retry() {
    let before = claimed(&new_subscription(10, "2026-03-01"));
    let unpaid = settled(&before, &declined(true), &Policy::default(), "2026-03-10");
    assert_eq!((unpaid.subscription.status, unpaid.subscription.next_payment_on), (Status::Unpaid, None));
    assert_eq!(unpaid.record.unwrap().outcome, AttemptEnd::Declined);
    let strict = Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() };
    assert_eq!(settled(&before, &declined(true), &strict, "2026-03-10").subscription.status, Status::Cancelled);
}

#[test]
fn settle_of_a_decline_restarts_the_retries_when_the_card_was_changed_meanwhile() {
    for hard in [false, true] {
        let mut before = claimed(&new_subscription(10, "2026-03-01"));
        before.failed_attempts = 3;
        before.payment_method = card("pm_card_mastercard");
        let after = settled(&before, &declined(hard), &Policy::default(), "2026-03-15").subscription;
        assert_eq!((after.status, after.failed_attempts), (Status::PastDue, 0));
        assert_eq!((after.next_payment_on, after.attempt_seq), (Some(date("2026-03-16")), 1));
    }
}

#[test]
fn settle_of_a_rejection_plans_a_retry_tomorrow_and_counts_no_decline() {
    let before = claimed(&new_subscription(10, "2026-03-01"));
    let rejected = Outcome::Rejected { code: "resource_missing".to_owned() };
    let after = settled(&before, &rejected, &Policy::default(), "2026-03-12");
    assert_eq!((after.subscription.status, after.subscription.failed_attempts), (Status::Active, 0));
    assert_eq!(after.subscription.next_payment_on, Some(date("2026-03-13")));
    assert_eq!(after.record.unwrap().code, "resource_missing");
}

#[test]
fn settle_of_a_stopped_subscription_keeps_it_stopped_and_out_of_the_index() {
    for stop in [paused, |s: &Subscription| cancelled(s).subscription] {
        let stopped = stop(&claimed(&new_subscription(10, "2026-03-01")));
        assert_eq!(stopped.next_payment_on, Some(date("2026-03-10")), "open: it stays in the index");
        for outcome in
            [paid(&stopped), declined(false), declined(true), Outcome::Dropped, Outcome::Rejected { code: "x".into() }]
        {
            let after = settled(&stopped, &outcome, &Policy::default(), "2026-03-10").subscription;
            assert_eq!(
                (after.status, after.next_payment_on, after.next_reminder_on),
                (stopped.status, None, None),
                "{outcome:?}"
            );
        }
        let paid = settled(&stopped, &paid(&stopped), &Policy::default(), "2026-03-10");
        assert_eq!(paid.receipt.unwrap().due_on, date("2026-03-10"), "what was paid is receipted all the same");
    }
}

#[test]
fn settle_as_dropped_is_refused_when_the_customer_has_resumed() {
    let resumed = claimed(&new_subscription(10, "2026-03-01"));
    let held = resumed.attempt.as_ref().unwrap();
    let (outcome, policy, day) = (Outcome::Dropped, Policy::default(), "2026-03-10");
    assert_eq!(settle(&resumed, held, &outcome, &policy, date(day), morning(day)), Settled::StaysOpen);
}

#[test]
fn settle_of_what_the_gateway_did_not_make_is_the_holders_alone() {
    let ours = claimed(&new_subscription(10, "2026-03-01"));
    let held = ours.attempt.clone().unwrap();
    let elsewhere = Attempt { held_by: Token(Ulid::from_parts(9, 9)), ..held.clone() };
    let taken_over = Subscription { attempt: Some(elsewhere), ..ours.clone() };
    let stopped = |subscription: &Subscription| Subscription { status: Status::Paused, ..subscription.clone() };
    let settle = |stored: &Subscription, outcome: &Outcome| {
        settle(stored, &held, outcome, &Policy::default(), date("2026-03-11"), morning("2026-03-11"))
    };
    let rejected = Outcome::Rejected { code: "resource_missing".to_owned() };
    assert!(matches!(settle(&ours, &rejected), Settled::Write(_)));
    assert!(matches!(settle(&stopped(&ours), &Outcome::Dropped), Settled::Write(_)));
    // It may be charged there at this moment: another attempt would be a second charge.
    assert_eq!(settle(&taken_over, &rejected), Settled::StaysOpen);
    assert_eq!(settle(&stopped(&taken_over), &Outcome::Dropped), Settled::StaysOpen);
    for final_outcome in [paid(&taken_over), declined(true), declined(false)] {
        assert!(matches!(settle(&taken_over, &final_outcome), Settled::Write(_)), "{final_outcome:?}");
    }
}

#[test]
fn settle_of_an_attempt_is_made_once() {
    let before = claimed(&new_subscription(10, "2026-03-01"));
    let (outcome, policy) = (paid(&before), Policy::default());
    let after = settled(&before, &outcome, &policy, "2026-03-10").subscription;
    let held = before.attempt.as_ref().unwrap();
    for stored in [&after, &claimed(&after)] {
        assert_eq!(
            settle(stored, held, &outcome, &policy, date("2026-03-11"), morning("2026-03-11")),
            Settled::Already
        );
    }
}

#[test]
fn remind_is_due_from_the_lead_until_the_due_date() {
    let subscription = new_subscription(31, "2026-02-28");
    let owed = Reminding::Send(Reminder { due_on: date("2026-03-31"), amount: subscription.price });
    for (day, expected) in [
        ("2026-03-23", Reminding::NotDue),
        ("2026-03-24", owed),
        ("2026-03-31", owed),
        ("2026-04-01", Reminding::Missed),
    ] {
        assert_eq!(remind(&subscription, date(day)), expected, "{day}");
    }
    assert_eq!(remind(&claimed(&subscription), date("2026-03-31")), Reminding::Drop, "it is being paid");
    let past_due = Subscription { status: Status::PastDue, ..subscription };
    assert_eq!(remind(&past_due, date("2026-03-24")), Reminding::Drop);
}

#[test]
fn mark_reminded_reminds_again_when_the_amount_was_changed_after_sending() {
    let before = new_subscription(31, "2026-02-28");
    let sent = Reminder { due_on: before.due_on, amount: before.price };
    let (today, now) = (date("2026-03-24"), morning("2026-03-24"));
    let marked = mark_reminded(&before, Some(sent), today, now);
    assert_eq!((marked.next_reminder_on, marked.reminded_for), (None, Some(date("2026-03-31"))));
    let dearer = Subscription { price: before.price.currency().price(1599).unwrap(), ..before.clone() };
    assert_eq!(mark_reminded(&dearer, Some(sent), today, now).next_reminder_on, before.next_reminder_on);
}

#[test]
fn settle_of_a_success_states_what_the_gateway_charged() {
    // An earlier attempt of the month succeeded after all: what it was charged is on its record, not on this attempt.
    let before = claimed(&new_subscription(10, "2026-03-01"));
    let Outcome::Succeeded(payment) = paid(&before) else { panic!() };
    let other = payment.amount.currency().price(1_199).unwrap();
    let outcome = Outcome::Succeeded(Payment { amount: other, attempt_no: 7, ..payment });
    let receipt = settled(&before, &outcome, &Policy::default(), "2026-03-10").receipt.unwrap();
    assert_eq!((receipt.amount, before.attempt.unwrap().amount.minor()), (other, 1_299));
}

#[test]
fn resolve_counts_a_decline_only_for_its_own_attempt_and_a_success_for_any() {
    let before = claimed(&Subscription { attempt_seq: 1, ..new_subscription(10, "2026-03-01") });
    let attempt = before.attempt.clone().unwrap();
    assert_eq!(attempt.no, 2);
    let Outcome::Succeeded(payment) = paid(&before) else { panic!() };
    let Outcome::Declined(said) = declined(false) else { panic!() };
    let known = |attempt_no, status: PaymentStatus| vec![Payment { attempt_no, status, ..payment.clone() }];
    let judge = |known: &[Payment]| resolve(&before, &attempt, known, attempt.claimed_at);
    assert_eq!(judge(&known(1, PaymentStatus::Declined(said.clone()))), Resolution::ChargeAgain, "the first try's");
    let own = judge(&known(2, PaymentStatus::Declined(said.clone())));
    assert_eq!(own, Resolution::Settle(Outcome::Declined(said)));
    assert_eq!(judge(&known(1, PaymentStatus::Processing)), Resolution::Processing);
    assert!(matches!(judge(&known(1, PaymentStatus::Succeeded)), Resolution::Settle(Outcome::Succeeded(_))));
    let april = |mut payment: Payment| {
        payment.due_on = date("2026-04-10");
        vec![payment]
    };
    assert_eq!(judge(&april(payment.clone())), Resolution::ChargeAgain, "another month's");
    let moved = Payment { due_on: date("2026-03-31"), ..payment };
    assert!(matches!(judge(&[moved]), Resolution::Settle(Outcome::Succeeded(_))), "the same month, on another day");
}

#[test]
fn declines_end_unpaid_28_days_after_the_first_whatever_cards_are_tried() {
    let mut subscription = new_subscription(10, "2026-03-01");
    let mut statuses = Vec::new();
    for (n, day) in ["2026-03-10", "2026-03-20", "2026-03-30", "2026-04-06", "2026-04-07"].into_iter().enumerate() {
        let method = card(if n % 2 == 0 { "pm_card_a" } else { "pm_card_b" });
        let changes = billing::Changes { payment_method: Some(method), ..Default::default() };
        subscription = subscription.change(&changes, LEAD(), date(day)).unwrap();
        subscription = settled(&claimed(&subscription), &declined(false), &Policy::default(), day).subscription;
        statuses.push(subscription.status);
    }
    use Status::{PastDue, Unpaid};
    assert_eq!(statuses, [PastDue, PastDue, PastDue, PastDue, Unpaid], "on the 28th day");
    // A card that is changed while the old one is tried does not start afresh either.
    let owed = Subscription { status: PastDue, next_payment_on: Some(date("2026-05-01")), ..subscription.clone() };
    let late = Subscription { payment_method: card("pm_card_c"), ..claimed(&owed) };
    assert_eq!(settled(&late, &declined(false), &Policy::default(), "2026-05-01").subscription.status, Unpaid);
    // Paid at last, the next month has its own 28 days.
    let revived = claimed(&Subscription { next_payment_on: Some(date("2026-05-02")), ..owed });
    let next = settled(&revived, &paid(&revived), &Policy::default(), "2026-05-02").subscription;
    assert_eq!((next.status, next.first_declined_on), (Status::Active, None));
}

#[test]
fn rejections_count_as_soft_declines_from_the_third_in_a_row() {
    let mut subscription = new_subscription(10, "2026-03-01");
    let rejected = Outcome::Rejected { code: "resource_missing".to_owned() };
    let mut seen = Vec::new();
    for day in date("2026-03-10").iter_days().take(12) {
        if subscription.next_payment_on.is_none_or(|on| on > day) {
            continue;
        }
        let settlement = settled(&claimed(&subscription), &rejected, &Policy::default(), &day.to_string());
        let outcome = settlement.record.unwrap().outcome;
        subscription = settlement.subscription;
        seen.push((day.to_string(), outcome, subscription.status));
    }
    use AttemptEnd::{Declined, Rejected};
    use Status::{Active, PastDue, Unpaid};
    let expected = [
        ("2026-03-10", Rejected, Active),
        ("2026-03-11", Rejected, Active),
        ("2026-03-12", Declined, PastDue),
        ("2026-03-13", Declined, PastDue),
        ("2026-03-15", Declined, PastDue),
        ("2026-03-17", Declined, PastDue),
        ("2026-03-19", Declined, Unpaid),
    ];
    assert_eq!(seen, expected.map(|(day, outcome, status)| (day.to_owned(), outcome, status)));
    let other = billing::Changes { payment_method: Some(card("pm_card_mastercard")), ..Default::default() };
    let revived = subscription.change(&other, LEAD(), date("2026-03-21")).unwrap();
    assert_eq!(revived.rejections, 0, "another card begins anew");
}
