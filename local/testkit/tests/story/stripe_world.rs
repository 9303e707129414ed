//! A world of the stories with one subscription, whose payments are charged at the stand-in for Stripe.

use std::sync::Arc;

use billing::Subscription;
use chrono::TimeDelta;
use emulator::{EngineConnection, InProcessTransport, StandInPaymentIntent, StripeServer};
use gateways::Stripe;
use sweep::BatchRequest;

use crate::world::{World, billing_time, date, new_subscription, nonzero_counts};

/// The day on which the subscription of each test is due.
pub const DAY: &str = "2026-03-10";

/// A world with one subscription, and a Stripe adapter that is connected to the stand-in for Stripe.
pub struct StripeWorld {
    pub world: World,
    pub server: Arc<StripeServer>,
    pub stripe: Arc<Stripe>,
    pub subscription: Subscription,
}

impl StripeWorld {
    /// Creates a world whose subscription has a valid card.
    pub async fn new() -> Self {
        Self::with_card("pm_card_visa").await
    }

    /// Creates a world whose subscription has the test payment method `card`.
    pub async fn with_card(card: &str) -> Self {
        let world = World::with_one_shard().await;
        let mut subscription = new_subscription(10, "2026-03-01");
        subscription.payment_method.payment_method = card.parse().unwrap();
        world.store(&subscription).await;
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(InProcessTransport::stripe_adapter(Arc::new(InProcessTransport(server.clone()))));
        Self { world, server, stripe, subscription }
    }

    /// Runs the payment batch of `day`, `hours` after the billing time. Returns the counts that are not zero.
    pub async fn run_payments(&self, day: &str, hours: i64) -> Vec<(&'static str, u64)> {
        let payments = self.world.separate_payment_batch(EngineConnection::default(), self.stripe.clone()).await;
        let now = billing_time(day) + TimeDelta::hours(hours);
        self.world.clock.set(now);
        let report = payments.run(&BatchRequest::for_date(date(day)), now + TimeDelta::hours(1)).await;
        nonzero_counts(&report.unwrap())
    }

    /// Returns the PaymentIntents that succeeded.
    pub fn succeeded_intents(&self) -> Vec<StandInPaymentIntent> {
        self.server.intents().into_iter().filter(|intent| intent.status == "succeeded").collect()
    }

    /// Returns the number of successful payments at Stripe, and the due dates of the receipts.
    pub async fn payments_and_receipts(&self) -> (usize, Vec<String>) {
        (self.succeeded_intents().len(), self.world.receipt_due_dates(&self.subscription).await)
    }

    /// Returns the number of receipts in the table.
    pub async fn receipt_count(&self) -> usize {
        self.world.receipt_due_dates(&self.subscription).await.len()
    }
}
