//! Sign-ups that cannot be charged now: the customer is answered at once, and a run charges later.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment, Subscription};
use chrono::{DateTime, Utc};
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway, Sandbox};
use payments::ChargeDue;

use crate::world::{World, another, date, morning};

const DAY: &str = "2026-03-10";

/// A gateway that answers each charge with 429, and asks to wait.
#[derive(Debug)]
struct Busy {
    sandbox: Arc<Sandbox>,
    retry_after: Duration,
    charges: AtomicU32,
}

#[async_trait]
impl PaymentGateway for Busy {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeAnswer {
        self.charges.fetch_add(1, Ordering::Relaxed);
        ChargeAnswer::Throttled { retry_after: Some(self.retry_after) }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

/// A sign-up that waits for the gateway waits for ten seconds and longer.
async fn at_once<T>(sign_up: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(8), sign_up).await.expect("the customer is not kept waiting")
}

#[tokio::test]
async fn sign_ups_are_answered_at_once_while_the_gateway_asks_to_wait_for_an_hour() {
    let world = World::new().await;
    let subscriptions: Vec<Subscription> = (1..=3).map(|n| another(n, 10, "2026-03-01")).collect();
    for subscription in &subscriptions {
        world.has(subscription).await;
    }
    world.clock.set(morning(DAY));
    let retry_after = Duration::from_secs(3_600);
    let gateway = Arc::new(Busy { sandbox: world.sandbox.clone(), retry_after, charges: AtomicU32::new(0) });
    let config = &world.system.deployment.config;
    let charges =
        ChargeDue::new(world.table.clone(), gateway.clone(), (&config.billing, &config.charging), world.clock.clone())
            .while_waiting();
    for subscription in &subscriptions {
        at_once(charges.charge_now(subscription, date(DAY))).await.unwrap();
    }
    assert_eq!(gateway.charges.load(Ordering::Relaxed), 1, "it is not asked again while it wants no requests");
    assert!(world.stored(&subscriptions[0]).await.attempt.is_some(), "the first is looked up and charged by a run");
    for later in &subscriptions[1..] {
        let stored = world.stored(later).await;
        assert_eq!((stored.attempt_seq, stored.next_payment_on), (0, Some(date(DAY))), "nothing was begun");
    }
    // A run charges all three.
    let report = world.charge_at(DAY, morning(DAY) + chrono::TimeDelta::hours(1)).await;
    assert_eq!(report.counts.paid, 3, "{report:?}");
}
