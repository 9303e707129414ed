//! Tests of sign-ups that cannot be charged at once: the customer gets a quick response, and a run charges later.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment, Subscription};
use chrono::{DateTime, Utc};
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use payments::PaymentBatch;
use sandbox::Sandbox;

use crate::world::{World, billing_time, date, numbered_subscription};

/// The day of the sign-ups.
const DAY: &str = "2026-03-10";

/// A gateway that throttles each charge, as with the HTTP status 429 and a Retry-After header.
#[derive(Debug)]
struct ThrottlingGateway {
    sandbox: Arc<Sandbox>,
    retry_after: Duration,
    /// The number of charge requests.
    charges: AtomicU32,
}

#[async_trait]
impl PaymentGateway for ThrottlingGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeResponse {
        self.charges.fetch_add(1, Ordering::Relaxed);
        ChargeResponse::Throttled { retry_after: Some(self.retry_after) }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

/// Asserts that `sign_up` ends within 8 seconds. A sign-up that waits for the gateway takes at least 10 seconds.
async fn assert_sign_up_is_quick<T>(sign_up: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(8), sign_up).await.expect("the sign-up must not wait for the gateway")
}

#[tokio::test]
async fn sign_up_requests_do_not_wait_while_the_gateway_throttles_requests() {
    let world = World::new().await;
    let subscriptions: Vec<Subscription> = (1..=3).map(|n| numbered_subscription(n, 10, "2026-03-01")).collect();
    for subscription in &subscriptions {
        world.store(subscription).await;
    }
    world.clock.set(billing_time(DAY));
    let retry_after = Duration::from_secs(3_600);
    let gateway =
        Arc::new(ThrottlingGateway { sandbox: world.sandbox.clone(), retry_after, charges: AtomicU32::new(0) });
    let config = &world.system.deployment.config;
    let charges = PaymentBatch::new(
        world.table.clone(),
        gateway.clone(),
        (&config.billing, &config.charging),
        world.clock.clone(),
    )
    .for_sign_up();
    for subscription in &subscriptions {
        assert_sign_up_is_quick(charges.charge_now(subscription, date(DAY))).await.unwrap();
    }
    assert_eq!(gateway.charges.load(Ordering::Relaxed), 1, "no further requests within the Retry-After time");
    assert!(world.load(&subscriptions[0]).await.attempt.is_some(), "a run will look up and charge the first attempt");
    for later in &subscriptions[1..] {
        let stored = world.load(later).await;
        assert_eq!((stored.attempt_seq, stored.next_payment_on), (0, Some(date(DAY))), "no attempt was started");
    }
    // A later run at a gateway that does not throttle charges all three subscriptions.
    let report = world.run_payments_at(DAY, billing_time(DAY) + chrono::TimeDelta::hours(1)).await;
    assert_eq!(report.counts.paid, 3, "{report:?}");
}
