//! What customers and operators do with a subscription, day by day.

use billing::{Changes, PaymentDay, Policy, Refusal, Status, Subscription, Terms};
use store::{Changed, Paging};

use crate::lifecycle::{LEAD, claimed, dates, declined, paid, settled};
use clock::Clock as _;

use crate::world::{World, card, counts, date, morning, new_subscription, of_acme};

fn change(subscription: &Subscription, changes: Changes, today: &str) -> Subscription {
    subscription.change(&changes, LEAD(), date(today)).unwrap()
}

pub fn to_day(subscription: &Subscription, day: i64, today: &str) -> Subscription {
    change(subscription, Changes { payment_day: Some(day.try_into().unwrap()), ..Changes::default() }, today)
}

fn to_card(subscription: &Subscription, name: &str, today: &str) -> Subscription {
    change(subscription, Changes { payment_method: Some(card(name)), ..Changes::default() }, today)
}

#[test]
fn change_of_payment_day_moves_the_due_date_only_while_old_and_new_are_ahead() {
    for (today, new_day, due_on) in [
        ("2026-03-05", 20, "2026-03-20"),
        ("2026-03-05", 31, "2026-03-31"),
        ("2026-03-05", 6, "2026-03-06"),
        // The new day is today or past: it counts from the next period.
        ("2026-03-05", 5, "2026-03-10"),
        ("2026-03-05", 1, "2026-03-10"),
        // The current due date has come: it stays.
        ("2026-03-10", 20, "2026-03-10"),
        ("2026-03-12", 20, "2026-03-10"),
    ] {
        let before = new_subscription(10, "2026-03-01");
        let moved = to_day(&before, new_day, today);
        assert_eq!(
            (moved.due_on, moved.next_payment_on),
            (date(due_on), Some(date(due_on))),
            "to {new_day} on {today}"
        );
        let next = claimed(&moved);
        let next = settled(&next, &paid(&next), &Policy::default(), due_on).subscription;
        let new_day: PaymentDay = new_day.try_into().unwrap();
        assert_eq!(next.due_on, new_day.due_in("2026-04".parse().unwrap()), "and April follows the new day");
        assert_eq!((next.payment_day, next.waiting_terms), (new_day, vec![]), "nothing waits any more");
    }
    let open = claimed(&new_subscription(10, "2026-03-01"));
    let moved = to_day(&open, 20, "2026-03-05");
    assert_eq!(moved.due_on, date("2026-03-10"), "an attempt was made for it");
}

#[test]
fn change_of_amount_or_date_after_the_reminder_is_reminded_again() {
    let reminded = Subscription {
        next_reminder_on: None,
        reminded_for: Some(date("2026-03-31")),
        ..new_subscription(31, "2026-02-28")
    };
    let dearer = |s: &Subscription, today| change(s, Changes { amount: Some(1599), ..Changes::default() }, today);
    assert_eq!(dates(&dearer(&reminded, "2026-03-25")), ["2026-03-31", "2026-03-31", "2026-03-24"]);
    assert_eq!(dates(&dearer(&reminded, "2026-04-01"))[2], "-", "its due date has passed");
    assert_eq!(dates(&to_day(&reminded, 30, "2026-03-25")), ["2026-03-30", "2026-03-30", "2026-03-23"]);
    let same = change(&reminded, Changes { amount: Some(1299), ..Changes::default() }, "2026-03-25");
    assert_eq!(same, reminded, "nothing changed");
    let open = dearer(&claimed(&reminded), "2026-03-31");
    assert_eq!((open.next_reminder_on, open.attempt.unwrap().amount.minor()), (None, 1299), "it counts from the next");
    let zero = reminded.change(&Changes { amount: Some(0), ..Changes::default() }, LEAD(), date("2026-03-25"));
    assert!(matches!(zero, Err(Refusal::Amount(_))));
}

#[test]
fn planned_lists_what_will_be_charged_and_when() {
    let rows = |s: &Subscription, today: &str, months| {
        let row = |p: &billing::Planned| {
            format!("{} {} {}", p.due_on, p.payment_on, p.reminder_on.map_or("-".to_owned(), |on| on.to_string()))
        };
        s.planned(LEAD(), date(today), months).iter().map(row).collect::<Vec<_>>()
    };
    let active = new_subscription(31, "2026-01-15");
    assert_eq!(
        rows(&active, "2026-01-20", 3),
        ["2026-01-31 2026-01-31 2026-01-24", "2026-02-28 2026-02-28 2026-02-21", "2026-03-31 2026-03-31 2026-03-24"]
    );
    // Owed since January, one a day.
    assert_eq!(
        rows(&active, "2026-04-02", 4),
        [
            "2026-01-31 2026-01-31 2026-01-24",
            "2026-02-28 2026-04-03 -",
            "2026-03-31 2026-04-04 -",
            "2026-04-30 2026-04-30 2026-04-23"
        ]
    );
    let ending = Subscription { cancel_from: Some("2026-03".parse().unwrap()), ..active.clone() };
    assert_eq!(rows(&ending, "2026-01-20", 12).len(), 2, "none from the month it ends in");
    for status in [Status::Paused, Status::Unpaid, Status::Cancelled] {
        assert!(rows(&Subscription { status, ..active.clone() }, "2026-01-20", 12).is_empty());
    }
    assert!(rows(&active.pause(date("2026-01-20")).unwrap(), "2026-01-20", 12).is_empty());
}

#[test]
fn change_of_card_makes_the_debt_payable_and_waives_the_unpaid_months() {
    let active = new_subscription(31, "2026-01-15");
    let failed = claimed(&active);
    let past_due = settled(&failed, &declined(false), &Policy::default(), "2026-01-31").subscription;
    let revived = to_card(&past_due, "pm_card_mastercard", "2026-01-31");
    assert_eq!(
        (revived.status, revived.next_payment_on, revived.failed_attempts),
        (Status::PastDue, Some(date("2026-01-31")), 0)
    );
    assert_eq!(to_card(&past_due, "pm_card_visa", "2026-01-31"), past_due, "the same card changes nothing");

    let unpaid = settled(&failed, &declined(true), &Policy::default(), "2026-01-31").subscription;
    assert_eq!((unpaid.status, unpaid.unpaid_since), (Status::Unpaid, Some(date("2026-01-31"))));
    for (today, next_on, waived) in [
        ("2026-02-01", "2026-02-28", vec![]),
        ("2026-02-28", "2026-03-31", vec!["2026-02-28"]),
        ("2026-05-05", "2026-05-31", vec!["2026-02-28", "2026-03-31", "2026-04-30"]),
    ] {
        let revived = to_card(&unpaid, "pm_card_mastercard", today);
        assert_eq!((revived.status, revived.due_on), (Status::PastDue, date("2026-01-31")), "January is owed still");
        let next_in_schedule = revived.planned(LEAD(), date(today), 2)[1].due_on;
        let open = claimed(&revived);
        let settlement = settled(&open, &paid(&open), &Policy::default(), today);
        let after = settlement.subscription;
        assert_eq!((after.status, after.due_on, after.unpaid_since), (Status::Active, date(next_on), None), "{today}");
        assert_eq!(next_in_schedule, after.due_on, "as the schedule said");
        let recorded: Vec<String> = settlement.waived.iter().map(|f| f.due_on.to_string()).collect();
        assert_eq!(recorded, waived, "revived on {today}");
    }
}

#[tokio::test]
async fn sweep_cancels_without_a_charge_what_ends_with_its_period() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-02-15");
    world.has(&subscription).await;
    assert_eq!(counts(&world.charge("2026-03-10").await), [("paid", 1)]);
    world.customer(&subscription, |s| s.cancel_at_period_end(date("2026-03-20")).unwrap()).await;
    assert_eq!(counts(&world.remind("2026-04-05").await), [], "there is nothing to remind of");
    assert_eq!(counts(&world.charge("2026-04-10").await), [("skipped", 1)]);
    let ended = world.stored(&subscription).await;
    assert_eq!((ended.status, ended.next_payment_on, ended.attempt), (Status::Cancelled, None, None));
    assert_eq!(counts(&world.charge("2026-05-10").await), []);
    assert_eq!(world.charged(), ["2026-03-10"]);
}

#[tokio::test]
async fn sweep_charges_an_unpaid_subscription_after_a_change_of_card() {
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_visa_chargeDeclinedLostCard"),
        ..new_subscription(31, "2026-01-15")
    };
    world.has(&subscription).await;
    assert_eq!(counts(&world.charge("2026-01-31").await), [("declined", 1)]);
    assert_eq!(counts(&world.charge("2026-02-28").await), [], "unpaid: it waits out of the index");
    world.customer(&subscription, |s| to_card(s, "pm_card_visa", "2026-04-05")).await;
    assert_eq!(counts(&world.charge("2026-04-06").await), [("paid", 1)]);
    assert_eq!(counts(&world.charge("2026-04-30").await), [("paid", 1)]);
    assert_eq!(world.charged(), ["2026-01-31", "2026-04-30"]);
    let waived = world.table.scan().await.unwrap();
    let mut waived: Vec<String> = waived
        .iter()
        .filter_map(|item| item["SK"].as_s().ok()?.strip_prefix("WAV#").map(|sk| sk[..10].to_owned()))
        .collect();
    waived.sort();
    assert_eq!(waived, ["2026-02-28", "2026-03-31"]);
}

#[tokio::test]
async fn change_is_computed_again_from_what_another_wrote_in_between() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
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
                // Another writer, between our reading and our writing.
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
    let Changed::Applied(written) = changed.await.unwrap() else { panic!() };
    assert_eq!((written.status, written.product_name.as_str(), written.version), (Status::Paused, "Gold plan II", 3));
    assert_eq!(seen.into_inner(), [1, 2]);
    assert_eq!(world.stored(&subscription).await, *written);
}

#[tokio::test]
async fn list_continues_at_its_cursor_and_ends_without_one() {
    let world = World::new().await;
    for day in 1..=5 {
        world.has(&of_acme(day, "2026-02-28")).await;
    }
    let account = of_acme(1, "2026-02-28").account;
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
        world.charge(day).await;
    }
    let paging = Paging { after: None, limit: Some(4) };
    let first = world.table.get_receipts_by_account(&account, &paging, morning("2026-05-05")).await.unwrap();
    let rest = Paging { after: first.next.clone(), limit: Some(100) };
    let rest = world.table.get_receipts_by_account(&account, &rest, morning("2026-05-05")).await.unwrap();
    let all = world.table.get_receipts_by_account(&account, &Paging::all(), morning("2026-05-05")).await.unwrap();
    assert_eq!([first.items, rest.items].concat(), all.items);
    assert_eq!((all.items.len(), rest.next), (15, None));
}

/// The month, the payment day and the price of each of the terms that wait.
fn waiting(subscription: &Subscription) -> Vec<(String, u8, i64)> {
    let shown = |terms: &Terms| (terms.from.to_string(), terms.payment_day.into(), terms.price.minor());
    subscription.waiting_terms.iter().map(shown).collect()
}

fn to_price(subscription: &Subscription, minor: i64, today: &str) -> Subscription {
    change(subscription, Changes { amount: Some(minor), ..Changes::default() }, today)
}

#[test]
fn change_of_price_counts_from_the_first_month_that_has_not_fallen_due() {
    let active = new_subscription(10, "2026-03-01");
    let past_due = Subscription { status: Status::PastDue, failed_attempts: 1, ..active.clone() };
    let unpaid = Subscription { status: Status::Unpaid, failed_attempts: 5, next_payment_on: None, ..active.clone() };
    for (story, subscription, today, price_now, expected) in [
        ("the day before", &active, "2026-03-09", 1599, &[][..]),
        ("the day", &active, "2026-03-10", 1299, &[("2026-04", 10, 1599)]),
        ("the day after", &active, "2026-03-11", 1299, &[("2026-04", 10, 1599)]),
        ("two months late", &active, "2026-05-10", 1299, &[("2026-06", 10, 1599)]),
        ("past due", &past_due, "2026-03-12", 1299, &[("2026-04", 10, 1599)]),
        ("unpaid for months", &unpaid, "2026-09-02", 1299, &[("2026-09", 10, 1599)]),
        ("being charged", &claimed(&active), "2026-03-10", 1299, &[("2026-04", 10, 1599)]),
    ] {
        let dearer = to_price(subscription, 1599, today);
        assert_eq!(dearer.price.minor(), price_now, "{story}");
        let expected: Vec<_> = expected.iter().map(|(from, day, price)| ((*from).to_owned(), *day, *price)).collect();
        assert_eq!(waiting(&dearer), expected, "{story}");
        assert_eq!(to_price(&dearer, 1299, today), *subscription, "{story}: and taken back");
    }
}

#[test]
fn changes_of_price_and_day_wait_each_for_a_month_of_its_own() {
    // On 15 March, with the payment on the 20th: the price counts at once, the fifth has passed.
    let active = new_subscription(20, "2026-03-01");
    let both = Changes { amount: Some(1599), payment_day: 5.try_into().ok(), ..Changes::default() };
    let changed = change(&active, both, "2026-03-15");
    assert_eq!((changed.price.minor(), u8::from(changed.payment_day)), (1599, 20));
    assert_eq!(waiting(&changed), [("2026-04".to_owned(), 5, 1599)]);
    // A price changed after that changes what waits as well; one that falls due in between keeps its own.
    let dearer = to_price(&changed, 1999, "2026-03-21");
    assert_eq!((dearer.price.minor(), waiting(&dearer)), (1599, vec![("2026-04".to_owned(), 5, 1999)]));
    let rows: Vec<_> = dearer
        .planned(LEAD(), date("2026-03-21"), 3)
        .iter()
        .map(|planned| (planned.due_on.to_string(), planned.amount.minor()))
        .collect();
    let expected = [("2026-03-20", 1599), ("2026-04-05", 1999), ("2026-05-05", 1999)];
    assert_eq!(rows, expected.map(|(due_on, minor)| (due_on.to_owned(), minor)));
}

#[tokio::test]
async fn what_has_fallen_due_keeps_its_date_and_price_for_as_long_as_it_is_owed() {
    // January's card is declined until it is unpaid; the price rises twice; a new card comes in September.
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_visa_chargeDeclinedLostCard"),
        ..new_subscription(10, "2026-01-05")
    };
    world.has(&subscription).await;
    world.charge("2026-01-10").await;
    world.customer(&subscription, |s| to_price(s, 1599, "2026-03-01")).await;
    world.customer(&subscription, |s| to_price(s, 1999, "2026-08-11")).await;
    world.customer(&subscription, |s| to_card(s, "pm_card_visa", "2026-09-15")).await;
    for day in ["2026-09-15", "2026-09-16", "2026-10-10"] {
        world.charge(day).await;
    }
    let expected = [("2026-01-10", 1299), ("2026-10-10", 1999)];
    assert_eq!(world.receipted(&subscription).await, expected.map(|(due_on, minor)| (due_on.to_owned(), minor)));
    let waived =
        world.table.get_records(&subscription.account, subscription.id, world.clock.now()).await.unwrap().waived;
    assert_eq!(waived.len(), 8, "February to September");
}
