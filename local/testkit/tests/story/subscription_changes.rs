//! Tests of changes of a subscription: the payment day, the price, the card, and the end of the subscription.

use billing::{
    ChangeRefusal, PaymentDay, Policy, Subscription, SubscriptionChanges, SubscriptionStatus, SubscriptionTerms,
};
use store::{ChangeOutcome, Paging};

use crate::lifecycle::{LEAD, dates, decline_outcome, settle_attempt, success_outcome, with_open_attempt};
use clock::Clock as _;

use crate::world::{World, billing_time, card, date, new_subscription, nonzero_counts, subscription_of_acme};

/// Returns `subscription` after the customer made `changes` on the day `today`.
fn apply_changes(subscription: &Subscription, changes: SubscriptionChanges, today: &str) -> Subscription {
    subscription.apply_changes(&changes, LEAD(), date(today)).unwrap()
}

/// Returns `subscription` after a change of its payment day to `day` on the day `today`.
pub fn change_payment_day(subscription: &Subscription, day: i64, today: &str) -> Subscription {
    apply_changes(
        subscription,
        SubscriptionChanges { payment_day: Some(day.try_into().unwrap()), ..SubscriptionChanges::default() },
        today,
    )
}

/// Returns `subscription` after a change of its card to the test card `name` on the day `today`.
fn change_card(subscription: &Subscription, name: &str, today: &str) -> Subscription {
    apply_changes(
        subscription,
        SubscriptionChanges { payment_method: Some(card(name)), ..SubscriptionChanges::default() },
        today,
    )
}

#[test]
fn new_payment_day_moves_the_due_date_only_if_old_and_new_date_are_in_the_future() {
    for (today, new_day, due_on) in [
        ("2026-03-05", 20, "2026-03-20"),
        ("2026-03-05", 31, "2026-03-31"),
        ("2026-03-05", 6, "2026-03-06"),
        // The new payment day is today or in the past, so it applies from the next period.
        ("2026-03-05", 5, "2026-03-10"),
        ("2026-03-05", 1, "2026-03-10"),
        // The current due date is today or in the past, so it does not change.
        ("2026-03-10", 20, "2026-03-10"),
        ("2026-03-12", 20, "2026-03-10"),
    ] {
        let before = new_subscription(10, "2026-03-01");
        let moved = change_payment_day(&before, new_day, today);
        assert_eq!(
            (moved.due_on, moved.next_payment_on),
            (date(due_on), Some(date(due_on))),
            "to {new_day} on {today}"
        );
        let next = with_open_attempt(&moved);
        let next = settle_attempt(&next, &success_outcome(&next), &Policy::default(), due_on).subscription;
        let new_day: PaymentDay = new_day.try_into().unwrap();
        assert_eq!(next.due_on, new_day.due_in("2026-04".parse().unwrap()), "the new payment day applies in April");
        assert_eq!(
            (next.payment_day, next.waiting_terms),
            (new_day, vec![]),
            "no terms are pending after the first payment"
        );
    }
    let open = with_open_attempt(&new_subscription(10, "2026-03-01"));
    let moved = change_payment_day(&open, 20, "2026-03-05");
    assert_eq!(moved.due_on, date("2026-03-10"), "the due date of an open attempt stays");
}

#[test]
fn change_of_price_or_date_after_the_reminder_causes_another_reminder() {
    let reminded = Subscription {
        next_reminder_on: None,
        reminded_for: Some(date("2026-03-31")),
        ..new_subscription(31, "2026-02-28")
    };
    let raise_price = |s: &Subscription, today| {
        apply_changes(s, SubscriptionChanges { amount: Some(1599), ..SubscriptionChanges::default() }, today)
    };
    assert_eq!(dates(&raise_price(&reminded, "2026-03-25")), ["2026-03-31", "2026-03-31", "2026-03-24"]);
    assert_eq!(dates(&raise_price(&reminded, "2026-04-01"))[2], "-", "the due date has passed");
    assert_eq!(dates(&change_payment_day(&reminded, 30, "2026-03-25")), ["2026-03-30", "2026-03-30", "2026-03-23"]);
    let same = apply_changes(
        &reminded,
        SubscriptionChanges { amount: Some(1299), ..SubscriptionChanges::default() },
        "2026-03-25",
    );
    assert_eq!(same, reminded, "a change to the same price changes nothing");
    let open = raise_price(&with_open_attempt(&reminded), "2026-03-31");
    let amount = open.attempt.unwrap().amount.minor();
    assert_eq!((open.next_reminder_on, amount), (None, 1299), "the new price applies from the next period");
    let zero = reminded.apply_changes(
        &SubscriptionChanges { amount: Some(0), ..SubscriptionChanges::default() },
        LEAD(),
        date("2026-03-25"),
    );
    assert!(matches!(zero, Err(ChangeRefusal::Amount(_))));
}

#[test]
fn planned_payments_have_due_payment_and_reminder_dates() {
    let rows = |s: &Subscription, today: &str, months| {
        let row = |p: &billing::PlannedPayment| {
            format!("{} {} {}", p.due_on, p.payment_on, p.reminder_on.map_or("-".to_owned(), |on| on.to_string()))
        };
        s.planned_payments(&Policy::default(), date(today)).take(months).map(|p| row(&p)).collect::<Vec<_>>()
    };
    let active = new_subscription(31, "2026-01-15");
    assert_eq!(
        rows(&active, "2026-01-20", 3),
        ["2026-01-31 2026-01-31 2026-01-24", "2026-02-28 2026-02-28 2026-02-21", "2026-03-31 2026-03-31 2026-03-24"]
    );
    // Three months are owed. One of them is charged per day.
    assert_eq!(
        rows(&active, "2026-04-02", 4),
        [
            "2026-01-31 2026-04-02 -",
            "2026-02-28 2026-04-03 -",
            "2026-03-31 2026-04-04 -",
            "2026-04-30 2026-04-30 2026-04-23"
        ]
    );
    let ending = Subscription { cancel_from: Some("2026-03".parse().unwrap()), ..active.clone() };
    assert_eq!(
        rows(&ending, "2026-01-20", 12).len(),
        2,
        "no payment is planned from the month in which the subscription ends"
    );
    for status in [SubscriptionStatus::Paused, SubscriptionStatus::Unpaid, SubscriptionStatus::Cancelled] {
        assert!(rows(&Subscription { status, ..active.clone() }, "2026-01-20", 12).is_empty());
    }
    assert!(rows(&active.pause(date("2026-01-20")).unwrap(), "2026-01-20", 12).is_empty());
}

#[test]
fn new_card_makes_the_owed_month_payable_and_waives_the_unpaid_months() {
    let active = new_subscription(31, "2026-01-15");
    let failed = with_open_attempt(&active);
    let past_due = settle_attempt(&failed, &decline_outcome(false), &Policy::default(), "2026-01-31").subscription;
    let revived = change_card(&past_due, "pm_card_mastercard", "2026-01-31");
    assert_eq!(
        (revived.status, revived.next_payment_on, revived.failed_attempts),
        (SubscriptionStatus::PastDue, Some(date("2026-01-31")), 0)
    );
    assert_eq!(change_card(&past_due, "pm_card_visa", "2026-01-31"), past_due, "the same card changes nothing");

    let unpaid = settle_attempt(&failed, &decline_outcome(true), &Policy::default(), "2026-01-31").subscription;
    assert_eq!((unpaid.status, unpaid.unpaid_since), (SubscriptionStatus::Unpaid, Some(date("2026-01-31"))));
    for (today, next_on, waived) in [
        ("2026-02-01", "2026-02-28", vec![]),
        ("2026-02-28", "2026-03-31", vec!["2026-02-28"]),
        ("2026-05-05", "2026-05-31", vec!["2026-02-28", "2026-03-31", "2026-04-30"]),
    ] {
        let revived = change_card(&unpaid, "pm_card_mastercard", today);
        assert_eq!(
            (revived.status, revived.due_on),
            (SubscriptionStatus::PastDue, date("2026-01-31")),
            "January is still owed"
        );
        let next_in_schedule = revived.planned_payments(&Policy::default(), date(today)).nth(1).unwrap().due_on;
        let open = with_open_attempt(&revived);
        let settlement = settle_attempt(&open, &success_outcome(&open), &Policy::default(), today);
        let after = settlement.subscription;
        assert_eq!(
            (after.status, after.due_on, after.unpaid_since),
            (SubscriptionStatus::Active, date(next_on), None),
            "{today}"
        );
        assert_eq!(next_in_schedule, after.due_on, "the planned payments predicted the next due date");
        let recorded: Vec<String> = settlement.waived.iter().map(|f| f.due_on.to_string()).collect();
        assert_eq!(recorded, waived, "revived on {today}");
    }
}

#[tokio::test]
async fn ending_subscription_is_cancelled_on_the_due_date_without_a_charge() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-02-15");
    world.store(&subscription).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("paid", 1)]);
    world.change_subscription(&subscription, |s| s.cancel_at_period_end(date("2026-03-20")).unwrap()).await;
    assert_eq!(
        nonzero_counts(&world.run_reminders("2026-04-05").await),
        [],
        "no reminder is sent, because no payment will follow"
    );
    assert_eq!(nonzero_counts(&world.run_payments("2026-04-10").await), [("skipped", 1)]);
    let ended = world.load(&subscription).await;
    assert_eq!((ended.status, ended.next_payment_on, ended.attempt), (SubscriptionStatus::Cancelled, None, None));
    assert_eq!(nonzero_counts(&world.run_payments("2026-05-10").await), []);
    assert_eq!(world.charged_due_dates(), ["2026-03-10"]);
}

#[tokio::test]
async fn unpaid_subscription_is_charged_after_a_change_of_card() {
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_visa_chargeDeclinedLostCard"),
        ..new_subscription(31, "2026-01-15")
    };
    world.store(&subscription).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-01-31").await), [("declined", 1)]);
    assert_eq!(
        nonzero_counts(&world.run_payments("2026-02-28").await),
        [],
        "an unpaid subscription is not in the payment index"
    );
    world.change_subscription(&subscription, |s| change_card(s, "pm_card_visa", "2026-04-05")).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-04-06").await), [("paid", 1)]);
    assert_eq!(nonzero_counts(&world.run_payments("2026-04-30").await), [("paid", 1)]);
    assert_eq!(world.charged_due_dates(), ["2026-01-31", "2026-04-30"]);
    let waived = world.table.scan().await.unwrap();
    let mut waived: Vec<String> = waived
        .iter()
        .filter_map(|item| item["SK"].as_s().ok()?.strip_prefix("WAV#").map(|sk| sk[..10].to_owned()))
        .collect();
    waived.sort();
    assert_eq!(waived, ["2026-02-28", "2026-03-31"]);
}

#[tokio::test]
async fn change_is_recomputed_after_a_write_conflict() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    let (other, raced) = (world.table.clone(), std::cell::Cell::new(false));
    let seen = std::cell::RefCell::new(Vec::new());
    let changed = world.table.change_subscription(
        &subscription.account,
        subscription.id,
        None,
        |_| String::new(),
        |s| {
            seen.borrow_mut().push(s.version);
            if !raced.replace(true) {
                // Another writer changes the item between the read and the write of this change.
                let renamed = Subscription { product_name: "Gold plan II".parse().unwrap(), ..s.clone() };
                let (other, s) = (other.clone(), s.clone());
                let write = async move { other.update_subscription(&s, &renamed).await.unwrap() };
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(write)
                    });
                });
            }
            s.pause(date("2026-03-02"))
        },
    );
    let ChangeOutcome::Applied(written) = changed.await.unwrap() else { panic!() };
    assert_eq!(
        (written.status, written.product_name.as_str(), written.version),
        (SubscriptionStatus::Paused, "Gold plan II", 3)
    );
    assert_eq!(seen.into_inner(), [1, 2]);
    assert_eq!(world.load(&subscription).await, *written);
}

#[tokio::test]
async fn list_continues_at_its_cursor_and_ends_without_a_cursor() {
    let world = World::new().await;
    for day in 1..=5 {
        world.store(&subscription_of_acme(day, "2026-02-28")).await;
    }
    let account = subscription_of_acme(1, "2026-02-28").account;
    let (mut after, mut sizes, mut days) = (None, Vec::new(), Vec::new());
    loop {
        let paging = Paging { after: after.clone(), limit: Some(2) };
        let page = world.table.get_subscriptions_by_account(&account, &paging).await.unwrap();
        sizes.push(page.items.len());
        days.extend(page.items.iter().map(|s| u8::from(s.payment_day)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((sizes, days), (vec![2, 2, 1], vec![1, 2, 3, 4, 5]));
    let exactly = Paging { after: None, limit: Some(5) };
    assert_eq!(world.table.get_subscriptions_by_account(&account, &exactly).await.unwrap().next, None);
    for day in ["2026-03-05", "2026-04-05", "2026-05-05"] {
        world.run_payments(day).await;
    }
    let paging = Paging { after: None, limit: Some(4) };
    let first = world.table.get_receipts_by_account(&account, &paging, billing_time("2026-05-05")).await.unwrap();
    let rest = Paging { after: first.next.clone(), limit: Some(100) };
    let rest = world.table.get_receipts_by_account(&account, &rest, billing_time("2026-05-05")).await.unwrap();
    let all = world.table.get_receipts_by_account(&account, &Paging::all(), billing_time("2026-05-05")).await.unwrap();
    assert_eq!([first.items, rest.items].concat(), all.items);
    assert_eq!((all.items.len(), rest.next), (15, None));
}

/// Returns the pending terms, which apply from a later month: for each of them the first month, the payment day and the
/// price (in minor units).
fn pending_terms(subscription: &Subscription) -> Vec<(String, u8, i64)> {
    let to_tuple = |terms: &SubscriptionTerms| (terms.from.to_string(), terms.payment_day.into(), terms.price.minor());
    subscription.waiting_terms.iter().map(to_tuple).collect()
}

/// Returns `subscription` after a change of its price to `minor` minor units on the day `today`.
fn change_price(subscription: &Subscription, minor: i64, today: &str) -> Subscription {
    apply_changes(subscription, SubscriptionChanges { amount: Some(minor), ..SubscriptionChanges::default() }, today)
}

#[test]
fn new_price_applies_from_the_first_month_that_is_not_due_yet() {
    let active = new_subscription(10, "2026-03-01");
    let past_due = Subscription { status: SubscriptionStatus::PastDue, failed_attempts: 1, ..active.clone() };
    let unpaid = Subscription {
        status: SubscriptionStatus::Unpaid,
        failed_attempts: 5,
        next_payment_on: None,
        ..active.clone()
    };
    for (case, subscription, today, price_now, expected) in [
        ("the day before the due date", &active, "2026-03-09", 1599, &[][..]),
        ("on the due date", &active, "2026-03-10", 1299, &[("2026-04", 10, 1599)]),
        ("the day after the due date", &active, "2026-03-11", 1299, &[("2026-04", 10, 1599)]),
        ("two months late", &active, "2026-05-10", 1299, &[("2026-06", 10, 1599)]),
        ("past due", &past_due, "2026-03-12", 1299, &[("2026-04", 10, 1599)]),
        ("unpaid for months", &unpaid, "2026-09-02", 1299, &[("2026-09", 10, 1599)]),
        ("with an open attempt", &with_open_attempt(&active), "2026-03-10", 1299, &[("2026-04", 10, 1599)]),
    ] {
        let raised = change_price(subscription, 1599, today);
        assert_eq!(raised.price.minor(), price_now, "{case}");
        let expected: Vec<_> = expected.iter().map(|(from, day, price)| ((*from).to_owned(), *day, *price)).collect();
        assert_eq!(pending_terms(&raised), expected, "{case}");
        assert_eq!(change_price(&raised, 1299, today), *subscription, "{case}: the change can be undone");
    }
}

#[test]
fn new_price_and_new_payment_day_may_apply_from_different_months() {
    // On March 15 the payment on March 20 is not due yet, so the new price applies at once. The new payment day, March
    // 5, has passed, so it applies from April.
    let active = new_subscription(20, "2026-03-01");
    let both =
        SubscriptionChanges { amount: Some(1599), payment_day: 5.try_into().ok(), ..SubscriptionChanges::default() };
    let changed = apply_changes(&active, both, "2026-03-15");
    assert_eq!((changed.price.minor(), u8::from(changed.payment_day)), (1599, 20));
    assert_eq!(pending_terms(&changed), [("2026-04".to_owned(), 5, 1599)]);
    // A later change of the price also changes the pending terms. The month that became due between the two changes
    // keeps its price.
    let raised = change_price(&changed, 1999, "2026-03-21");
    assert_eq!((raised.price.minor(), pending_terms(&raised)), (1599, vec![("2026-04".to_owned(), 5, 1999)]));
    let rows: Vec<_> = raised
        .planned_payments(&Policy::default(), date("2026-03-21"))
        .take(3)
        .map(|planned| (planned.due_on.to_string(), planned.amount.minor()))
        .collect();
    let expected = [("2026-03-20", 1599), ("2026-04-05", 1999), ("2026-05-05", 1999)];
    assert_eq!(rows, expected.map(|(due_on, minor)| (due_on.to_owned(), minor)));
}

#[tokio::test]
async fn owed_month_keeps_its_due_date_and_price() {
    // The payment for January is declined, and the subscription becomes unpaid. The price is raised twice. The customer
    // adds a new card in September.
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_visa_chargeDeclinedLostCard"),
        ..new_subscription(10, "2026-01-05")
    };
    world.store(&subscription).await;
    world.run_payments("2026-01-10").await;
    world.change_subscription(&subscription, |s| change_price(s, 1599, "2026-03-01")).await;
    world.change_subscription(&subscription, |s| change_price(s, 1999, "2026-08-11")).await;
    world.change_subscription(&subscription, |s| change_card(s, "pm_card_visa", "2026-09-15")).await;
    for day in ["2026-09-15", "2026-09-16", "2026-10-10"] {
        world.run_payments(day).await;
    }
    let expected = [("2026-01-10", 1299), ("2026-10-10", 1999)];
    assert_eq!(world.receipt_amounts(&subscription).await, expected.map(|(due_on, minor)| (due_on.to_owned(), minor)));
    let waived = world
        .table
        .get_payment_records(&subscription.account, subscription.id, world.clock.now())
        .await
        .unwrap()
        .waived;
    assert_eq!(waived.len(), 8, "the months from February to September are waived");
}
