//! What is due, what will come, and how much of it a day may charge.

use std::collections::BTreeMap;

use audit::forecast;
use billing::{Changes, Day, Money, Status, Subscription};
use chrono::{Days, NaiveDate, TimeDelta};
use gateways::Entry;
use store::{Batch, PaymentCounts};
use sweep::BatchRequest;

use crate::lifecycle::LEAD;
use crate::world::{World, another, card, counts, date, morning, new_subscription};

/// What a day of so many payments of 12.99 EUR says, or that it is refused.
async fn charge(world: &World, day: &str, hours: i64) -> Result<PaymentCounts, String> {
    let now = morning(day) + TimeDelta::hours(hours);
    world.clock.set(now);
    let run = world.payments.run(&BatchRequest::on(date(day)), now + TimeDelta::hours(1)).await;
    run.map(|report| report.counts).map_err(|error| error.to_string())
}

#[tokio::test]
async fn ceilings_are_of_the_day_however_many_runs_it_has() {
    let world = World::with(&[("DUEDAY_MAX_CHARGES", "3"), ("DUEDAY_MAX_SUMS", "EUR=45.00")]).await;
    let mut refused = 0;
    for run in 0..4 {
        // Two more fall due while the day goes on.
        for n in 0..2 {
            world.has(&another(run * 2 + n, 10, "2026-03-01")).await;
        }
        let charged = charge(&world, "2026-03-10", run.into()).await;
        refused += u32::from(charged.is_err());
        if run == 1 {
            let said = "the day is not begun: 4 payments are due or charged, and at most 3 may be charged in a day";
            assert_eq!(charged.unwrap_err(), said);
        }
    }
    assert_eq!((world.charged().len(), refused), (2, 3), "2598 of 4500 were charged, and then nothing");
    let tally = world.table.get_charged(date("2026-03-10")).await.unwrap();
    assert_eq!(tally, Day::of(2, [Money::new(2_598, "EUR".parse().unwrap())].into_iter().collect()));
    // What was due under an earlier date counts on the day on which it is charged.
    world.set_clock_back(morning("2026-03-09")).await;
    assert!(charge(&world, "2026-03-09", 9).await.is_ok(), "nothing is due on the ninth");
    world.clock.set(morning("2026-03-11"));
    assert!(charge(&world, "2026-03-11", 0).await.is_err(), "six are left");
    let raised = World::with(&[("DUEDAY_MAX_CHARGES", "3")]).await;
    raised.has(&another(1, 9, "2026-03-01")).await;
    charge(&raised, "2026-03-10", 0).await.unwrap();
    assert_eq!(raised.table.get_charged(date("2026-03-10")).await.unwrap().charges(), 1, "on the day it is charged");
}

#[tokio::test]
async fn ceilings_count_more_than_a_page_of_what_is_due_and_not_what_ends() {
    let world = World::with(&[("DUEDAY_MAX_CHARGES", "1001")]).await;
    for n in 0..1_002 {
        world
            .table
            .put_account(&billing::Account { id: another(n, 10, "2026-03-01").account, ..testkit::sample::account() })
            .await
            .unwrap();
        world.table.create_subscription(&another(n, 10, "2026-03-01"), None).await.unwrap();
    }
    let said = "1002 payments are due or charged, and at most 1001 may be charged in a day";
    assert_eq!(charge(&world, "2026-03-10", 0).await.unwrap_err(), format!("the day is not begun: {said}"));
    let ending = world.stored(&another(7, 10, "2026-03-01")).await;
    world.customer(&ending, |s| s.cancel_at_period_end(date("2026-03-09")).unwrap()).await;
    let counted = world.table.get_due_by_date(Batch::Payments, 4, date("2026-03-10"), None, 2_000).await.unwrap().rows;
    let charged = counted.iter().filter(|row| row.due.as_ref().unwrap().will_be_charged()).count();
    assert_eq!((counted.len(), charged), (1_002, 1_001));
}

#[tokio::test]
async fn reminder_that_could_not_be_sent_before_its_payment_is_counted() {
    // Nobody reminds for weeks; the payment batch goes on.
    let world = World::new().await;
    let (paid, failing) = (new_subscription(10, "2026-03-01"), another(1, 10, "2026-03-01"));
    let failing = Subscription { payment_method: card("pm_card_visa_chargeDeclined"), ..failing };
    world.has(&paid).await;
    world.has(&failing).await;
    world.remind("2026-03-02").await;
    let report = world.charge("2026-03-10").await;
    assert_eq!((counts(&report), report.unreminded), (vec![("declined", 1), ("paid", 1)], 1));
    let mut late = new_subscription(12, "2026-03-01");
    late.id = another(2, 12, "2026-03-01").id;
    world.has(&late).await;
    assert_eq!(counts(&world.remind("2026-03-13").await), [("missed", 1)], "the twelfth has passed, and is owed");
    assert_eq!(world.charge("2026-03-13").await.unreminded, 0, "counted once");
    world.remind("2026-04-03").await;
    assert_eq!(world.charge("2026-04-10").await.unreminded, 0, "reminded in time");
}

/// Subscriptions of every kind, with cards that are good.
async fn merchant(world: &World, today: NaiveDate) {
    let created = "2026-01-01";
    for n in 0..31_u32 {
        world.has(&another(n, i64::from(n) + 1, created)).await;
    }
    let change = |changes: Changes| move |s: &Subscription| s.change(&changes, LEAD(), today).unwrap();
    let amount = |minor| Changes { amount: Some(minor), ..Changes::default() };
    let day = |day: i64| Changes { payment_day: day.try_into().ok(), ..Changes::default() };
    let of = |n: u32| another(n, i64::from(n) + 1, created);
    world.customer(&of(4), change(amount(1_599))).await;
    world.customer(&of(9), change(amount(999))).await;
    world.customer(&of(11), change(day(3))).await;
    world.customer(&of(20), change(day(28))).await;
    world.customer(&of(21), |s| s.pause(today).unwrap()).await;
    world.customer(&of(22), |s| s.cancel_at_period_end(today).unwrap()).await;
    world.customer(&of(2), |s| s.cancel_at_period_end(today).unwrap()).await;
    // Past due, with a card that is good again; unpaid, and past due after that; and unpaid for good.
    let retried = |s: &Subscription| Subscription {
        status: Status::PastDue,
        failed_attempts: 2,
        next_payment_on: Some(today + Days::new(2)),
        ..s.clone()
    };
    world.customer(&of(5), retried).await;
    let revived = move |s: &Subscription| Subscription { unpaid_since: Some(today), ..retried(s) };
    world.customer(&of(6), revived).await;
    let unpaid = |s: &Subscription| Subscription { status: Status::Unpaid, next_payment_on: None, ..s.clone() };
    world.customer(&of(7), unpaid).await;
}

#[tokio::test]
async fn forecast_is_what_a_quarter_charges() {
    let (world, today) = (World::new().await, date("2026-01-10"));
    merchant(&world, today).await;
    world.clock.set(morning("2026-01-10"));
    let (expected, unreadable) = forecast(&world.table, 4, today, 3).await.unwrap();
    assert!(unreadable.is_empty() && expected.total().charges() > 85, "{expected:?}");
    for day in today.iter_days().take_while(|day| *day < expected.until()) {
        world.charge(&day.to_string()).await;
    }
    let mut charged: BTreeMap<NaiveDate, Day> = BTreeMap::new();
    for entry in world.sandbox.entries() {
        let Entry::Payment(made) = entry else { continue };
        charged.entry(made.created_at.date_naive()).or_default().add(made.request.amount);
    }
    let expected: BTreeMap<NaiveDate, Day> = expected.days().map(|(on, day)| (on, day.clone())).collect();
    assert_eq!(charged, expected);
}

#[tokio::test]
async fn what_was_cancelled_while_a_payment_is_open_is_not_counted_as_to_come() {
    let (world, debit) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&Subscription { payment_method: card("pm_usBankAccount_success"), ..debit.clone() }).await;
    world.charge("2026-03-10").await;
    world.customer(&debit, |s| s.cancel(date("2026-03-10"), morning("2026-03-10"))).await;
    let due = world.table.get_due_by_date(Batch::Payments, 4, date("2026-03-10"), None, 10).await.unwrap().rows;
    assert_eq!(due.iter().map(|row| row.due.as_ref().unwrap().will_be_charged()).collect::<Vec<_>>(), [false]);
    let (expected, _) = forecast(&world.table, 4, date("2026-03-10"), 3).await.unwrap();
    assert_eq!(expected.total().charges(), 0, "{expected:?}");
}
