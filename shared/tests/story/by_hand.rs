//! What only a person can know, told by hand.

use chrono::TimeDelta;
use emulator::Fault;
use shared::billing::{Policy, Subscription};
use shared::payments::{Known, Resolved, resolve_by_hand};

use crate::world::{World, cancelled, counts, date, morning, new_subscription};

/// A subscription whose charge of 10 March got no answer, `minutes` after it was claimed.
async fn in_doubt(minutes: i64) -> (World, Subscription) {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.next_charge(Fault::LostBefore);
    assert_eq!(counts(&world.charge("2026-03-10").await), [("in_doubt", 1)]);
    world.clock.set(morning("2026-03-10") + TimeDelta::minutes(minutes));
    (world, subscription)
}

async fn resolve(world: &World, subscription: &Subscription, known: &Known) -> Resolved {
    let (policy, on) = (Policy::default(), (date("2026-03-10"), TimeDelta::minutes(20)));
    let of = (&subscription.account, subscription.id);
    resolve_by_hand(&world.table, of, known, &policy, on, world.clock.as_ref()).await.unwrap()
}

#[tokio::test]
async fn resolve_by_hand_receipts_a_payment_that_the_gateway_lost_and_it_is_not_charged_again() {
    let (world, subscription) = in_doubt(30).await;
    let known = Known::Charged("pay_by_hand".parse().unwrap());
    let Resolved::Settled(settled) = resolve(&world, &subscription, &known).await else { panic!() };
    assert_eq!((settled.attempt.clone(), settled.due_on), (None, date("2026-04-10")));
    assert_eq!(world.receipts(&subscription).await, ["2026-03-10"]);
    assert_eq!(resolve(&world, &subscription, &known).await, Resolved::NothingOpen, "once");
    assert_eq!(counts(&world.charge("2026-03-11").await), []);
    assert_eq!(world.charged(), Vec::<String>::new(), "the gateway was not asked");
}

#[tokio::test]
async fn resolve_by_hand_as_not_charged_is_tried_again_tomorrow_under_a_new_number() {
    let (world, subscription) = in_doubt(30).await;
    let Resolved::Settled(settled) = resolve(&world, &subscription, &Known::NotCharged).await else { panic!() };
    assert_eq!((settled.next_payment_on, settled.failed_attempts), (Some(date("2026-03-11")), 0));
    assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)]);
    assert_eq!((world.charged(), world.stored(&subscription).await.attempt_seq), (vec!["2026-03-10".to_owned()], 2));

    let (world, subscription) = in_doubt(30).await;
    world.customer(&subscription, cancelled).await;
    let Resolved::Settled(dropped) = resolve(&world, &subscription, &Known::NotCharged).await else { panic!() };
    assert_eq!((dropped.attempt, dropped.next_payment_on), (None, None), "a stopped one is dropped");
}

#[tokio::test]
async fn resolve_by_hand_is_refused_while_a_worker_holds_the_attempt() {
    let (world, subscription) = in_doubt(10).await;
    let until = morning("2026-03-10") + TimeDelta::minutes(20);
    assert_eq!(resolve(&world, &subscription, &Known::NotCharged).await, Resolved::Held(until));
    let other = Subscription { id: new_subscription(11, "2026-03-01").id, ..subscription };
    assert_eq!(resolve(&world, &other, &Known::NotCharged).await, Resolved::Missing);
}
