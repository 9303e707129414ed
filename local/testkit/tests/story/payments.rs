//! Tests of payments from their claim to their settlement, with faults, concurrent workers, and changes by customers.

use std::sync::{Arc, OnceLock};

use billing::{ClaimToken, Subscription, SubscriptionStatus};
use charging::{ApplyResult, ChargingEngine, StatedOutcome};
use chrono::TimeDelta;
use clock::{Clock as _, SimulatedClock};
use emulator::{EngineConnection, Fault};
use store::{Claim, ClaimOutcome, Paging, SubscriptionKey, Table};
use ulid::Ulid;

use crate::lifecycle::LEAD;
use crate::world::{
    World, billing_time, cancel, card, connection_with_act_before, date, key, new_subscription, nonzero_counts, pause,
};

#[tokio::test]
async fn payment_day_31_is_charged_on_the_last_day_of_shorter_months() {
    let world = World::with_one_shard().await;
    let subscription = new_subscription(31, "2027-12-31");
    world.store(&subscription).await;
    for day in date("2028-01-01").iter_days().take(366) {
        world.run_payments(&day.to_string()).await;
        world.run_payments_at(&day.to_string(), billing_time(&day.to_string()) + TimeDelta::hours(2)).await;
    }
    let expected: Vec<String> = (1..=12)
        .map(|month| format!("2028-{month:02}-{}", [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]))
        .collect();
    assert_eq!(world.charged_due_dates(), expected);
    assert_eq!(world.receipt_due_dates(&subscription).await, expected);
    assert_eq!(world.load(&subscription).await.due_on, date("2029-01-31"));
}

#[tokio::test]
async fn run_of_a_finished_day_changes_nothing() {
    let world = World::new().await;
    for day in 1..=7 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    assert_eq!(world.run_payments("2026-03-07").await.counts.paid, 7);
    let before =
        world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap().items;
    let again = world.run_payments_at("2026-03-07", billing_time("2026-03-07") + TimeDelta::hours(2)).await;
    assert_eq!((again.counts.due, again.complete), (0, true));
    assert_eq!(
        world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap().items,
        before
    );
    assert_eq!(world.charged_due_dates().len(), 7);
}

#[tokio::test]
async fn after_an_outage_one_month_per_day_is_charged_each_with_a_receipt() {
    let world = World::new().await;
    let subscription = new_subscription(15, "2026-01-01");
    world.store(&subscription).await;
    for day in ["2026-04-20", "2026-04-20", "2026-04-21", "2026-04-22", "2026-04-23", "2026-04-24"] {
        world.run_payments(day).await;
    }
    assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-01-15", "2026-02-15", "2026-03-15", "2026-04-15"]);
    let stored = world.load(&subscription).await;
    assert_eq!((stored.due_on, stored.next_payment_on), (date("2026-05-15"), Some(date("2026-05-15"))));
}

#[tokio::test]
async fn declined_payment_is_retried_by_the_schedule_with_new_attempt_numbers() {
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(10, "2026-03-01")
    };
    world.store(&subscription).await;
    let mut attempt_days = Vec::new();
    for day in date("2026-03-01").iter_days().take(30) {
        if world.run_payments(&day.to_string()).await.counts.declined == 1 {
            attempt_days.push(day.to_string());
        }
    }
    assert_eq!(attempt_days, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    let stored = world.load(&subscription).await;
    assert_eq!((stored.status, stored.next_payment_on, stored.attempt_seq), (SubscriptionStatus::Unpaid, None, 5));
    assert_eq!(world.sandbox.entries().len(), 5, "each attempt is a separate charge");
    assert_eq!(world.charged_due_dates(), [""; 0]);
}

#[tokio::test]
async fn bank_debit_stays_open_until_the_bank_reports_its_outcome() {
    let world = World::new().await;
    let subscription =
        Subscription { payment_method: card("pm_usBankAccount_success"), ..new_subscription(10, "2026-03-01") };
    world.store(&subscription).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("processing", 1)]);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("processing", 1)]);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-12").await), [("paid", 1)]);
    assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-10"]);
    assert_eq!(
        world.sandbox.entries().len(),
        2,
        "the ledger has an entry for the payment, and one for its final status"
    );
}

#[tokio::test]
async fn rejected_charge_is_counted_and_retried_on_the_next_day() {
    let world = World::new().await;
    let subscription = Subscription { payment_method: card("pm_no_such_method"), ..new_subscription(10, "2026-03-01") };
    world.store(&subscription).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("rejected", 1)]);
    let stored = world.load(&subscription).await;
    assert_eq!(
        (stored.status, stored.next_payment_on, stored.attempt),
        (SubscriptionStatus::Active, Some(date("2026-03-11")), None)
    );
}

#[tokio::test]
async fn charge_without_a_response_is_resolved_with_the_same_attempt() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-03-01");
        world.store(&subscription).await;
        world.inject_charge_fault(fault);
        assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("in_doubt", 1)]);
        let during_lease =
            world.run_payments_at("2026-03-10", billing_time("2026-03-10") + TimeDelta::minutes(19)).await;
        assert_eq!(nonzero_counts(&during_lease), [("in_doubt", 1)], "another worker has the lease");
        let resolved = world.run_payments_at("2026-03-10", billing_time("2026-03-10") + TimeDelta::minutes(20)).await;
        assert_eq!(nonzero_counts(&resolved), [("paid", 1)], "{fault:?}");
        assert_eq!(
            (world.charged_due_dates(), world.receipt_due_dates(&subscription).await),
            (vec!["2026-03-10".to_owned()], vec!["2026-03-10".to_owned()])
        );
        assert_eq!(world.load(&subscription).await.attempt_seq, 1, "no new attempt");
    }
}

/// Creates a world in which `act` runs right before the batch sends the request with the number `request_number` to the
/// table.
async fn world_with_act_before<F: Future<Output = ()>>(
    subscription: &Subscription,
    request_number: u64,
    act: impl Fn(Table, SubscriptionKey) -> F + Copy + Send + Sync + 'static,
) -> World {
    let key = key(subscription);
    let table_cell = Arc::new(OnceLock::<Table>::new());
    let table_of_act = table_cell.clone();
    let connection =
        connection_with_act_before(request_number, move || act(table_of_act.get().unwrap().clone(), key.clone()));
    let world = World::with_connection(connection).await;
    table_cell.set(world.table.clone()).unwrap();
    world.store(subscription).await;
    world
}

/// Creates a world in which another worker, whose clock is two hours later, takes over the open attempt right before
/// the batch sends the request with the number `request_number` to the table.
async fn world_with_take_over_before(subscription: &Subscription, request_number: u64) -> World {
    world_with_act_before(subscription, request_number, |table, key| async move {
        let open = table.get_subscription(&key.account, key.subscription).await.unwrap().unwrap().attempt.unwrap();
        let later = billing_time("2026-03-10") + TimeDelta::hours(2);
        let token = ClaimToken(Ulid::from_parts(8, 8));
        let claim = Claim { token, now: later, leased_until: later + TimeDelta::minutes(20) };
        assert!(matches!(table.take_over_attempt(&key, &open, claim).await.unwrap(), ClaimOutcome::Claimed(_)));
    })
    .await
}

#[tokio::test]
async fn take_over_with_a_write_conflict_leaves_the_attempt_in_doubt() {
    let later = billing_time("2026-03-10") + TimeDelta::hours(2);
    // The third request of the batch is the take-over.
    let world = world_with_take_over_before(&new_subscription(10, "2026-03-01"), 3).await;
    world.inject_charge_fault(Fault::LostBefore);
    world.run_payments("2026-03-10").await;
    assert_eq!(
        nonzero_counts(&world.run_payments_at("2026-03-10", later).await),
        [("in_doubt", 1)],
        "the other worker has the lease of the attempt"
    );
    assert_eq!(world.charged_due_dates().len(), 0);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("paid", 1)]);
}

#[tokio::test]
async fn rejection_is_not_settled_if_another_worker_may_be_charging() {
    let rejected = Subscription { payment_method: card("pm_no_such_method"), ..new_subscription(10, "2026-03-01") };
    // The batch's second request is the settlement. The settlement is so late that another worker has taken
    // over the attempt.
    let world = world_with_take_over_before(&rejected, 2).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("in_doubt", 1)]);
    let stored = world.load(&rejected).await;
    assert_eq!(stored.attempt.map(|open| (open.no, open.claim_token)), Some((1, ClaimToken(Ulid::from_parts(8, 8)))));
}

#[tokio::test]
async fn worker_that_was_suspended_after_its_claim_does_not_charge() {
    // `request_number` selects one request to the table, whose response takes `minutes` minutes. Request 1 is the
    // claim. Request 4 is the take-over, after a rejected claim and a read.
    for (request_number, minutes, is_charged) in
        [(1, 4, true), (1, 5, false), (4, 4, true), (4, 5, false), (4, 18, false)]
    {
        let clock = Arc::new(OnceLock::<Arc<SimulatedClock>>::new());
        let clock_of_connection = clock.clone();
        let connection = EngineConnection::with_faults(move |call| {
            if call.number == request_number {
                let clock = clock_of_connection.get().unwrap();
                clock.set(clock.now() + TimeDelta::minutes(minutes));
            }
            None
        });
        let world = World::with_connection(connection).await;
        clock.set(world.clock.clone()).unwrap();
        world.store(&new_subscription(10, "2026-03-01")).await;
        let mut now = billing_time("2026-03-10");
        if request_number == 4 {
            world.inject_charge_fault(Fault::LostBefore);
            world.run_payments_at("2026-03-10", now).await;
            now += TimeDelta::hours(2);
        }
        let expected = if is_charged { ("paid", 1) } else { ("in_doubt", 1) };
        let case = format!("request {request_number}, {minutes} minutes");
        assert_eq!(nonzero_counts(&world.run_payments_at("2026-03-10", now).await), [expected], "{case}");
        assert_eq!(
            world.charged_due_dates().len(),
            usize::from(is_charged),
            "{case}: a late worker must not charge, because another worker may have taken over the attempt and dropped it"
        );
        world.run_payments("2026-03-11").await;
        assert_eq!(world.charged_due_dates().len(), 1, "{case}");
    }
}

#[tokio::test]
async fn success_of_an_attempt_that_was_settled_with_another_outcome_is_reported() {
    let subscription = new_subscription(10, "2026-03-01");
    // Before the batch settles the attempt, an operator states that the attempt was not charged. The operator's clock
    // is an hour later.
    let world = world_with_act_before(&subscription, 2, |table, key| async move {
        let clock = SimulatedClock::new(billing_time("2026-03-10") + TimeDelta::hours(1), 8);
        let engine = ChargingEngine::new(table, Arc::new(clock));
        let (stated, today) = (StatedOutcome::NotCharged, date("2026-03-10"));
        let applied = engine.resolve_attempt(None, &key.account, key.subscription, &stated, today).await.unwrap();
        assert!(matches!(applied, ApplyResult::Settled(_)));
    })
    .await;
    let report = world.run_payments("2026-03-10").await;
    assert_eq!(nonzero_counts(&report), [("failed", 1)]);
    let reason = &report.failures[0].reason;
    assert!(reason.ends_with("succeeded and has no receipt: its attempt was settled with another outcome"), "{reason}");
}

#[tokio::test]
async fn attempt_unknown_to_the_gateway_is_rejected_after_two_days() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.inject_charge_fault(Fault::LostBefore);
    world.run_payments("2026-03-10").await;
    let late = world.run_payments_at("2026-03-12", billing_time("2026-03-12") + TimeDelta::minutes(1)).await;
    assert_eq!(nonzero_counts(&late), [("rejected", 1)]);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-13").await), [("paid", 1)]);
    assert_eq!((world.charged_due_dates().len(), world.load(&subscription).await.attempt_seq), (1, 2));
}

#[tokio::test]
async fn open_attempt_of_a_stopped_subscription_is_settled_or_dropped_but_not_charged() {
    for (fault, receipts) in [(Fault::LostBefore, 0), (Fault::LostAfter, 1)] {
        for status in [SubscriptionStatus::Paused, SubscriptionStatus::Cancelled] {
            let world = World::new().await;
            let subscription = new_subscription(10, "2026-03-01");
            world.store(&subscription).await;
            world.inject_charge_fault(fault);
            world.run_payments("2026-03-10").await;
            world
                .change_subscription(&subscription, |s| {
                    if status == SubscriptionStatus::Paused { pause(s).into() } else { cancel(s) }
                })
                .await;
            world.run_payments("2026-03-11").await;
            let stored = world.load(&subscription).await;
            assert_eq!((stored.status, stored.attempt, stored.next_payment_on), (status, None, None), "{fault:?}");
            assert_eq!(
                (world.charged_due_dates().len(), world.receipt_due_dates(&subscription).await.len()),
                (receipts, receipts),
                "{fault:?}"
            );
        }
    }
}

#[tokio::test]
async fn price_change_during_an_open_attempt_applies_from_the_next_month() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.inject_charge_fault(Fault::LostBefore);
    world.run_payments("2026-03-10").await;
    let new_price = billing::SubscriptionChanges { amount: Some(1599), ..Default::default() };
    world
        .change_subscription(&subscription, |s| s.apply_changes(&new_price, LEAD(), date("2026-03-10")).unwrap())
        .await;
    world.run_payments("2026-03-11").await;
    world.run_payments("2026-04-10").await;
    let amounts: Vec<i64> = world.receipt_amounts(&subscription).await.into_iter().map(|(_, amount)| amount).collect();
    assert_eq!(amounts, [1299, 1599]);
}

/// Injects each kind of fault at each write of the payment batch, and then runs the batch until the payment is settled.
#[tokio::test]
async fn charge_is_made_exactly_once_despite_a_fault_at_any_write() {
    let mut visible_faults = 0;
    for has_retries in [true, false] {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Refused("ThrottlingException")] {
            for request_number in 1..=2 {
                let connection = EngineConnection::with_faults(testkit::fault_at_call(request_number, fault));
                let world =
                    World::with_connection(if has_retries { connection } else { connection.without_retries() }).await;
                let subscription = new_subscription(10, "2026-03-01");
                world.store(&subscription).await;
                let first = world.run_payments("2026-03-10").await;
                let requests: u64 = world.connection.request_counts().values().sum();
                assert!(
                    requests >= request_number,
                    "no fault was injected, because there were only {requests} requests"
                );
                visible_faults += u32::from(nonzero_counts(&first) != [("paid", 1)]);
                world.run_payments_at("2026-03-10", billing_time("2026-03-10") + TimeDelta::hours(2)).await;
                world.run_payments("2026-03-11").await;
                let case = format!(
                    "{fault:?} at request {request_number}, retries {has_retries}, first {:?}",
                    nonzero_counts(&first)
                );
                assert_eq!(world.charged_due_dates(), ["2026-03-10"], "{case}");
                assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-10"], "{case}");
                let stored = world.load(&subscription).await;
                assert_eq!((stored.due_on, stored.attempt), (date("2026-04-10"), None), "{case}");
            }
        }
    }
    assert!(visible_faults >= 3, "the SDK's retries hid all but {visible_faults} faults");
}
