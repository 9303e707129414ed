//! Tests of a run whose clock was a year ahead: after the clock was set back, the audit reports what the run wrote, its
//! repairs make each owed payment payable, and the next runs charge each month once.

use audit::{Invariant, SubscriptionRepair, forecast_charges};
use billing::{ReminderClaim, Subscription, SubscriptionChanges, SubscriptionStatus};
use chrono::TimeDelta;
use days::{ProcessFacts, SystemStatus};
use emulator::Fault;
use store::{Batch, ExecutionLeaseOutcome};

use crate::lifecycle::LEAD;
use crate::table_audit::{checker, violations};
use crate::world::{World, billing_time, card, date, new_subscription, numbered_subscription};

/// The date of the run on the clock that was a year ahead.
const AHEAD: &str = "2027-03-10";

/// Returns a world after a run of the date [`AHEAD`] that charged the payment of `subscription` due on 2026-03-10. The
/// clock was set back to `today` after the run.
async fn world_after_a_run_ahead(subscription: &Subscription, today: &str) -> World {
    let world = World::new().await;
    world.store(subscription).await;
    world.run_payments(AHEAD).await;
    world.set_clock_back(billing_time(today)).await;
    world
}

/// Makes the repairs of the audit on the date `today`, and returns their changes.
async fn repair(world: &World, today: &str) -> Vec<String> {
    let (mut partitions, mut changes) = (world.table.account_partitions(), Vec::new());
    while let Some(partition) = partitions.next().await.unwrap() {
        for SubscriptionRepair { changes: made, stored, repaired, .. } in checker(today).find_repairs(partition) {
            world.table.update_subscription(&stored, &repaired).await.unwrap();
            changes.extend(made);
        }
    }
    changes
}

/// Returns the invariants that are violated on `today`, without the recorded times, which no repair changes.
async fn violations_of_plans(world: &World, today: &str) -> Vec<(Invariant, String)> {
    let all = violations(world, today).await;
    all.into_iter().filter(|(invariant, _)| *invariant != Invariant::RecordedInPast).collect()
}

#[tokio::test]
async fn month_that_a_run_ahead_postponed_by_a_year_is_charged_once_after_the_repair() {
    let subscription = new_subscription(10, "2026-03-01");
    let world = world_after_a_run_ahead(&subscription, "2026-04-12").await;
    assert_eq!(world.charged_due_dates(), ["2026-03-10"]);
    world.run_payments("2026-04-12").await;
    assert_eq!(world.charged_due_dates(), ["2026-03-10"], "April is due, but no run finds the subscription");
    let found = violations_of_plans(&world, "2026-04-12").await;
    assert!(found.iter().any(|(_, what)| what.contains("the next charge is planned for 2027-03-11")), "{found:?}");
    // The payment in the future may have been made today.
    assert_eq!(repair(&world, "2026-04-12").await, ["NextPaymentDate: 2027-03-11 -> 2026-04-13"]);
    assert_eq!(violations_of_plans(&world, "2026-04-12").await, []);
    for day in ["2026-04-13", "2026-04-14", "2026-05-10"] {
        world.run_payments(day).await;
    }
    assert_eq!(world.charged_due_dates(), ["2026-03-10", "2026-04-10", "2026-05-10"]);
    assert_eq!(violations_of_plans(&world, "2026-05-10").await, []);
    assert_eq!(repair(&world, "2026-05-10").await, [] as [String; 0]);
}

#[tokio::test]
async fn month_that_is_not_due_yet_is_planned_for_its_due_date_by_the_repair() {
    let subscription = new_subscription(10, "2026-03-01");
    let world = world_after_a_run_ahead(&subscription, "2026-03-12").await;
    let expected = ["NextPaymentDate: 2027-03-11 -> 2026-04-10", "NextReminderDate: none -> 2026-04-03"];
    assert_eq!(repair(&world, "2026-03-12").await, expected);
}

#[tokio::test]
async fn months_that_runs_ahead_charged_in_advance_are_reported_and_not_charged_again() {
    let subscription = new_subscription(10, "2026-03-01");
    let world = World::new().await;
    world.store(&subscription).await;
    for day in ["2027-03-10", "2027-03-11", "2027-03-12", "2027-03-13"] {
        world.run_payments(day).await;
    }
    world.set_clock_back(billing_time("2026-03-12")).await;
    assert_eq!(world.receipt_due_dates(&subscription).await.last().unwrap(), "2026-06-10");
    let found = violations(&world, "2026-03-12").await;
    assert!(found.iter().any(|(_, what)| what.contains("the months before 2026-07-10 are already paid")), "{found:?}");
    let expected = ["NextPaymentDate: 2027-03-14 -> 2026-07-10", "NextReminderDate: none -> 2026-07-03"];
    assert_eq!(repair(&world, "2026-03-12").await, expected);
    assert_eq!(violations_of_plans(&world, "2026-03-12").await, []);
    world.run_payments("2026-06-10").await;
    world.run_payments("2026-07-10").await;
    assert_eq!(world.charged_due_dates().len(), 5, "{:?}", world.charged_due_dates());
}

#[tokio::test]
async fn attempt_leased_by_a_run_ahead_is_looked_up_and_not_charged_again_after_the_repair() {
    for (fault, today) in
        [(Fault::LostAfter, "2026-03-12"), (Fault::LostAfter, "2026-02-20"), (Fault::LostBefore, "2026-03-12")]
    {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-02-15"));
        world.store(&subscription).await;
        world.inject_charge_fault(fault);
        world.run_payments(AHEAD).await;
        world.set_clock_back(billing_time(today)).await;
        world.run_payments(today).await;
        assert!(world.load(&subscription).await.attempt.is_some(), "the lease has not ended");
        let changes = repair(&world, today).await;
        let lease = format!("AttemptLease: 2027-03-10T06:20:00Z -> {today}T06:00:00Z");
        assert!(changes.contains(&lease), "{changes:?}");
        let claim = changes.iter().find(|change| change.starts_with("AttemptAt: 2027-03-10T06:00:00Z -> 2026-02-15"));
        assert!(claim.is_some(), "a look-up must list all payments since the subscription was created: {changes:?}");
        assert_eq!(violations_of_plans(&world, today).await, []);
        world.run_payments(today).await;
        assert_eq!(world.load(&subscription).await.attempt, None);
        for day in ["2026-03-13", "2026-03-14"] {
            world.run_payments(day).await;
        }
        assert_eq!(world.charged_due_dates(), ["2026-03-10"]);
        assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-10"]);
        assert_eq!(world.load(&subscription).await.due_on, date("2026-04-10"));
    }
}

#[tokio::test]
async fn retry_that_a_run_ahead_planned_is_at_most_the_longest_gap_ahead_after_the_repair() {
    let declined = card("pm_card_visa_chargeDeclinedInsufficientFunds");
    let subscription = Subscription { payment_method: declined, ..new_subscription(10, "2026-03-01") };
    let world = world_after_a_run_ahead(&subscription, "2026-03-12").await;
    let expected = ["NextPaymentDate: 2027-03-11 -> 2026-03-14", "FirstDeclinedDate: 2027-03-10 -> 2026-03-12"];
    assert_eq!(repair(&world, "2026-03-12").await, expected);
    assert_eq!(violations_of_plans(&world, "2026-03-12").await, []);
    world.run_payments("2026-03-14").await;
    let retried = world.load(&subscription).await;
    assert_eq!((retried.status, retried.failed_attempts), (SubscriptionStatus::PastDue, 2));
    assert_eq!(retried.next_payment_on, Some(date("2026-03-16")));
}

#[tokio::test]
async fn subscription_that_became_unpaid_on_a_clock_ahead_is_unpaid_since_today_after_the_repair() {
    let lost = card("pm_card_visa_chargeDeclinedLostCard");
    let subscription = Subscription { payment_method: lost, ..new_subscription(10, "2026-03-01") };
    let world = world_after_a_run_ahead(&subscription, "2026-03-12").await;
    let expected = ["FirstDeclinedDate: 2027-03-10 -> 2026-03-12", "UnpaidSince: 2027-03-10 -> 2026-03-12"];
    assert_eq!(repair(&world, "2026-03-12").await, expected);
}

#[tokio::test]
async fn reminder_claimed_on_a_clock_ahead_is_sent_after_the_repair() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let claim = ReminderClaim {
        claim_token: billing::ClaimToken(ulid::Ulid::from_parts(1, 1)),
        leased_until: billing_time("2027-03-03"),
    };
    world.change_subscription(&subscription, |s| Subscription { reminder_claim: Some(claim), ..s.clone() }).await;
    assert_eq!(world.run_reminders("2026-03-03").await.counts.sent, 0);
    let expected = ["ReminderLease: 2027-03-03T06:00:00Z -> 2026-03-03T06:00:00Z"];
    assert_eq!(repair(&world, "2026-03-03").await, expected);
    assert_eq!(world.run_reminders("2026-03-03").await.counts.sent, 1);
}

#[tokio::test]
async fn retry_new_card_and_payment_day_make_a_postponed_payment_payable() {
    type Change = fn(&Subscription) -> Subscription;
    let today = || date("2026-04-12");
    let new_card = |s: &Subscription| {
        let payment_method_at = Some(billing_time("2026-04-12"));
        let changes = SubscriptionChanges {
            payment_method: Some(card("pm_card_mastercard")),
            payment_method_at,
            ..SubscriptionChanges::default()
        };
        s.apply_changes(&changes, LEAD(), date("2026-04-12")).unwrap()
    };
    let changes: [(&str, Change); 3] = [
        ("retry", |s| s.retry_owed_payment(false, date("2026-04-12"), billing_time("2026-04-12")).unwrap()),
        ("new card", new_card),
        ("payment day", |s| {
            let changes = SubscriptionChanges { payment_day: 20.try_into().ok(), ..SubscriptionChanges::default() };
            s.apply_changes(&changes, LEAD(), date("2026-04-12")).unwrap()
        }),
    ];
    let subscription = new_subscription(10, "2026-03-01");
    for (name, change) in changes {
        let world = world_after_a_run_ahead(&subscription, "2026-04-12").await;
        // The payment method was also given on the clock that was ahead.
        let given = |s: &Subscription| Subscription { payment_method_at: Some(billing_time(AHEAD)), ..s.clone() };
        world.change_subscription(&subscription, given).await;
        world.change_subscription(&subscription, change).await;
        let changed = world.load(&subscription).await;
        assert_eq!(changed.next_payment_on, Some(today() + TimeDelta::days(1)), "{name}");
        assert_eq!(changed.payment_method == card("pm_card_mastercard"), name == "new card", "{name}");
        world.run_payments("2026-04-13").await;
        assert_eq!(world.charged_due_dates(), ["2026-03-10", "2026-04-10"], "{name}");
    }
}

#[tokio::test]
async fn late_payment_date_without_a_payment_ahead_is_replaced_by_the_due_date() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    world.run_payments("2026-03-10").await;
    let postponed = |s: &Subscription| Subscription { next_payment_on: Some(date("2028-04-10")), ..s.clone() };
    world.change_subscription(&subscription, postponed).await;
    let retried =
        |s: &Subscription| s.retry_owed_payment(false, date("2026-04-12"), billing_time("2026-04-12")).unwrap();
    assert_eq!(retried(&world.load(&subscription).await).next_payment_on, Some(date("2026-04-10")));
    assert_eq!(repair(&world, "2026-04-12").await, ["NextPaymentDate: 2028-04-10 -> 2026-04-10"]);
    world.run_payments("2026-04-12").await;
    assert_eq!(world.charged_due_dates(), ["2026-03-10", "2026-04-10"]);
}

#[tokio::test]
async fn lists_forecast_and_status_count_postponed_payments_as_due() {
    let (world, today) = (World::new().await, date("2026-04-12"));
    for n in 0..12 {
        world.store(&numbered_subscription(n, 10, "2026-03-01")).await;
    }
    // Named for a date after the next month: not due, although its payment date is as late.
    let later = Subscription { next_payment_on: Some(date("2026-08-20")), ..new_subscription(20, "2026-08-01") };
    world.store(&Subscription { due_on: date("2026-08-20"), first_due_on: date("2026-08-20"), ..later }).await;
    world.run_payments(AHEAD).await;
    let intact = numbered_subscription(0, 10, "2026-03-01");
    let planned = |s: &Subscription| Subscription { next_payment_on: Some(date("2026-04-10")), ..s.clone() };
    world.change_subscription(&intact, planned).await;
    world.set_clock_back(billing_time("2026-04-12")).await;
    for limit in [1, 2, 5, 100] {
        let (mut due, mut after) = (Vec::new(), None);
        loop {
            let page = world
                .table
                .get_due_and_postponed_by_date(Batch::Payments, 4, today, today, after, limit)
                .await
                .unwrap();
            assert!(page.rows.len() <= limit);
            assert!(page.rows.iter().all(|row| row.position.is_in_due_list(today, today)));
            due.extend(page.rows.into_iter().map(|row| row.due.unwrap().key.account.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        due.sort_unstable();
        let mut expected: Vec<String> = (0..12).map(|n| format!("account-{n}")).collect();
        expected.sort_unstable();
        assert_eq!(due, expected, "pages of {limit} rows");
    }
    let (expected, _) = forecast_charges(&world.table, 4, today, 1).await.unwrap();
    let days: Vec<_> = expected.days().map(|(on, day)| (on.to_string(), day.charges())).collect();
    let of = |on: &str, count| (on.to_owned(), count);
    assert_eq!(days, [of("2026-04-12", 1), of("2026-04-13", 11), of("2026-05-10", 12)]);
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let status =
        SystemStatus::read(&world.table, &settings, ProcessFacts::without_queues(), billing_time("2026-04-12"))
            .await
            .unwrap();
    assert_eq!(status.postponed_payments, 11);
    let is_reported = |concern: &days::Concern| concern.to_string().contains("planned them for a later date: 11");
    assert!(status.concerns.iter().any(is_reported), "{:?}", status.concerns);
    repair(&world, "2026-04-12").await;
    let status =
        SystemStatus::read(&world.table, &settings, ProcessFacts::without_queues(), billing_time("2026-04-12"))
            .await
            .unwrap();
    assert_eq!(status.postponed_payments, 0);
}

#[tokio::test]
async fn daily_execution_on_a_clock_ahead_blocks_no_later_execution() {
    let (world, ahead, now) = (World::new().await, billing_time(AHEAD), billing_time("2026-04-12"));
    let acquire = |execution, at| {
        world.table.acquire_execution_lease(Batch::Payments, execution, at, at + TimeDelta::hours(1), None)
    };
    let acquired = Ok(ExecutionLeaseOutcome::Acquired { shards: None });
    assert_eq!(acquire("ahead", ahead).await.map_err(drop), acquired);
    world.table.release_execution_lease(Batch::Payments, "ahead").await.unwrap();
    assert_eq!(acquire("right", now).await.map_err(drop), acquired);
}

#[tokio::test]
async fn run_records_of_later_days_prove_nothing_after_the_clock_was_confirmed() {
    let world = World::new().await;
    world.run_payments("2026-03-14").await;
    world.set_clock_back(billing_time("2026-03-11")).await;
    let incomplete = async || {
        let (on, now) = (date("2026-03-14"), billing_time("2026-03-14"));
        days::incomplete_batches(&world.table, 4, on, now).await.unwrap()
    };
    assert_eq!(incomplete().await, [Batch::Reminders], "the run ahead of its day counts");
    assert_eq!(world.table.delete_runs_after(date("2026-03-11"), 2).await.unwrap(), 0);
    assert_eq!(
        world.table.delete_runs_after(date("2026-03-11"), 3).await.unwrap(),
        8,
        "one record for each shard and lane"
    );
    assert_eq!(incomplete().await, Batch::ALL);
}
