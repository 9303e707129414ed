//! The lane of payments that are open: slow look-ups keep nobody from being charged, and are reported.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment, PaymentMethod, PaymentStatus, Subscription};
use chrono::{DateTime, Utc};
use emulator::Wire;
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway, Sandbox};

use crate::world::{World, another, card, counts, morning, new_subscription};

/// A gateway that takes charges, and at which nothing of some customers can be looked up.
#[derive(Debug)]
struct CannotLookUp {
    sandbox: Arc<Sandbox>,
    customers: HashSet<String>,
}

#[async_trait]
impl PaymentGateway for CannotLookUp {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        match self.customers.contains(request.payment_method.customer.as_str()) {
            true => ChargeAnswer::Unknown { reason: "timed out".to_owned() },
            false => self.sandbox.charge(request).await,
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        match self.customers.contains(customer.as_str()) {
            true => Err(GatewayError::Unknown { reason: "timed out".to_owned() }),
            false => self.sandbox.payments_of(customer, since).await,
        }
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

#[tokio::test]
async fn customers_that_cannot_be_looked_up_keep_nobody_from_being_charged_and_are_reported() {
    let world = World::with(&[("DUEDAY_GATEWAY_FAILURES", "10")]).await;
    let customers: HashSet<String> = (0..20).map(|n| format!("cus_bad_{n}")).collect();
    for (n, customer) in (0..).zip(&customers) {
        let payment_method = PaymentMethod { customer: customer.parse().unwrap(), ..card("pm_card_visa") };
        world.has(&Subscription { payment_method, ..another(n, 9, "2026-03-01") }).await;
    }
    let healthy: Vec<Subscription> = (0..8).map(|n| another(100 + n, 12, "2026-03-01")).collect();
    for subscription in &healthy {
        world.has(subscription).await;
    }
    let gateway = Arc::new(CannotLookUp { sandbox: world.sandbox.clone(), customers });
    let payments = world.payments_over(Wire::default(), gateway).await;
    // Ten at a time: the breaker stops the first two runs.
    for day in ["2026-03-09", "2026-03-10", "2026-03-11"] {
        world.charge_by(&payments, day, morning(day)).await;
    }
    let report = world.charge_by(&payments, "2026-03-12", morning("2026-03-12")).await;
    assert_eq!((report.complete, report.counts.paid, &report.stopped), (true, 8, &None), "{report:?}");
    assert_eq!(report.counts.failed, 20, "each has been in doubt for more than a day");
    let said = &report.failures[0].reason;
    assert!(said.starts_with("it has been in doubt since 2026-03-") && said.ends_with("resolve it by hand"), "{said}");
    let again = world.charge_by(&payments, "2026-03-13", morning("2026-03-13")).await;
    assert_eq!((again.counts.failed, again.is_done()), (20, false), "every day, until somebody resolves them");
}

#[tokio::test]
async fn debit_may_be_processing_for_25_days_and_is_reported_after_that() {
    let world = World::new().await;
    world
        .has(&Subscription { payment_method: card("pm_usBankAccount_success"), ..new_subscription(10, "2026-03-01") })
        .await;
    let bank = Arc::new(NeverDone(world.sandbox.clone()));
    let payments = world.payments_over(Wire::default(), bank).await;
    for (day, expected) in [("2026-03-10", "processing"), ("2026-04-04", "processing"), ("2026-04-05", "failed")] {
        let report = world.charge_by(&payments, day, morning(day)).await;
        assert_eq!(counts(&report), [(expected, 1)], "{day}");
    }
}

/// A bank that never says what became of a debit.
#[derive(Debug)]
struct NeverDone(Arc<Sandbox>);

#[async_trait]
impl PaymentGateway for NeverDone {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.0.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        self.0.charge(request).await
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let payments = self.0.payments_of(customer, since).await?;
        let still = |payment| Payment { status: PaymentStatus::Processing, ..payment };
        Ok(payments.into_iter().map(still).collect())
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.0.payment(id).await
    }
}
