//! Tests of the daily limits on charges, of the count of payments without a reminder, and of the forecast of charges.

use std::collections::BTreeMap;
use std::sync::Arc;

use audit::forecast_charges;
use billing::{ChargeTotal, Money, Subscription, SubscriptionChanges, SubscriptionStatus};
use chrono::{Days, NaiveDate, TimeDelta};
use deployment::Deployment;
use emulator::{EngineConnection, ExternalOperation, Fault, FaultInjector};
use sandbox::LedgerEntry;
use store::{Batch, PaymentCounts};
use sweep::BatchRequest;
use testkit::fault_at_call;

use crate::lifecycle::LEAD;
use crate::world::{World, billing_time, card, date, new_subscription, nonzero_counts, numbered_subscription};

/// Runs the payment batch for `day`, `hours` after the billing time. Returns the counts of the run, or the error text
/// if the run was rejected.
async fn run_payments(world: &World, day: &str, hours: i64) -> Result<PaymentCounts, String> {
    let now = billing_time(day) + TimeDelta::hours(hours);
    world.clock.set(now);
    let run = world.payments.run(&BatchRequest::for_date(date(day)), now + TimeDelta::hours(1)).await;
    run.map(|report| report.counts).map_err(|error| error.to_string())
}

#[tokio::test]
async fn daily_limits_apply_to_the_total_of_all_runs_of_the_day() {
    let world = World::with_payment_limits(&[("max-charges", "3"), ("max-sums", "EUR=45.00")]).await;
    let mut rejected_runs = 0;
    for run in 0..4 {
        // Before each run, two more payments become due.
        for n in 0..2 {
            world.store(&numbered_subscription(run * 2 + n, 10, "2026-03-01")).await;
        }
        let result = run_payments(&world, "2026-03-10", run.into()).await;
        rejected_runs += u32::from(result.is_err());
        if run == 1 {
            let expected = "the run was not started: 4 payments are due or charged; at most 3 may be charged per day";
            assert_eq!(result.unwrap_err(), expected);
        }
    }
    assert_eq!((world.charged_due_dates().len(), rejected_runs), (2, 3), "only the first run charges");
    let tally = world.table.get_charge_total(date("2026-03-10")).await.unwrap();
    assert_eq!(tally, ChargeTotal::new(2, [Money::new(2_598, "EUR".parse().unwrap())].into_iter().collect()));
    // A payment counts for the day on which it is charged, not for its due date.
    world.set_clock_back(billing_time("2026-03-09")).await;
    assert!(run_payments(&world, "2026-03-09", 9).await.is_ok(), "no payment is due on March 9");
    world.clock.set(billing_time("2026-03-11"));
    assert!(run_payments(&world, "2026-03-11", 0).await.is_err(), "six payments are still due");
    let other_world = World::with_payment_limits(&[("max-charges", "3")]).await;
    other_world.store(&numbered_subscription(1, 9, "2026-03-01")).await;
    run_payments(&other_world, "2026-03-10", 0).await.unwrap();
    let charged = other_world.table.get_charge_total(date("2026-03-10")).await.unwrap();
    assert_eq!(charged.charges(), 1, "the payment is counted on the day of its charge");
}

/// Repeats a run, and each time loses another one of its requests before it takes effect. The run must write the charges
/// that it could not write at first, because a later run does not know them. In every second run, the gateway does not
/// respond to a charge, which stops the run before its other lane.
#[tokio::test]
async fn charge_total_contains_every_charge_although_any_request_is_lost() {
    for (request_number, is_stopped) in (1..).flat_map(|number| [(number, false), (number, true)]) {
        let world = World::with_payment_limits(&[("gateway-failures", "1")]).await;
        for n in 0..3 {
            world.store(&Subscription { shard: 0, ..numbered_subscription(n, 10, "2026-03-01") }).await;
        }
        if is_stopped {
            world.script.add(ExternalOperation::Charge, [None, Some(Fault::LostBefore)]);
        }
        let faults = fault_at_call(request_number, Fault::LostBefore);
        let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
        let connection = EngineConnection::with_injector(injector.clone()).without_retries();
        let mut deployment =
            Deployment { gateway: world.gateway.clone(), ..world.system.with_connection(Arc::new(connection)) };
        // The stopped run has one list page, so it writes its charges only at its end.
        deployment.config.limits.page_rows = if is_stopped { 200 } else { 2 };
        let batch = deployment.payment_batch().await.unwrap();
        let now = billing_time("2026-03-10");
        world.clock.set(now);
        let request = BatchRequest::for_date(date("2026-03-10"));
        let _ = injector.run(batch.run(&request, now + TimeDelta::hours(1))).await;
        world.script.clear(ExternalOperation::Charge);
        run_payments(&world, "2026-03-10", 2).await.unwrap();
        let total = world.table.get_charge_total(date("2026-03-10")).await.unwrap().charges();
        let case = format!("request {request_number}, stopped: {is_stopped}");
        assert_eq!((world.charged_due_dates().len(), total), (3, 3), "{case}");
        if injector.call_count() < request_number && !is_stopped {
            assert!(request_number > 15, "the run sent fewer than {request_number} requests");
            return;
        }
    }
}

#[tokio::test]
async fn daily_limits_count_all_list_pages_of_due_payments_but_no_ending_subscriptions() {
    let world = World::with_payment_limits(&[("max-charges", "1001")]).await;
    for n in 0..1_002 {
        world
            .table
            .put_account(&billing::Account {
                id: numbered_subscription(n, 10, "2026-03-01").account,
                ..testkit::sample_account()
            })
            .await
            .unwrap();
        world.table.create_subscription(&numbered_subscription(n, 10, "2026-03-01"), None).await.unwrap();
    }
    let reason = "1002 payments are due or charged; at most 1001 may be charged per day";
    assert_eq!(run_payments(&world, "2026-03-10", 0).await.unwrap_err(), format!("the run was not started: {reason}"));
    let ending = world.load(&numbered_subscription(7, 10, "2026-03-01")).await;
    world.change_subscription(&ending, |s| s.cancel_at_period_end(date("2026-03-09")).unwrap()).await;
    let due = world.table.get_due_by_date(Batch::Payments, 4, date("2026-03-10"), None, 2_000).await.unwrap().rows;
    let to_charge = due.iter().filter(|row| row.due.as_ref().unwrap().may_be_charged()).count();
    assert_eq!((due.len(), to_charge), (1_002, 1_001));
}

#[tokio::test]
async fn payment_without_an_earlier_reminder_is_counted_as_unreminded() {
    // The reminder batch does not run for weeks, but the payment batch does.
    let world = World::new().await;
    let (paid, failing) = (new_subscription(10, "2026-03-01"), numbered_subscription(1, 10, "2026-03-01"));
    let failing = Subscription { payment_method: card("pm_card_visa_chargeDeclined"), ..failing };
    world.store(&paid).await;
    world.store(&failing).await;
    world.run_reminders("2026-03-02").await;
    let report = world.run_payments("2026-03-10").await;
    assert_eq!((nonzero_counts(&report), report.totals.unreminded), (vec![("declined", 1), ("paid", 1)], 1));
    let mut late = new_subscription(12, "2026-03-01");
    late.id = numbered_subscription(2, 12, "2026-03-01").id;
    world.store(&late).await;
    assert_eq!(
        nonzero_counts(&world.run_reminders("2026-03-13").await),
        [("missed", 1)],
        "March 12 has passed, and the payment is still due"
    );
    assert_eq!(world.run_payments("2026-03-13").await.totals.unreminded, 1, "the missed reminder is not sent later");
    world.run_reminders("2026-04-03").await;
    assert_eq!(world.run_payments("2026-04-10").await.totals.unreminded, 0, "the reminder was sent in time");
}

#[tokio::test]
async fn first_payment_on_the_day_of_the_sign_up_is_not_unreminded() {
    // The reminder of March 10 is sent on March 3, or when the subscription is created, but not on March 10.
    for (created, unreminded) in [("2026-03-03", 1), ("2026-03-04", 1), ("2026-03-09", 1), ("2026-03-10", 0)] {
        let world = World::new().await;
        let subscription = Subscription { created_at: billing_time(created), ..new_subscription(10, "2026-03-01") };
        world.store(&subscription).await;
        let report = world.run_payments("2026-03-10").await;
        assert_eq!((nonzero_counts(&report), report.totals.unreminded), (vec![("paid", 1)], unreminded), "{created}");
    }
}

/// Stores subscriptions in all states, with valid cards.
async fn store_subscriptions_in_all_states(world: &World, today: NaiveDate) {
    let created = "2026-01-01";
    for n in 0..31_u32 {
        world.store(&numbered_subscription(n, i64::from(n) + 1, created)).await;
    }
    let change =
        |changes: SubscriptionChanges| move |s: &Subscription| s.apply_changes(&changes, LEAD(), today).unwrap();
    let amount = |minor| SubscriptionChanges { amount: Some(minor), ..SubscriptionChanges::default() };
    let day = |day: i64| SubscriptionChanges { payment_day: day.try_into().ok(), ..SubscriptionChanges::default() };
    let subscription = |n: u32| numbered_subscription(n, i64::from(n) + 1, created);
    world.change_subscription(&subscription(4), change(amount(1_599))).await;
    world.change_subscription(&subscription(9), change(amount(999))).await;
    world.change_subscription(&subscription(11), change(day(3))).await;
    world.change_subscription(&subscription(20), change(day(28))).await;
    world.change_subscription(&subscription(21), |s| s.pause(today).unwrap()).await;
    world.change_subscription(&subscription(22), |s| s.cancel_at_period_end(today).unwrap()).await;
    world.change_subscription(&subscription(2), |s| s.cancel_at_period_end(today).unwrap()).await;
    // Subscription 5 is past due with a valid card, subscription 6 was unpaid and is past due again, and subscription 7
    // stays unpaid.
    let past_due = |s: &Subscription| Subscription {
        status: SubscriptionStatus::PastDue,
        failed_attempts: 2,
        next_payment_on: Some(today + Days::new(2)),
        ..s.clone()
    };
    world.change_subscription(&subscription(5), past_due).await;
    let revived = move |s: &Subscription| Subscription { unpaid_since: Some(today), ..past_due(s) };
    world.change_subscription(&subscription(6), revived).await;
    let unpaid =
        |s: &Subscription| Subscription { status: SubscriptionStatus::Unpaid, next_payment_on: None, ..s.clone() };
    world.change_subscription(&subscription(7), unpaid).await;
    // Subscription 8 is disputed, and a payment without a receipt was found for subscription 12.
    let disputed = |s: &Subscription| Subscription { disputed_at: Some(s.created_at), ..s.clone() };
    world.change_subscription(&subscription(8), disputed).await;
    world.change_subscription(&subscription(12), |s| Subscription { open_findings: 1, ..s.clone() }).await;
}

#[tokio::test]
async fn forecast_equals_the_charges_of_the_next_quarter() {
    let (world, today) = (World::new().await, date("2026-01-10"));
    store_subscriptions_in_all_states(&world, today).await;
    world.clock.set(billing_time("2026-01-10"));
    let (expected, unreadable) = forecast_charges(&world.table, 4, today, 3).await.unwrap();
    assert!(unreadable.is_empty() && expected.total().charges() > 80, "{expected:?}");
    for day in today.iter_days().take_while(|day| *day < expected.first_day_after()) {
        world.run_payments(&day.to_string()).await;
    }
    let mut charged: BTreeMap<NaiveDate, ChargeTotal> = BTreeMap::new();
    for entry in world.sandbox.entries() {
        let LedgerEntry::Payment(payment) = entry else { continue };
        charged.entry(payment.created_at.date_naive()).or_default().add(payment.request.amount);
    }
    let expected: BTreeMap<NaiveDate, ChargeTotal> = expected.days().map(|(on, day)| (on, day.clone())).collect();
    assert_eq!(charged, expected);
}

#[tokio::test]
async fn forecast_of_a_cancelled_subscription_contains_only_its_payment_in_progress() {
    let (world, debit) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&Subscription { payment_method: card("pm_usBankAccount_success"), ..debit.clone() }).await;
    world.run_payments("2026-03-10").await;
    world.change_subscription(&debit, |s| s.cancel(date("2026-03-10"), billing_time("2026-03-10"))).await;
    let due = world.table.get_due_by_date(Batch::Payments, 4, date("2026-03-10"), None, 10).await.unwrap().rows;
    assert_eq!(due.iter().map(|row| row.due.as_ref().unwrap().may_be_charged()).collect::<Vec<_>>(), [false]);
    let (expected, _) = forecast_charges(&world.table, 4, date("2026-03-10"), 3).await.unwrap();
    assert_eq!(expected.total().charges(), 1, "{expected:?}");
}
