//! Tests of sign-ups that cannot be charged at once: the customer gets a quick response, and a run charges later.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use billing::{
    Account, AccountRecords, CreationRefusal, Dispute, DisputeStatus, GatewayAccount, GatewayToken, LeadDays,
    NewSubscription, Payment, ReceiptId, Subscription, SubscriptionId,
};
use charging::SignUpCharges;
use chrono::{DateTime, Utc};
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use sandbox::Sandbox;
use store::Paging;
use testkit::sample_account;
use ulid::Ulid;

use crate::world::{World, billing_time, date, new_subscription, numbered_subscription};

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

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of_customer(customer, since).await
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
    let settings = &config.charging;
    let charges = SignUpCharges::new(world.table.clone(), gateway.clone(), settings, world.clock.clone());
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

/// Returns a new subscription, number `n`, of the account of `first` with the same terms.
fn new_with_terms_of(first: &Subscription, n: u128) -> NewSubscription {
    NewSubscription {
        account: first.account.clone(),
        id: SubscriptionId::new(Ulid::from_parts(9, n)),
        external_id: None,
        sku: first.sku.clone(),
        product_name: first.product_name.clone(),
        email: None,
        payment_day: first.payment_day,
        price: first.price,
        payment_method: first.payment_method.clone(),
        first_payment_on: None,
        allow_second: false,
    }
}

#[tokio::test]
async fn concurrent_sign_ups_of_one_account_see_each_other() {
    let world = World::new().await;
    let first = new_subscription(10, "2026-03-01");
    world.table.put_account(&Account { id: first.account.clone(), ..sample_account() }).await.unwrap();
    let new = |n: u128| new_with_terms_of(&first, n);
    let create = |n: u128, existing: &AccountRecords| {
        let (today, now) = (date("2026-03-05"), billing_time("2026-03-05"));
        new(n).into_subscription(existing, 0, LeadDays::default(), today, now)
    };
    let (table, runs) = (world.table.clone(), AtomicU32::new(0));
    let to_json = |_: &Subscription| String::new();
    // Another request creates its subscription after this request has read the account.
    let slow = |existing: &AccountRecords| {
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            let (table, account) = (table.clone(), first.account.clone());
            let created = create(1, existing);
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let compute = |_: &AccountRecords| created.clone();
                runtime.block_on(table.create_subscription_of_account(&account, None, |_| String::new(), compute))
            })
            .join()
            .unwrap()
            .unwrap()
            .unwrap();
        }
        create(2, existing)
    };
    let refused = world.table.create_subscription_of_account(&first.account, None, to_json, slow).await.unwrap();
    let Err(CreationRefusal::AlreadySubscribed { id, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((id, runs.load(Ordering::Relaxed)), (new(1).id, 2), "the request reads the account again");
    let stored = world.table.get_subscriptions_by_account(&first.account, &Paging::all()).await.unwrap();
    assert_eq!(stored.items.len(), 1);
    let account = world.table.get_account(&first.account).await.unwrap().unwrap();
    assert_eq!(account.version, 1, "the count of creations is no part of the account's version");
}

#[tokio::test]
async fn every_new_subscription_of_a_disputed_card_has_the_dispute_mark() {
    let disputed_at = billing_time("2026-03-04");
    let first = new_subscription(10, "2026-03-01");
    let dispute = Dispute {
        id: "dp_1".parse().unwrap(),
        account: first.account.clone(),
        receipt: ReceiptId { due_on: date("2026-02-10"), subscription: first.id, sku: first.sku.clone() },
        payment: "pi_1".parse().unwrap(),
        payment_method: first.payment_method.payment_method.clone(),
        amount: first.price,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Open,
        opened_at: disputed_at,
        closed_at: None,
        version: 1,
    };
    let world = World::new().await;
    world.table.put_account(&Account { id: first.account.clone(), ..sample_account() }).await.unwrap();
    world.table.write_dispute(&dispute, None).await.unwrap();
    // The API, the import and the demo create subscriptions with the same function.
    let account = world.table.get_account(&first.account).await.unwrap().unwrap();
    let new = NewSubscription { external_id: Some("4711".parse().unwrap()), ..new_with_terms_of(&first, 1) };
    world.system.deployment.create_subscription(&account, new.clone(), date("2026-03-05")).await.unwrap();
    let stored = world.table.get_subscription(&first.account, new.id).await.unwrap().unwrap();
    assert_eq!(stored.disputed_at, Some(disputed_at));
}
