//! What Stripe's errors mean for a payment: advice to stop, errors that are kept under a key, customers that are gone, and keys that may
//! not read the account.

use std::sync::Arc;

use billing::{PaymentMethod, PaymentStatus, Status, Subscription};
use chrono::{DateTime, TimeDelta};
use emulator::{STRIPE_KEY, STRIPE_RESTRICTED_KEY, StripeFault, StripeServer, Wire};
use gateways::{GatewayError, PaymentGateway as _, Stripe};
use sweep::{BatchRequest, SweepError};

use crate::stripe::{charged, paying_with, reached};
use crate::world::{World, counts, date, morning};

const DAY: &str = "2026-03-10";

/// A run of `day`, so many hours after its first, that charges by `stripe`.
async fn run(
    world: &World,
    stripe: &Arc<Stripe>,
    day: &str,
    hours: i64,
) -> Result<Vec<(&'static str, u64)>, SweepError> {
    let payments = world.payments_over(Wire::default(), stripe.clone()).await;
    let now = morning(day) + TimeDelta::hours(hours);
    world.clock.set(now);
    let report = payments.run(&BatchRequest::on(date(day)), now + TimeDelta::hours(1)).await?;
    Ok(counts(&report))
}

async fn world_with(subscription: &Subscription, key: &str) -> (World, Arc<StripeServer>, Arc<Stripe>) {
    let world = World::new().await;
    world.has(subscription).await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = Arc::new(reached(&server, key).await);
    (world, server, stripe)
}

fn of_customer(customer: &str) -> Subscription {
    let payment_method =
        PaymentMethod { customer: customer.parse().unwrap(), payment_method: "pm_card_visa".parse().unwrap() };
    Subscription { payment_method, ..paying_with("pm_card_visa") }
}

#[tokio::test]
async fn decline_with_the_advice_not_to_try_again_is_hard() {
    for (advice, status) in
        [("do_not_try_again", Status::Unpaid), ("try_again_later", Status::PastDue), ("new_advice", Status::PastDue)]
    {
        let subscription = paying_with("pm_card_visa_chargeDeclinedInsufficientFunds");
        let (world, server, stripe) = world_with(&subscription, STRIPE_KEY).await;
        server.advise(advice);
        assert_eq!(run(&world, &stripe, DAY, 0).await.unwrap(), [("declined", 1)]);
        assert_eq!(world.stored(&subscription).await.status, status, "{advice}");
        let customer = &subscription.payment_method.customer;
        let listed = stripe.payments_of(customer, DateTime::UNIX_EPOCH).await.unwrap();
        let PaymentStatus::Declined(decline) = &listed[0].status else { panic!("{listed:?}") };
        assert_eq!(
            (decline.code.as_str(), decline.hard),
            ("insufficient_funds", status == Status::Unpaid),
            "{advice}: a look-up says the same"
        );
    }
}

#[tokio::test]
async fn cancel_that_failed_once_does_not_fail_again_under_the_same_key() {
    let subscription = paying_with("pm_card_visa_chargeDeclinedInsufficientFunds");
    let (world, server, stripe) = world_with(&subscription, STRIPE_KEY).await;
    // Stripe keeps the error of the cancel for a day, under the key of the request.
    server.next([None, None, Some(StripeFault::FailsKept)]);
    assert_eq!(run(&world, &stripe, DAY, 0).await.unwrap(), [("in_doubt", 1)]);
    // The first look-up meets an error too, and so would each that follows under the same key.
    server.next([None, None, Some(StripeFault::FailsKept)]);
    assert_eq!(run(&world, &stripe, DAY, 1).await.unwrap(), [("in_doubt", 1)]);
    assert_eq!(run(&world, &stripe, DAY, 2).await.unwrap(), [("declined", 1)], "{server:?}");
}

#[tokio::test]
async fn payments_of_a_customer_that_stripe_never_had_are_none() {
    let (_world, _server, stripe) = world_with(&paying_with("pm_card_visa"), STRIPE_KEY).await;
    let listed = stripe.payments_of(&"cus_gone".parse().unwrap(), DateTime::UNIX_EPOCH).await;
    assert_eq!(listed, Ok(Vec::new()));
    let deleted = stripe.payments_of(&"cus_deleted".parse().unwrap(), DateTime::UNIX_EPOCH).await.unwrap_err();
    let GatewayError::Unknown { reason } = &deleted else { panic!("{deleted}") };
    assert!(reason.contains("cus_deleted was deleted"), "{reason}");
}

#[tokio::test]
async fn attempt_of_an_unknown_customer_ends_and_that_of_a_deleted_one_stays_in_doubt() {
    for (customer, outcome) in [("cus_gone", "rejected"), ("cus_deleted", "in_doubt")] {
        let subscription = of_customer(customer);
        let (world, server, stripe) = world_with(&subscription, STRIPE_KEY).await;
        // The response to the charge is lost, so it is looked up by its customer.
        server.next([None, Some(StripeFault::NotBegun)]);
        assert_eq!(run(&world, &stripe, DAY, 0).await.unwrap(), [("in_doubt", 1)]);
        assert_eq!(run(&world, &stripe, DAY, 1).await.unwrap(), [(outcome, 1)], "{customer}");
    }
}

#[tokio::test]
async fn run_with_a_restricted_key_charges_though_it_may_not_read_the_account() {
    let subscription = paying_with("pm_card_visa");
    let (world, server, stripe) = world_with(&subscription, STRIPE_RESTRICTED_KEY).await;
    assert!(matches!(stripe.account().await, Err(GatewayError::Unusable { .. })));
    assert_eq!(run(&world, &stripe, DAY, 0).await.unwrap(), [("paid", 1)]);
    assert_eq!(run(&world, &stripe, "2026-04-10", 0).await.unwrap(), [("paid", 1)]);
    assert_eq!(server.intents().len(), 2);
    let named = world.table.get_settings().await.unwrap().unwrap().gateway.unwrap();
    assert_eq!((named.kind.as_str(), named.account.as_str(), named.live), ("stripe", "cus_made000001", false));
    // The secret key of the same account charges for the same table.
    let secret = Arc::new(reached(&server, STRIPE_KEY).await);
    assert_eq!(run(&world, &secret, "2026-05-10", 0).await.unwrap(), [("paid", 1)]);
}

#[tokio::test]
async fn run_with_the_key_of_another_account_is_refused_whatever_the_keys_may_read() {
    for (first, second) in [
        (STRIPE_RESTRICTED_KEY, STRIPE_RESTRICTED_KEY),
        (STRIPE_RESTRICTED_KEY, STRIPE_KEY),
        (STRIPE_KEY, STRIPE_RESTRICTED_KEY),
    ] {
        let subscription = paying_with("pm_card_visa");
        let (world, _server, stripe) = world_with(&subscription, first).await;
        assert_eq!(run(&world, &stripe, DAY, 0).await.unwrap(), [("paid", 1)]);
        let other = StripeServer::new(world.clock.clone());
        let elsewhere = Arc::new(reached(&other, second).await);
        let refused = run(&world, &elsewhere, "2026-04-10", 0).await.unwrap_err().to_string();
        if second == STRIPE_RESTRICTED_KEY && first == STRIPE_KEY {
            assert!(refused.contains("rak_accounts_kyc_basic_read"), "the permission is named: {refused}");
        } else {
            assert!(refused.contains("the payments of this table are made at stripe cus_made000001"), "{refused}");
        }
        assert_eq!(other.intents().len(), 0, "nothing is charged there");
    }
}

#[tokio::test]
async fn charge_and_look_up_are_sent_for_the_version_that_the_stand_in_imitates() {
    // The stand-in refuses every other version, as its strictness wants.
    let (_world, _server, stripe) = world_with(&paying_with("pm_card_visa"), STRIPE_KEY).await;
    assert_eq!(charged(&stripe).await.status, PaymentStatus::Succeeded);
}
