//! What only a person can know, told by hand.

use billing::{Subscription, Token};
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::Fault;
use gateways::Entry;
use settling::{Known, Resolved};
use store::{Claim, Claimed};

use ulid::Ulid;

use crate::world::{World, another, cancelled, counts, date, key, morning, new_subscription};

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
    let of = (&subscription.account, subscription.id);
    world.by_hand(true).resolve(of, known, world.clock.now().date_naive()).await.unwrap()
}

/// Whatever the gateway says.
async fn insist(world: &World, subscription: &Subscription, known: &Known) -> Resolved {
    let of = (&subscription.account, subscription.id);
    world.by_hand(false).resolve(of, known, world.clock.now().date_naive()).await.unwrap()
}

#[tokio::test]
async fn resolve_by_hand_receipts_a_payment_that_the_gateway_lost_and_it_is_not_charged_again() {
    let (world, subscription) = in_doubt(30).await;
    let known = Known::Charged("pay_by_hand".parse().unwrap());
    let Resolved::Settled(settled) = insist(&world, &subscription, &known).await else { panic!() };
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

#[tokio::test]
async fn resolve_by_hand_is_refused_when_the_gateway_says_otherwise() {
    let world = World::new().await;
    let (subscription, other) = (new_subscription(10, "2026-03-01"), another(1, 10, "2026-03-01"));
    world.has(&other).await;
    world.charge("2026-03-10").await;
    world.has(&subscription).await;
    world.next_charge(Fault::LostAfter);
    world.charge("2026-03-10").await;
    world.clock.set(morning("2026-03-10") + TimeDelta::minutes(30));
    let paid: Vec<String> = made(&world);
    let contradicted = |resolved: Resolved| match resolved {
        Resolved::Contradicted(reason) => reason,
        other => panic!("{other:?}"),
    };
    let said = contradicted(resolve(&world, &subscription, &Known::NotCharged).await);
    assert_eq!(said, format!("the gateway says that it was charged: {}", paid[1]));
    for wrong in ["pay_that_never_was", paid[0].as_str()] {
        let said = contradicted(resolve(&world, &subscription, &Known::Charged(wrong.parse().unwrap())).await);
        let expected = format!("the gateway lists no successful payment {wrong} of this subscription for 2026-03");
        assert_eq!(said, expected);
    }
    assert_eq!(world.receipts(&subscription).await, Vec::<String>::new(), "nothing is settled");
    // At once: what was contradicted has written nothing.
    let right = Known::Charged(paid[1].parse().unwrap());
    assert!(matches!(resolve(&world, &subscription, &right).await, Resolved::Settled(_)));
    assert_eq!(world.receipts(&subscription).await, ["2026-03-10"]);
}

/// The identifiers of all payments, in order.
fn made(world: &World) -> Vec<String> {
    let id = |entry| match entry {
        Entry::Payment(made) => Some(made.id.to_string()),
        _ => None,
    };
    world.sandbox.entries().into_iter().filter_map(id).collect()
}

#[tokio::test]
async fn resolve_by_hand_ends_an_attempt_that_was_claimed_by_a_wrong_clock() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    // A year ahead.
    let (now, token) = (morning("2027-03-10"), Token(Ulid::from_parts(1, 1)));
    let claim = Claim { token, now, leased_until: now + TimeDelta::minutes(20) };
    let claimed = world.table.claim_payment(&key(&subscription), date("2026-03-10"), Ulid::nil(), claim).await.unwrap();
    assert!(matches!(claimed, Claimed::Held(_)));
    world.clock.set(morning("2026-03-10"));
    assert!(matches!(resolve(&world, &subscription, &Known::NotCharged).await, Resolved::Settled(_)));
    assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)]);
}
