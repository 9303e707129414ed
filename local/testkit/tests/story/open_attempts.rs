//! Tests of the lane (the part of a run) that looks up open payment attempts: failed look-ups do not prevent other
//! charges, and the run reports the failed look-ups.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment, PaymentMethod, PaymentStatus, Subscription};
use chrono::{DateTime, Utc};
use emulator::EngineConnection;
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use sandbox::Sandbox;

use crate::world::{World, billing_time, card, new_subscription, nonzero_counts, numbered_subscription};

/// A gateway whose charges and look-ups time out for some customers.
#[derive(Debug)]
pub struct GatewayThatTimesOutForSomeCustomers {
    pub sandbox: Arc<Sandbox>,
    /// The customers whose requests time out.
    pub customers: HashSet<String>,
}

#[async_trait]
impl PaymentGateway for GatewayThatTimesOutForSomeCustomers {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        match self.customers.contains(request.payment_method.customer.as_str()) {
            true => ChargeResponse::Unknown { reason: "timed out".to_owned() },
            false => self.sandbox.charge(request).await,
        }
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        match self.customers.contains(customer.as_str()) {
            true => Err(GatewayError::Unknown { reason: "timed out".to_owned() }),
            false => self.sandbox.payments_of_customer(customer, since).await,
        }
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

#[tokio::test]
async fn failing_look_ups_do_not_prevent_other_charges_and_are_reported() {
    let world = World::with_payment_limits(&[("gateway-failures", "10")]).await;
    let customers: HashSet<String> = (0..20).map(|n| format!("cus_bad_{n}")).collect();
    for (n, customer) in (0..).zip(&customers) {
        let payment_method = PaymentMethod { customer: customer.parse().unwrap(), ..card("pm_card_visa") };
        world.store(&Subscription { payment_method, ..numbered_subscription(n, 9, "2026-03-01") }).await;
    }
    let healthy: Vec<Subscription> = (0..8).map(|n| numbered_subscription(100 + n, 12, "2026-03-01")).collect();
    for subscription in &healthy {
        world.store(subscription).await;
    }
    let gateway = Arc::new(GatewayThatTimesOutForSomeCustomers { sandbox: world.sandbox.clone(), customers });
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway).await;
    // The circuit breaker stops each of the first two runs after ten failures.
    for day in ["2026-03-09", "2026-03-10", "2026-03-11"] {
        world.run_payment_batch(&payments, day, billing_time(day)).await;
    }
    let report = world.run_payment_batch(&payments, "2026-03-12", billing_time("2026-03-12")).await;
    assert_eq!((report.complete, report.counts.paid, &report.stopped), (true, 8, &None), "{report:?}");
    assert_eq!(report.counts.failed, 20, "each of the 20 attempts has been in doubt for more than a day");
    let reason = &report.failures[0].reason;
    assert!(
        reason.starts_with("the attempt has been in doubt since 2026-03-") && reason.ends_with("resolve it by hand"),
        "{reason}"
    );
    let again = world.run_payment_batch(&payments, "2026-03-13", billing_time("2026-03-13")).await;
    assert_eq!(
        (again.counts.failed, again.is_done()),
        (20, false),
        "the attempts are reported every day until an operator resolves them"
    );
}

#[tokio::test]
async fn debit_may_be_processing_for_25_days_and_is_reported_after_that() {
    let world = World::new().await;
    world
        .store(&Subscription { payment_method: card("pm_usBankAccount_success"), ..new_subscription(10, "2026-03-01") })
        .await;
    let bank = Arc::new(GatewayThatAlwaysProcesses(world.sandbox.clone()));
    let payments = world.separate_payment_batch(EngineConnection::default(), bank).await;
    for (day, expected) in [("2026-03-10", "processing"), ("2026-04-04", "processing"), ("2026-04-05", "failed")] {
        let report = world.run_payment_batch(&payments, day, billing_time(day)).await;
        assert_eq!(nonzero_counts(&report), [(expected, 1)], "{day}");
    }
}

/// A gateway whose lists show every payment with the status processing.
#[derive(Debug)]
pub struct GatewayThatAlwaysProcesses(pub Arc<Sandbox>);

#[async_trait]
impl PaymentGateway for GatewayThatAlwaysProcesses {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.0.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        self.0.charge(request).await
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let payments = self.0.payments_of_customer(customer, since).await?;
        let as_processing = |payment| Payment { status: PaymentStatus::Processing, ..payment };
        Ok(payments.into_iter().map(as_processing).collect())
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.0.payment(id).await
    }
}
