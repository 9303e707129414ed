//! Tests of the two ages that each run logs: the age of the oldest due row, and the age of the oldest attempt whose
//! outcome is unknown.

use std::collections::HashSet;
use std::sync::Arc;

use billing::{PaymentMethod, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use emulator::EngineConnection;
use payments::PaymentOutcome;
use sweep::RunReport;

use crate::open_attempts::{GatewayThatAlwaysProcesses, GatewayThatTimesOutForSomeCustomers};
use crate::world::{World, billing_time, card, date, new_subscription, nonzero_counts, numbered_subscription};

/// The customer whose requests to the gateway time out.
const UNREACHABLE: &str = "cus_unreachable";

/// Returns a world with a subscription that is due on 2026-03-09 and whose charges time out, and the gateway.
async fn world_with_unreachable_customer() -> (World, Arc<GatewayThatTimesOutForSomeCustomers>) {
    let world = World::new().await;
    let payment_method = PaymentMethod { customer: UNREACHABLE.parse().unwrap(), ..card("pm_card_visa") };
    world.store(&Subscription { payment_method, ..numbered_subscription(1, 9, "2026-03-01") }).await;
    let customers = HashSet::from([UNREACHABLE.to_owned()]);
    let gateway = Arc::new(GatewayThatTimesOutForSomeCustomers { sandbox: world.sandbox.clone(), customers });
    (world, gateway)
}

/// Runs the payment batch with `gateway` at the time `now`, for the date of this time.
async fn run_at(
    world: &World,
    gateway: &Arc<GatewayThatTimesOutForSomeCustomers>,
    now: DateTime<Utc>,
) -> RunReport<PaymentOutcome> {
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway.clone()).await;
    world.run_payment_batch(&payments, &now.date_naive().to_string(), now).await
}

/// Returns the age of the oldest attempt in doubt of `report`, whose run has just ended, in hours.
fn hours_in_doubt(world: &World, report: &RunReport<PaymentOutcome>) -> u64 {
    report.totals.oldest_in_doubt_hours(world.clock.now())
}

#[tokio::test]
async fn age_of_an_attempt_in_doubt_grows_from_run_to_run_until_its_outcome_is_known() {
    let (world, gateway) = world_with_unreachable_customer().await;
    for (day, hours, expected, age) in [
        ("2026-03-09", 0, "in_doubt", 0),
        ("2026-03-09", 2, "in_doubt", 2),
        // The lease that the previous run took has not expired yet.
        ("2026-03-09", 2, "in_doubt", 2),
        ("2026-03-10", 0, "in_doubt", 24),
        ("2026-03-10", 2, "failed", 26),
        ("2026-03-12", 0, "failed", 72),
    ] {
        let report = run_at(&world, &gateway, billing_time(day) + TimeDelta::hours(hours)).await;
        assert_eq!(nonzero_counts(&report), [(expected, 1)], "{day} +{hours}");
        assert_eq!(hours_in_doubt(&world, &report), age, "{day} +{hours}");
    }
}

/// Returns a gateway that has the payments of `world`, and times out for no customer.
fn reachable_gateway(world: &World) -> Arc<GatewayThatTimesOutForSomeCustomers> {
    Arc::new(GatewayThatTimesOutForSomeCustomers { sandbox: world.sandbox.clone(), customers: HashSet::new() })
}

#[tokio::test]
async fn attempt_has_no_age_in_doubt_if_the_gateway_has_no_payment_while_charging_is_switched_off() {
    let (world, gateway) = world_with_unreachable_customer().await;
    let first = run_at(&world, &gateway, billing_time("2026-03-09")).await;
    assert_eq!(hours_in_doubt(&world, &first), 0);
    let reachable = reachable_gateway(&world);
    for (is_on, gateway, hours, expected, age) in [
        (false, &gateway, 20, "in_doubt", 20),
        (false, &reachable, 25, "in_doubt", 0),
        // The lease that the previous run took has not expired yet.
        (false, &reachable, 25, "in_doubt", 0),
        (true, &reachable, 26, "paid", 0),
    ] {
        world.table.set_charging(is_on, None).await.unwrap();
        let report = run_at(&world, gateway, billing_time("2026-03-09") + TimeDelta::hours(hours)).await;
        assert_eq!(nonzero_counts(&report), [(expected, 1)], "{report:?}");
        assert_eq!(hours_in_doubt(&world, &report), age, "{report:?}");
    }
}

#[tokio::test]
async fn attempt_has_no_age_in_doubt_if_the_gateway_has_no_payment_and_the_subscription_must_not_be_charged() {
    let disputed = |s: &Subscription| Subscription { disputed_at: Some(billing_time("2026-03-09")), ..s.clone() };
    let contradictory = |s: &Subscription| Subscription { attempt_seq: s.attempt_seq + 1, ..s.clone() };
    type Change = fn(&Subscription) -> Subscription;
    let changes: [(&str, Change); 2] = [("in_doubt", disputed), ("failed", contradictory)];
    for (outcome, change) in changes {
        let (world, gateway) = world_with_unreachable_customer().await;
        run_at(&world, &gateway, billing_time("2026-03-09")).await;
        world.change_subscription(&numbered_subscription(1, 9, "2026-03-01"), change).await;
        let reachable = reachable_gateway(&world);
        for (gateway, hours, expected, age) in [(&gateway, 20, "in_doubt", 20), (&reachable, 25, outcome, 0)] {
            let report = run_at(&world, gateway, billing_time("2026-03-09") + TimeDelta::hours(hours)).await;
            assert_eq!(nonzero_counts(&report), [(expected, 1)], "{report:?}");
            assert_eq!(hours_in_doubt(&world, &report), age, "{report:?}");
        }
    }
}

#[tokio::test]
async fn debit_that_the_bank_is_processing_is_not_in_doubt_and_does_not_count_as_an_old_row() {
    let world = World::new().await;
    let debit = Subscription { payment_method: card("pm_usBankAccount_success"), ..new_subscription(10, "2026-03-01") };
    world.store(&debit).await;
    let bank = Arc::new(GatewayThatAlwaysProcesses(world.sandbox.clone()));
    let payments = world.separate_payment_batch(EngineConnection::default(), bank).await;
    for (day, expected, due_days) in
        [("2026-03-10", "processing", 0), ("2026-03-12", "processing", 0), ("2026-04-05", "failed", 26)]
    {
        let report = world.run_payment_batch(&payments, day, billing_time(day)).await;
        assert_eq!(nonzero_counts(&report), [(expected, 1)], "{day}");
        assert_eq!((hours_in_doubt(&world, &report), report.oldest_due_days), (0, due_days), "{day}");
    }
}

#[tokio::test]
async fn oldest_due_row_is_the_one_that_became_due_first_in_any_shard() {
    let world = World::new().await;
    assert_eq!(world.run_payments("2026-03-08").await.oldest_due_days, 0, "nothing is due");
    for (n, day) in [(0, 12), (1, 9), (2, 11)] {
        world.store(&numbered_subscription(n, day, "2026-03-01")).await;
    }
    let reminders = world.run_reminders("2026-03-08").await;
    assert_eq!((reminders.counts.sent, reminders.oldest_due_days), (3, 6), "{reminders:?}");
    // The payment is owed, but it waits for the decision about a dispute.
    let disputed_at = Some(billing_time("2026-03-02"));
    world.store(&Subscription { disputed_at, ..numbered_subscription(3, 2, "2026-03-01") }).await;
    let report = world.run_payments("2026-03-12").await;
    assert_eq!(nonzero_counts(&report), [("disputed", 1), ("paid", 3)]);
    assert_eq!(report.oldest_due_days, 3);
    let report = world.run_payments("2026-03-12").await;
    assert_eq!((nonzero_counts(&report), report.oldest_due_days), (vec![("disputed", 1)], 0), "{report:?}");
}

#[tokio::test]
async fn row_for_which_there_was_no_time_counts_as_due() {
    let world = World::new().await;
    world.store(&numbered_subscription(1, 9, "2026-03-01")).await;
    let now = billing_time("2026-03-14");
    world.clock.set(now);
    let request = sweep::BatchRequest::for_date(date("2026-03-14"));
    let report = world.payments.run(&request, now + TimeDelta::seconds(30)).await.unwrap();
    assert_eq!((report.complete, report.counts.due, report.oldest_due_days), (false, 0, 5), "{report:?}");
}
