//! Tests of the domain rules for payments, declines and reminders. The helpers at the start are also for other tests.

use billing::{
    AfterLastRetry, Attempt, AttemptEnd, AttemptOutcome, ClaimToken, Decline, InDoubtResolution, LeadDays, NotSettled,
    Payment, PaymentStatus, Policy, Reminder, ReminderDecision, Settlement, Subscription, SubscriptionStatus,
    decide_reminder, mark_reminder_processed, resolve_attempt_in_doubt, settle_open_attempt,
};
use ulid::Ulid;

use crate::world::{billing_time, cancel, card, date, new_subscription, pause};

/// Returns the default number of days between a reminder and its payment.
pub const LEAD: fn() -> LeadDays = LeadDays::default;

/// Returns `subscription` with an open attempt, as after a claim on its next payment date.
pub fn with_open_attempt(subscription: &Subscription) -> Subscription {
    let no = subscription.attempt_seq + 1;
    let now = billing_time(&subscription.next_payment_on.unwrap().to_string());
    let attempt = Attempt {
        table: None,
        no,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: now,
        leased_until: now + chrono::TimeDelta::minutes(20),
        claim_token: ClaimToken(Ulid::from_parts(9, u128::from(no))),
    };
    Subscription { attempt: Some(attempt), attempt_seq: no, ..subscription.clone() }
}

/// Returns the outcome of the open attempt of `claimed` if the attempt succeeds.
pub fn success_outcome(claimed: &Subscription) -> AttemptOutcome {
    let attempt = claimed.attempt.as_ref().unwrap();
    AttemptOutcome::Succeeded(Payment {
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

/// Returns the outcome of a declined attempt. A hard decline is permanent.
pub fn decline_outcome(hard: bool) -> AttemptOutcome {
    AttemptOutcome::Declined(Decline { code: "card_declined".to_owned(), hard })
}

/// Settles the open attempt of `subscription` with `outcome` on `day`.
pub fn settle_attempt(subscription: &Subscription, outcome: &AttemptOutcome, policy: &Policy, day: &str) -> Settlement {
    let attempt = subscription.attempt.as_ref().unwrap();
    settle_open_attempt(subscription, attempt, outcome, policy, date(day), billing_time(day)).unwrap()
}

/// Returns the due date, the next payment date and the next reminder date as texts. `-` is a date that is not set.
pub fn dates(subscription: &Subscription) -> [String; 3] {
    let text = |on: Option<chrono::NaiveDate>| on.map_or("-".to_owned(), |on| on.to_string());
    [subscription.due_on.to_string(), text(subscription.next_payment_on), text(subscription.next_reminder_on)]
}

#[test]
fn success_moves_the_due_date_to_the_payment_day_of_the_next_month() {
    // `expected` has the dates of the subscription after the success, as `dates` returns them.
    for (payment_day, created, charged_on, expected) in [
        (31, "2026-01-30", "2026-01-31", ["2026-02-28", "2026-02-28", "2026-02-21"]),
        (31, "2026-02-27", "2026-02-28", ["2026-03-31", "2026-03-31", "2026-03-24"]),
        (31, "2028-01-31", "2028-02-29", ["2028-03-31", "2028-03-31", "2028-03-24"]),
        (1, "2026-11-30", "2026-12-01", ["2027-01-01", "2027-01-01", "2026-12-25"]),
        // In the next three cases, the charge is one day, exactly one month, and two months late. The next payment date
        // is at least one day after the charge, even if the new due date is not. In that case there is no reminder.
        (15, "2026-03-01", "2026-03-16", ["2026-04-15", "2026-04-15", "2026-04-08"]),
        (15, "2026-03-01", "2026-04-15", ["2026-04-15", "2026-04-16", "-"]),
        (15, "2026-03-01", "2026-05-20", ["2026-04-15", "2026-05-21", "-"]),
    ] {
        let before = with_open_attempt(&new_subscription(payment_day, created));
        let settlement = settle_attempt(&before, &success_outcome(&before), &Policy::default(), charged_on);
        let new_dates = dates(&settlement.subscription);
        assert_eq!(new_dates, expected, "payment day {payment_day}, created {created}, charged on {charged_on}");
        let receipt = settlement.receipt.unwrap();
        assert_eq!((receipt.due_on, receipt.amount), (before.due_on, before.price));
        assert_eq!(settlement.subscription.attempt, None);
    }
}

#[test]
fn soft_declines_are_retried_by_the_schedule_until_the_subscription_is_unpaid() {
    let mut subscription = new_subscription(10, "2026-03-01");
    let mut days = vec!["2026-03-10".to_owned()];
    while let Some(on) = subscription.next_payment_on {
        let day = on.to_string();
        subscription =
            settle_attempt(&with_open_attempt(&subscription), &decline_outcome(false), &Policy::default(), &day)
                .subscription;
        days.extend(subscription.next_payment_on.map(|on| on.to_string()));
    }
    assert_eq!(days, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    assert_eq!((subscription.status, subscription.due_on), (SubscriptionStatus::Unpaid, date("2026-03-10")));
    assert_eq!((subscription.failed_attempts, subscription.attempt_seq), (5, 5));
}

#[test]
fn hard_decline_is_not_retried() {
    let before = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let unpaid = settle_attempt(&before, &decline_outcome(true), &Policy::default(), "2026-03-10");
    assert_eq!((unpaid.subscription.status, unpaid.subscription.next_payment_on), (SubscriptionStatus::Unpaid, None));
    assert_eq!(unpaid.record.unwrap().outcome, AttemptEnd::Declined);
    let strict = Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() };
    assert_eq!(
        settle_attempt(&before, &decline_outcome(true), &strict, "2026-03-10").subscription.status,
        SubscriptionStatus::Cancelled
    );
}

#[test]
fn decline_restarts_the_retries_if_the_card_was_changed_during_the_attempt() {
    for hard in [false, true] {
        let mut before = with_open_attempt(&new_subscription(10, "2026-03-01"));
        before.failed_attempts = 3;
        before.payment_method = card("pm_card_mastercard");
        let after = settle_attempt(&before, &decline_outcome(hard), &Policy::default(), "2026-03-15").subscription;
        assert_eq!((after.status, after.failed_attempts), (SubscriptionStatus::PastDue, 0));
        assert_eq!((after.next_payment_on, after.attempt_seq), (Some(date("2026-03-16")), 1));
    }
}

#[test]
fn rejection_is_retried_on_the_next_day_and_is_not_counted_as_a_decline() {
    let before = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let rejected = AttemptOutcome::Rejected { code: "resource_missing".to_owned() };
    let after = settle_attempt(&before, &rejected, &Policy::default(), "2026-03-12");
    assert_eq!((after.subscription.status, after.subscription.failed_attempts), (SubscriptionStatus::Active, 0));
    assert_eq!(after.subscription.next_payment_on, Some(date("2026-03-13")));
    assert_eq!(after.record.unwrap().code, "resource_missing");
}

#[test]
fn only_a_rejection_of_the_payment_method_counts_as_a_decline() {
    let before = Subscription { rejections: 7, ..with_open_attempt(&new_subscription(10, "2026-03-01")) };
    for (code, is_decline) in [
        ("resource_missing", true),
        ("payment_method_customer_decline", true),
        ("payment_method_invalid_parameter", false),
        ("payment_method_currency_mismatch", false),
        ("payment_method_unactivated", false),
        ("amount_too_small", false),
        ("amount_too_large", false),
        ("amount_not_representable", false),
        ("invalid_request_error", false),
        ("account_invalid", false),
        ("unknown_to_gateway", false),
        ("a_code_of_the_future", false),
    ] {
        let rejected = AttemptOutcome::Rejected { code: code.to_owned() };
        let after = settle_attempt(&before, &rejected, &Policy::default(), "2026-03-12");
        let expected = if is_decline { SubscriptionStatus::PastDue } else { SubscriptionStatus::Active };
        assert_eq!((after.subscription.status, after.record.unwrap().is_decline), (expected, is_decline), "{code}");
    }
}

#[test]
fn settled_attempt_keeps_a_stopped_subscription_stopped_and_removes_it_from_the_indexes() {
    for stop in [pause, |s: &Subscription| cancel(s).subscription] {
        let stopped = stop(&with_open_attempt(&new_subscription(10, "2026-03-01")));
        assert_eq!(stopped.next_payment_on, Some(date("2026-03-10")), "an open attempt stays in the payment index");
        for outcome in [
            success_outcome(&stopped),
            decline_outcome(false),
            decline_outcome(true),
            AttemptOutcome::Dropped,
            AttemptOutcome::Rejected { code: "x".into() },
        ] {
            let after = settle_attempt(&stopped, &outcome, &Policy::default(), "2026-03-10").subscription;
            assert_eq!(
                (after.status, after.next_payment_on, after.next_reminder_on),
                (stopped.status, None, None),
                "{outcome:?}"
            );
        }
        let paid = settle_attempt(&stopped, &success_outcome(&stopped), &Policy::default(), "2026-03-10");
        assert_eq!(paid.receipt.unwrap().due_on, date("2026-03-10"), "a success gets a receipt nevertheless");
    }
}

#[test]
fn attempt_is_not_dropped_after_the_customer_has_resumed_the_subscription() {
    let resumed = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let attempt = resumed.attempt.as_ref().unwrap();
    let (outcome, policy, day) = (AttemptOutcome::Dropped, Policy::default(), "2026-03-10");
    assert_eq!(
        settle_open_attempt(&resumed, attempt, &outcome, &policy, date(day), billing_time(day)),
        Err(NotSettled::StaysOpen)
    );
}

#[test]
fn only_the_worker_with_the_claim_may_reject_or_drop_an_attempt() {
    let own = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let attempt = own.attempt.clone().unwrap();
    let attempt_of_other = Attempt { claim_token: ClaimToken(Ulid::from_parts(9, 9)), ..attempt.clone() };
    let taken_over = Subscription { attempt: Some(attempt_of_other), ..own.clone() };
    let stopped =
        |subscription: &Subscription| Subscription { status: SubscriptionStatus::Paused, ..subscription.clone() };
    let settle = |stored: &Subscription, outcome: &AttemptOutcome| {
        settle_open_attempt(
            stored,
            &attempt,
            outcome,
            &Policy::default(),
            date("2026-03-11"),
            billing_time("2026-03-11"),
        )
    };
    let rejected = AttemptOutcome::Rejected { code: "resource_missing".to_owned() };
    settle(&own, &rejected).unwrap();
    settle(&stopped(&own), &AttemptOutcome::Dropped).unwrap();
    // Another worker has taken over the attempt and may be charging at this moment, so a new attempt could be a second
    // charge.
    assert_eq!(settle(&taken_over, &rejected), Err(NotSettled::StaysOpen));
    assert_eq!(settle(&stopped(&taken_over), &AttemptOutcome::Dropped), Err(NotSettled::StaysOpen));
    for final_outcome in [success_outcome(&taken_over), decline_outcome(true), decline_outcome(false)] {
        assert!(settle(&taken_over, &final_outcome).is_ok(), "{final_outcome:?}");
    }
}

#[test]
fn attempt_is_settled_only_once() {
    let before = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let (outcome, policy) = (success_outcome(&before), Policy::default());
    let after = settle_attempt(&before, &outcome, &policy, "2026-03-10").subscription;
    let attempt = before.attempt.as_ref().unwrap();
    for stored in [&after, &with_open_attempt(&after)] {
        assert_eq!(
            settle_open_attempt(stored, attempt, &outcome, &policy, date("2026-03-11"), billing_time("2026-03-11")),
            Err(NotSettled::AlreadySettled)
        );
    }
}

#[test]
fn reminder_is_sent_from_the_reminder_date_until_the_due_date() {
    let subscription = new_subscription(31, "2026-02-28");
    let send = ReminderDecision::Send(Reminder { due_on: date("2026-03-31"), amount: subscription.price });
    for (day, expected) in [
        ("2026-03-23", ReminderDecision::NotDue),
        ("2026-03-24", send),
        ("2026-03-31", send),
        ("2026-04-01", ReminderDecision::Missed),
    ] {
        assert_eq!(decide_reminder(&subscription, date(day)), expected, "{day}");
    }
    assert_eq!(
        decide_reminder(&with_open_attempt(&subscription), date("2026-03-31")),
        ReminderDecision::NotNeeded,
        "a payment attempt is open"
    );
    let past_due = Subscription { status: SubscriptionStatus::PastDue, ..subscription };
    assert_eq!(decide_reminder(&past_due, date("2026-03-24")), ReminderDecision::NotNeeded);
}

#[test]
fn price_change_while_a_reminder_is_sent_keeps_the_reminder_date_for_another_reminder() {
    let before = new_subscription(31, "2026-02-28");
    let sent = Reminder { due_on: before.due_on, amount: before.price };
    let (today, now) = (date("2026-03-24"), billing_time("2026-03-24"));
    let marked = mark_reminder_processed(&before, Some(sent), today, now);
    assert_eq!((marked.next_reminder_on, marked.reminded_for), (None, Some(date("2026-03-31"))));
    let raised = Subscription { price: before.price.currency().price(1599).unwrap(), ..before.clone() };
    assert_eq!(mark_reminder_processed(&raised, Some(sent), today, now).next_reminder_on, before.next_reminder_on);
}

#[test]
fn receipt_has_the_amount_that_the_gateway_charged() {
    // An earlier attempt of the same month succeeded late, with another amount than the current attempt.
    let before = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let AttemptOutcome::Succeeded(payment) = success_outcome(&before) else { panic!() };
    let other = payment.amount.currency().price(1_199).unwrap();
    let outcome = AttemptOutcome::Succeeded(Payment { amount: other, attempt_no: 7, ..payment });
    let receipt = settle_attempt(&before, &outcome, &Policy::default(), "2026-03-10").receipt.unwrap();
    assert_eq!((receipt.amount, before.attempt.unwrap().amount.minor()), (other, 1_299));
}

#[test]
fn resolve_uses_a_decline_only_for_its_own_attempt_but_a_success_of_any_attempt_of_the_month() {
    let before = with_open_attempt(&Subscription { attempt_seq: 1, ..new_subscription(10, "2026-03-01") });
    let attempt = before.attempt.clone().unwrap();
    assert_eq!(attempt.no, 2);
    let AttemptOutcome::Succeeded(payment) = success_outcome(&before) else { panic!() };
    let AttemptOutcome::Declined(decline) = decline_outcome(false) else { panic!() };
    let payments = |attempt_no, status: PaymentStatus| vec![Payment { attempt_no, status, ..payment.clone() }];
    let resolution = |payments: &[Payment]| resolve_attempt_in_doubt(&before, &attempt, payments, attempt.claimed_at);
    let earlier = resolution(&payments(1, PaymentStatus::Declined(decline.clone())));
    assert_eq!(
        earlier,
        InDoubtResolution::ChargeAgain,
        "the decline belongs to the first attempt, not to the open second attempt"
    );
    let own = resolution(&payments(2, PaymentStatus::Declined(decline.clone())));
    assert_eq!(own, InDoubtResolution::Settle(AttemptOutcome::Declined(decline)));
    assert_eq!(resolution(&payments(1, PaymentStatus::Processing)), InDoubtResolution::Processing);
    assert!(matches!(
        resolution(&payments(1, PaymentStatus::Succeeded)),
        InDoubtResolution::Settle(AttemptOutcome::Succeeded(_))
    ));
    let in_april = |mut payment: Payment| {
        payment.due_on = date("2026-04-10");
        vec![payment]
    };
    let other_month = resolution(&in_april(payment.clone()));
    assert_eq!(other_month, InDoubtResolution::ChargeAgain, "the payment is for another month");
    let other_day = Payment { due_on: date("2026-03-31"), ..payment };
    let same_month = resolution(&[other_day]);
    assert!(
        matches!(same_month, InDoubtResolution::Settle(AttemptOutcome::Succeeded(_))),
        "a payment of the same month counts, also with another due date"
    );
}

#[test]
fn subscription_is_unpaid_28_days_after_the_first_decline_even_with_new_cards() {
    let mut subscription = new_subscription(10, "2026-03-01");
    let mut statuses = Vec::new();
    for (n, day) in ["2026-03-10", "2026-03-20", "2026-03-30", "2026-04-06", "2026-04-07"].into_iter().enumerate() {
        let method = card(if n % 2 == 0 { "pm_card_a" } else { "pm_card_b" });
        let changes = billing::SubscriptionChanges { payment_method: Some(method), ..Default::default() };
        subscription = subscription.apply_changes(&changes, LEAD(), date(day)).unwrap();
        subscription =
            settle_attempt(&with_open_attempt(&subscription), &decline_outcome(false), &Policy::default(), day)
                .subscription;
        statuses.push(subscription.status);
    }
    use SubscriptionStatus::{PastDue, Unpaid};
    assert_eq!(
        statuses,
        [PastDue, PastDue, PastDue, PastDue, Unpaid],
        "unpaid on the 28th day after the first decline"
    );
    // A card change during an attempt does not restart the 28 days after which a subscription becomes unpaid.
    let owed = Subscription { status: PastDue, next_payment_on: Some(date("2026-05-01")), ..subscription.clone() };
    let changed_card = Subscription { payment_method: card("pm_card_c"), ..with_open_attempt(&owed) };
    assert_eq!(
        settle_attempt(&changed_card, &decline_outcome(false), &Policy::default(), "2026-05-01").subscription.status,
        Unpaid
    );
    // After a payment, the 28 days of the next month begin with the first decline of that month.
    let revived = with_open_attempt(&Subscription { next_payment_on: Some(date("2026-05-02")), ..owed });
    let next = settle_attempt(&revived, &success_outcome(&revived), &Policy::default(), "2026-05-02").subscription;
    assert_eq!((next.status, next.first_declined_on), (SubscriptionStatus::Active, None));
}

#[test]
fn third_consecutive_rejection_is_recorded_as_a_rejection_and_counts_as_a_soft_decline() {
    let mut subscription = new_subscription(10, "2026-03-01");
    let rejected = AttemptOutcome::Rejected { code: "resource_missing".to_owned() };
    let mut attempts = Vec::new();
    for day in date("2026-03-10").iter_days().take(12) {
        if subscription.next_payment_on.is_none_or(|on| on > day) {
            continue;
        }
        let settlement =
            settle_attempt(&with_open_attempt(&subscription), &rejected, &Policy::default(), &day.to_string());
        let record = settlement.record.unwrap();
        assert_eq!(record.outcome, AttemptEnd::Rejected);
        subscription = settlement.subscription;
        attempts.push((day.to_string(), record.is_decline, subscription.status));
    }
    use SubscriptionStatus::{Active, PastDue, Unpaid};
    let expected = [
        ("2026-03-10", false, Active),
        ("2026-03-11", false, Active),
        ("2026-03-12", true, PastDue),
        ("2026-03-13", true, PastDue),
        ("2026-03-15", true, PastDue),
        ("2026-03-17", true, PastDue),
        ("2026-03-19", true, Unpaid),
    ];
    assert_eq!(attempts, expected.map(|(day, is_decline, status)| (day.to_owned(), is_decline, status)));
    let other = billing::SubscriptionChanges { payment_method: Some(card("pm_card_mastercard")), ..Default::default() };
    let revived = subscription.apply_changes(&other, LEAD(), date("2026-03-21")).unwrap();
    assert_eq!(revived.rejections, 0, "a new card resets the number of consecutive rejections");
}
