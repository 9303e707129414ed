//! Tests with a gateway that refuses all requests because of its rate limit: a run stops early, with a reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use emulator::EngineConnection;
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use sandbox::Sandbox;

use crate::world::{World, billing_time, new_subscription};

/// A gateway that refuses all charges and lists because of its rate limit. Each refusal takes a minute.
#[derive(Debug)]
struct ThrottlingGateway {
    sandbox: Arc<Sandbox>,
    clock: Arc<SimulatedClock>,
    refusals: AtomicU32,
}

impl ThrottlingGateway {
    /// Counts a refusal, lets a minute pass, and returns the error.
    fn refuse(&self) -> GatewayError {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        self.clock.set(self.clock.now() + TimeDelta::minutes(1));
        GatewayError::Throttled { retry_after: Some(Duration::ZERO) }
    }
}

#[async_trait]
impl PaymentGateway for ThrottlingGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeResponse {
        self.refuse().into()
    }

    async fn payments_of_customer(&self, _: &GatewayToken, _: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        Err(self.refuse())
    }

    async fn payment(&self, _: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        Err(self.refuse())
    }
}

#[tokio::test]
async fn run_stops_if_the_gateway_refuses_charges_until_the_permission_to_charge_has_ended() {
    let world = World::with_settings(&[("DUEDAY_CONCURRENCY", "1")]).await;
    world.set_payment_limits(&[("gateway-failures", "5")]).await;
    for day in 1..=9 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    let (sandbox, clock) = (world.sandbox.clone(), world.clock.clone());
    let gateway = Arc::new(ThrottlingGateway { sandbox, clock, refusals: AtomicU32::new(0) });
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway.clone()).await;
    let report = world.run_payment_batch(&payments, "2026-03-10", billing_time("2026-03-10")).await;
    let reason = "the gateway failed 5 times in a row";
    assert!(report.stopped.as_deref().is_some_and(|stopped| stopped.starts_with(reason)), "{report:?}");
    assert_eq!((report.counts.in_doubt, report.is_done()), (5, false), "{report:?}");
    assert_eq!(gateway.refusals.load(Ordering::Relaxed), 25, "five refusals in five minutes for each of five attempts");

    // The later run claims the other four subscriptions. Then the refused look-up of an old attempt is the fifth
    // failure, because the rate limit applies to all requests.
    let later = world.clock.now() + TimeDelta::hours(2);
    let report = world.run_payment_batch(&payments, "2026-03-10", later).await;
    assert!(report.stopped.as_deref().is_some_and(|stopped| stopped.starts_with(reason)), "{report:?}");
    assert_eq!((report.counts.in_doubt, world.charged_due_dates().len()), (5, 0), "{report:?}");
}
