//! Tests of the manual resolution of an attempt: an operator states the outcome of the attempt.

use std::sync::Arc;

use billing::{ActionKind, ClaimToken, Subscription, SubscriptionStatus};
use charging::{ApplyResult, OpenReason, StatedOutcome};
use chrono::{DateTime, TimeDelta};
use clock::Clock as _;
use emulator::Fault;
use gateways::PaymentGateway;
use sandbox::LedgerEntry;
use store::{Claim, ClaimOutcome, Paging};
use testkit::sample_action;

use ulid::Ulid;

use crate::world::{
    World, billing_time, cancel, connection_with_act_before, date, key, new_subscription, nonzero_counts,
    numbered_subscription, pause,
};

/// Returns a world with a subscription whose charge on March 10 got no response, and was not made. The clock is
/// `minutes` after the claim.
async fn world_with_attempt_in_doubt(minutes: i64) -> (World, Subscription) {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.inject_charge_fault(Fault::LostBefore);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("in_doubt", 1)]);
    world.clock.set(billing_time("2026-03-10") + TimeDelta::minutes(minutes));
    (world, subscription)
}

/// Resolves the open attempt with the outcome `stated`, if the gateway does not contradict this outcome.
async fn resolve(world: &World, subscription: &Subscription, stated: &StatedOutcome) -> ApplyResult {
    world.resolve_attempt(subscription, stated).await
}

/// Resolves the open attempt with the outcome `stated`, without a check at the gateway.
async fn resolve_without_check(world: &World, subscription: &Subscription, stated: &StatedOutcome) -> ApplyResult {
    let Subscription { account, id, .. } = subscription;
    let today = world.clock.now().date_naive();
    world.engine().resolve_attempt(None, account, *id, stated, today).await.unwrap()
}

/// Returns the stored subscription after the settlement `applied`.
fn settled(applied: ApplyResult) -> Subscription {
    match applied {
        ApplyResult::Settled(settled) => settled.settlement.subscription,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn resolve_as_charged_creates_a_receipt_and_prevents_another_charge() {
    let (world, subscription) = world_with_attempt_in_doubt(30).await;
    let stated = StatedOutcome::Charged("pay_by_hand".parse().unwrap());
    let settled = settled(resolve_without_check(&world, &subscription, &stated).await);
    assert_eq!((settled.attempt.clone(), settled.due_on), (None, date("2026-04-10")));
    assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-10"]);
    let second = resolve(&world, &subscription, &stated).await;
    assert_eq!(second, ApplyResult::NothingOpen, "the attempt can be resolved only once");
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), []);
    assert_eq!(world.charged_due_dates(), Vec::<String>::new(), "no request was sent to the gateway");
}

#[tokio::test]
async fn resolution_is_logged_and_the_runs_before_and_after_it_are_not() {
    let (world, subscription) = world_with_attempt_in_doubt(30).await;
    let engine = world.engine().with_action(sample_action(ActionKind::ResolvePayment));
    let gateway = Some(world.gateway.as_ref() as &dyn PaymentGateway);
    let Subscription { account, id, .. } = &subscription;
    for _ in 0..2 {
        let today = world.clock.now().date_naive();
        engine.resolve_attempt(gateway, account, *id, &StatedOutcome::NotCharged, today).await.unwrap();
    }
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("paid", 1)]);
    let (paging, now) = (Paging::all(), DateTime::UNIX_EPOCH);
    let page = world.table.get_actions_by_account(&subscription.account, &paging, now).await.unwrap();
    let logged = page.into_items().unwrap();
    let logged: Vec<_> = logged.into_iter().map(|entry| (entry.kind, entry.subscription)).collect();
    assert_eq!(logged, [(ActionKind::ResolvePayment, Some(subscription.id))]);
}

#[tokio::test]
async fn resolve_as_not_charged_leads_to_a_new_attempt_on_the_next_day() {
    let (world, subscription) = world_with_attempt_in_doubt(30).await;
    let retried = settled(resolve(&world, &subscription, &StatedOutcome::NotCharged).await);
    assert_eq!((retried.next_payment_on, retried.failed_attempts), (Some(date("2026-03-11")), 0));
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("paid", 1)]);
    assert_eq!(
        (world.charged_due_dates(), world.load(&subscription).await.attempt_seq),
        (vec!["2026-03-10".to_owned()], 2)
    );

    let (world, subscription) = world_with_attempt_in_doubt(30).await;
    world.change_subscription(&subscription, cancel).await;
    let dropped = settled(resolve(&world, &subscription, &StatedOutcome::NotCharged).await);
    assert_eq!((dropped.attempt, dropped.next_payment_on), (None, None), "no new attempt for a cancelled subscription");
}

#[tokio::test]
async fn resolve_is_rejected_while_a_worker_has_the_lease_of_the_attempt() {
    let (world, subscription) = world_with_attempt_in_doubt(10).await;
    let until = billing_time("2026-03-10") + TimeDelta::minutes(20);
    let leased = ApplyResult::Open(OpenReason::Leased { until });
    assert_eq!(resolve(&world, &subscription, &StatedOutcome::NotCharged).await, leased);
    let other = Subscription { id: new_subscription(11, "2026-03-01").id, ..subscription };
    assert_eq!(resolve(&world, &other, &StatedOutcome::NotCharged).await, ApplyResult::Missing);
}

#[tokio::test]
async fn attempt_of_a_stopped_subscription_stays_open_if_the_subscription_is_resumed_meanwhile() {
    let (world, subscription) = world_with_attempt_in_doubt(30).await;
    world.change_subscription(&subscription, pause).await;
    let (table, key) = (world.table.clone(), key(&subscription));
    // The engine reads the subscription, takes the attempt over, and then drops it, because the subscription is paused.
    let connection = connection_with_act_before(3, move || {
        let (table, key) = (table.clone(), key.clone());
        async move {
            let paused = table.get_subscription(&key.account, key.subscription).await.unwrap().unwrap();
            let resume = |stored: &Subscription| {
                let active = Subscription { status: SubscriptionStatus::Active, ..stored.clone() };
                Ok::<_, ()>(active.into())
            };
            table.write_settlement(paused, resume).await.unwrap();
        }
    });
    let engine = world.system.with_connection(Arc::new(connection)).charging_engine();
    let Subscription { account, id, .. } = &subscription;
    let today = world.clock.now().date_naive();
    let applied = engine.resolve_attempt(None, account, *id, &StatedOutcome::NotCharged, today).await.unwrap();
    assert_eq!(applied, ApplyResult::Open(OpenReason::NotFinal), "no other worker has leased the attempt");
    assert!(world.load(&subscription).await.attempt.is_some());
}

#[tokio::test]
async fn resolve_is_rejected_if_the_gateway_contradicts_the_stated_outcome() {
    let world = World::new().await;
    let (subscription, other) = (new_subscription(10, "2026-03-01"), numbered_subscription(1, 10, "2026-03-01"));
    world.store(&other).await;
    world.run_payments("2026-03-10").await;
    world.store(&subscription).await;
    world.inject_charge_fault(Fault::LostAfter);
    world.run_payments("2026-03-10").await;
    world.clock.set(billing_time("2026-03-10") + TimeDelta::minutes(30));
    let payments: Vec<String> = payment_ids(&world);
    let contradiction = |applied: ApplyResult| match applied {
        ApplyResult::Open(OpenReason::ReportContradicts(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let reason = contradiction(resolve(&world, &subscription, &StatedOutcome::NotCharged).await);
    assert_eq!(reason, format!("the gateway reports that the attempt was charged: {}", payments[1]));
    for wrong in ["pay_that_never_was", payments[0].as_str()] {
        let stated = StatedOutcome::Charged(wrong.parse().unwrap());
        let reason = contradiction(resolve(&world, &subscription, &stated).await);
        let expected = format!("the gateway lists no successful payment {wrong} of this subscription for 2026-03");
        assert_eq!(reason, expected);
    }
    assert_eq!(world.receipt_due_dates(&subscription).await, Vec::<String>::new(), "nothing is settled");
    // The rejected calls wrote nothing, so the correct outcome can be stated at once.
    let correct = StatedOutcome::Charged(payments[1].parse().unwrap());
    settled(resolve(&world, &subscription, &correct).await);
    assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-10"]);
}

/// Returns the ids of all payments in the sandbox's ledger, in order.
fn payment_ids(world: &World) -> Vec<String> {
    let id = |entry| match entry {
        LedgerEntry::Payment(payment) => Some(payment.id.to_string()),
        _ => None,
    };
    world.sandbox.entries().into_iter().filter_map(id).collect()
}

#[tokio::test]
async fn resolve_settles_an_attempt_that_was_claimed_with_a_wrong_clock() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    // The clock of the worker that claimed the attempt is a year fast.
    let (now, token) = (billing_time("2027-03-10"), ClaimToken(Ulid::from_parts(1, 1)));
    let claim = Claim { token, now, leased_until: now + TimeDelta::minutes(20) };
    let claimed = world.table.claim_payment(&key(&subscription), date("2026-03-10"), Ulid::nil(), claim).await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)));
    world.clock.set(billing_time("2026-03-10"));
    settled(resolve(&world, &subscription, &StatedOutcome::NotCharged).await);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("paid", 1)]);
}
