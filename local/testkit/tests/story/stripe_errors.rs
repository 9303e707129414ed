//! Tests of Stripe's errors: decline advice, errors that Stripe stores for an idempotency key, unknown and deleted
//! customers, and API keys without permission to read the account.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use billing::{PaymentMethod, PaymentStatus, Subscription, SubscriptionStatus};
use chrono::{DateTime, TimeDelta};
use emulator::{EngineConnection, STRIPE_KEY, STRIPE_RESTRICTED_KEY, StripeFault, StripeServer};
use gateways::{GatewayError, PaymentGateway as _, Stripe};
use publishing::{BusEntry, EventBus, FailedEntry, Publisher};
use serde_json::Value;
use sweep::{BatchRequest, SweepError};

use crate::stripe::{charge_example, connect, subscription_with_card};
use crate::world::{World, billing_time, date, nonzero_counts};

/// The day on which the subscriptions of these tests are due.
const DAY: &str = "2026-03-10";

/// Runs the payment batch of `day` with the gateway `stripe`, `hours` after the billing time. Returns the counts that
/// are not zero, or the error if the run was rejected.
async fn run_payments(
    world: &World,
    stripe: &Arc<Stripe>,
    day: &str,
    hours: i64,
) -> Result<Vec<(&'static str, u64)>, SweepError> {
    let payments = world.separate_payment_batch(EngineConnection::default(), stripe.clone()).await;
    let now = billing_time(day) + TimeDelta::hours(hours);
    world.clock.set(now);
    let report = payments.run(&BatchRequest::for_date(date(day)), now + TimeDelta::hours(1)).await?;
    Ok(nonzero_counts(&report))
}

/// Creates a world with `subscription`, a stand-in for Stripe, and a Stripe adapter that is connected to the stand-in
/// with the API key `key`.
async fn world_with_stripe(subscription: &Subscription, key: &str) -> (World, Arc<StripeServer>, Arc<Stripe>) {
    let world = World::new().await;
    world.store(subscription).await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = Arc::new(connect(&server, key).await);
    (world, server, stripe)
}

/// Returns a subscription with a valid test card that belongs to the Stripe customer `customer`.
fn subscription_of_customer(customer: &str) -> Subscription {
    let payment_method =
        PaymentMethod { customer: customer.parse().unwrap(), payment_method: "pm_card_visa".parse().unwrap() };
    Subscription { payment_method, ..subscription_with_card("pm_card_visa") }
}

#[tokio::test]
async fn decline_with_the_advice_do_not_try_again_is_hard() {
    for (advice, status) in [
        ("do_not_try_again", SubscriptionStatus::Unpaid),
        ("try_again_later", SubscriptionStatus::PastDue),
        ("new_advice", SubscriptionStatus::PastDue),
    ] {
        let subscription = subscription_with_card("pm_card_visa_chargeDeclinedInsufficientFunds");
        let (world, server, stripe) = world_with_stripe(&subscription, STRIPE_KEY).await;
        server.set_decline_advice(advice);
        assert_eq!(run_payments(&world, &stripe, DAY, 0).await.unwrap(), [("declined", 1)]);
        assert_eq!(world.load(&subscription).await.status, status, "{advice}");
        let customer = &subscription.payment_method.customer;
        let listed = stripe.payments_of_customer(customer, DateTime::UNIX_EPOCH).await.unwrap();
        let PaymentStatus::Declined(decline) = &listed[0].status else { panic!("{listed:?}") };
        assert_eq!(
            (decline.code.as_str(), decline.hard),
            ("insufficient_funds", status == SubscriptionStatus::Unpaid),
            "{advice}: a look-up returns the same decline"
        );
    }
}

#[tokio::test]
async fn failed_cancel_is_retried_with_a_new_idempotency_key() {
    let subscription = subscription_with_card("pm_card_visa_chargeDeclinedInsufficientFunds");
    let (world, server, stripe) = world_with_stripe(&subscription, STRIPE_KEY).await;
    // Stripe stores the error of the cancel request for a day, by the request's idempotency key.
    server.set_next_faults([None, None, Some(StripeFault::FailsBefore)]);
    assert_eq!(run_payments(&world, &stripe, DAY, 0).await.unwrap(), [("in_doubt", 1)]);
    // The cancel request of the first look-up fails, too. Later cancel requests would also fail if they used the same
    // key.
    server.set_next_faults([None, None, Some(StripeFault::FailsBefore)]);
    assert_eq!(run_payments(&world, &stripe, DAY, 1).await.unwrap(), [("in_doubt", 1)]);
    assert_eq!(run_payments(&world, &stripe, DAY, 2).await.unwrap(), [("declined", 1)], "{server:?}");
}

#[tokio::test]
async fn unknown_customer_has_no_payments_and_a_deleted_customer_is_an_error() {
    let (_world, _server, stripe) = world_with_stripe(&subscription_with_card("pm_card_visa"), STRIPE_KEY).await;
    let unknown = stripe.payments_of_customer(&"cus_gone".parse().unwrap(), DateTime::UNIX_EPOCH).await;
    assert_eq!(unknown, Ok(Vec::new()));
    let deleted = stripe.payments_of_customer(&"cus_deleted".parse().unwrap(), DateTime::UNIX_EPOCH).await.unwrap_err();
    let GatewayError::Unknown { reason } = &deleted else { panic!("{deleted}") };
    assert!(reason.contains("cus_deleted was deleted"), "{reason}");
}

/// A fake of the event bus that stores the published events in memory.
#[derive(Clone, Default)]
struct RecordedEvents(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl EventBus for RecordedEvents {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        self.0.lock().unwrap().extend(entries.iter().map(|entry| serde_json::to_value(&entry.event).unwrap()));
        Vec::new()
    }
}

#[tokio::test]
async fn code_of_300_kilobytes_is_stored_and_published_with_100_characters() {
    let subscription = subscription_with_card("pm_card_visa_chargeDeclinedInsufficientFunds");
    let (world, server, stripe) = world_with_stripe(&subscription, STRIPE_KEY).await;
    let stream = world.system.engine.stream(world.table.name()).unwrap();
    server.set_decline_code("é".repeat(150 * 1_024).leak());
    assert_eq!(run_payments(&world, &stripe, DAY, 0).await.unwrap(), [("declined", 1)]);
    let listed =
        stripe.payments_of_customer(&subscription.payment_method.customer, DateTime::UNIX_EPOCH).await.unwrap();
    let PaymentStatus::Declined(decline) = &listed[0].status else { panic!("{listed:?}") };
    assert_eq!(decline.code.len(), 300 * 1_024, "the adapter receives the whole code");

    let cut = "é".repeat(100);
    let items = world.table.scan().await.unwrap();
    let record = items.iter().find(|item| item["SK"].as_s().unwrap().starts_with("ATT#")).unwrap();
    assert_eq!(record["Code"].as_s().unwrap(), &cut);
    let kept = RecordedEvents::default();
    let published = Publisher::new(kept.clone()).publish(&stream.records_after(None, 1_000).unwrap()).await.unwrap();
    assert_eq!((published.unreadable, published.first_unpublished), (0, None));
    let events = kept.0.lock().unwrap();
    let declined = events.iter().find(|event| event["type"] == "payment.declined").unwrap();
    assert_eq!(declined["data"]["code"], cut);
    assert!(events.iter().all(|event| event.to_string().len() < 2_000), "no event contains the whole code");
}

#[tokio::test]
async fn attempt_is_rejected_if_stripe_does_not_know_the_customer_and_stays_in_doubt_if_the_customer_was_deleted() {
    for (customer, outcome) in [("cus_gone", "rejected"), ("cus_deleted", "in_doubt")] {
        let subscription = subscription_of_customer(customer);
        let (world, server, stripe) = world_with_stripe(&subscription, STRIPE_KEY).await;
        // The response to the charge is lost, so the attempt is looked up in the list of the customer's payments.
        server.set_next_faults([None, Some(StripeFault::NotBegun)]);
        assert_eq!(run_payments(&world, &stripe, DAY, 0).await.unwrap(), [("in_doubt", 1)]);
        assert_eq!(run_payments(&world, &stripe, DAY, 1).await.unwrap(), [(outcome, 1)], "{customer}");
    }
}

#[tokio::test]
async fn run_with_a_restricted_key_charges_without_permission_to_read_the_account() {
    let subscription = subscription_with_card("pm_card_visa");
    let (world, server, stripe) = world_with_stripe(&subscription, STRIPE_RESTRICTED_KEY).await;
    assert!(matches!(stripe.account().await, Err(GatewayError::Unusable { .. })));
    assert_eq!(run_payments(&world, &stripe, DAY, 0).await.unwrap(), [("paid", 1)]);
    assert_eq!(run_payments(&world, &stripe, "2026-04-10", 0).await.unwrap(), [("paid", 1)]);
    assert_eq!(server.intents().len(), 2);
    let gateway = world.table.get_settings().await.unwrap().unwrap().gateway.unwrap();
    assert_eq!((gateway.kind.as_str(), gateway.account.as_str(), gateway.live), ("stripe", "cus_made000001", false));
    // A run with the secret key of the same Stripe account may charge for the same table.
    let with_secret_key = Arc::new(connect(&server, STRIPE_KEY).await);
    assert_eq!(run_payments(&world, &with_secret_key, "2026-05-10", 0).await.unwrap(), [("paid", 1)]);
}

#[tokio::test]
async fn run_with_the_key_of_another_account_is_rejected_for_all_kinds_of_keys() {
    for (first, second) in [
        (STRIPE_RESTRICTED_KEY, STRIPE_RESTRICTED_KEY),
        (STRIPE_RESTRICTED_KEY, STRIPE_KEY),
        (STRIPE_KEY, STRIPE_RESTRICTED_KEY),
    ] {
        let subscription = subscription_with_card("pm_card_visa");
        let (world, _server, stripe) = world_with_stripe(&subscription, first).await;
        assert_eq!(run_payments(&world, &stripe, DAY, 0).await.unwrap(), [("paid", 1)]);
        let other = StripeServer::new(world.clock.clone());
        let at_other = Arc::new(connect(&other, second).await);
        let error = run_payments(&world, &at_other, "2026-04-10", 0).await.unwrap_err().to_string();
        if second == STRIPE_RESTRICTED_KEY && first == STRIPE_KEY {
            assert!(error.contains("rak_accounts_kyc_basic_read"), "the error names the missing permission: {error}");
        } else {
            assert!(error.contains("the payments of this table are made at stripe cus_made000001"), "{error}");
        }
        assert_eq!(other.intents().len(), 0, "no charge in the other Stripe account");
    }
}

#[tokio::test]
async fn requests_have_the_api_version_of_the_stand_in() {
    // The stand-in rejects requests with any other API version.
    let (_world, _server, stripe) = world_with_stripe(&subscription_with_card("pm_card_visa"), STRIPE_KEY).await;
    assert_eq!(charge_example(&stripe).await.status, PaymentStatus::Succeeded);
}
