//! Tests of payments at a strict stand-in for Stripe: despite a fault at any request to Stripe, no month is charged
//! twice and no month is missed.

use std::sync::Arc;
use std::time::Duration;

use billing::{Currency, Decline, Money, Payment, PaymentStatus, Subscription, SubscriptionStatus};
use chrono::{DateTime, TimeDelta, Utc};
use deployment::FaultyService;
use emulator::{
    EngineConnection, FaultInjector, STRIPE_KEY, ServerLimits, StandInPaymentIntent, StripeFault, StripeServer,
    serve_http,
};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages as _,
    GatewayError, PaymentGateway as _, Stripe,
};
use testkit::{FAULTS_AT_EACH_CALL, create_replaced_secret, fault_at_call};

use sweep::{BatchRequest, SweepError};

use crate::world::{World, billing_time, date, new_subscription, nonzero_counts};

/// The day on which the subscriptions of these tests are due.
const DAY: &str = "2026-03-10";

/// A world whose payments are charged at the stand-in for Stripe.
struct StripeWorld {
    world: World,
    server: Arc<StripeServer>,
    gateway: Arc<Stripe>,
}

/// Serves the stand-in `server` on a free port, and returns a Stripe adapter that is connected to this port with the
/// API key `key`.
pub async fn connect(server: &Arc<StripeServer>, key: &str) -> Stripe {
    connect_with_timeout(server, key, Duration::from_secs(5)).await
}

/// Does the same as [`connect`], with a time-out for each request.
async fn connect_with_timeout(server: &Arc<StripeServer>, key: &str, timeout: Duration) -> Stripe {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, server.clone().router(), ServerLimits::default()));
    Stripe::new(key, &url, timeout)
}

impl StripeWorld {
    /// Creates a world with `subscription` and a Stripe adapter that is connected to the stand-in.
    async fn new(subscription: &Subscription) -> Self {
        let world = World::with_one_shard().await;
        world.store(subscription).await;
        let server = StripeServer::new(world.clock.clone());
        let gateway = Arc::new(connect(&server, STRIPE_KEY).await);
        Self { world, server, gateway }
    }

    /// Runs the payment batch of `day`, `hours` after the billing time. Returns the counts that are not zero, or an
    /// error if the run was rejected, for example because Stripe's account cannot be read.
    async fn run_payments(&self, day: &str, hours: i64) -> Result<Vec<(&'static str, u64)>, SweepError> {
        let payments = self.world.separate_payment_batch(EngineConnection::default(), self.gateway.clone()).await;
        let now = billing_time(day) + TimeDelta::hours(hours);
        self.world.clock.set(now);
        let report = payments.run(&BatchRequest::for_date(date(day)), now + TimeDelta::hours(1)).await;
        report.map(|report| nonzero_counts(&report))
    }

    /// Returns the PaymentIntents with this status.
    fn intents_with_status(&self, status: &str) -> Vec<StandInPaymentIntent> {
        self.server.intents().into_iter().filter(|intent| intent.status == status).collect()
    }
}

/// Returns a subscription that is due on March 10 and has the test payment method `method`.
pub fn subscription_with_card(method: &str) -> Subscription {
    let mut subscription = new_subscription(10, "2026-03-01");
    subscription.payment_method.payment_method = method.parse().unwrap();
    subscription
}

/// The faults of the stand-in that the tests inject at each request.
const FAULTS: [StripeFault; 16] = [
    StripeFault::BusyAfter,
    StripeFault::ExecutedLater { status: 500, hours: 1 },
    StripeFault::Error { status: 400, kind: "api_error", is_carried_out: true },
    StripeFault::Error { status: 402, kind: "api_error", is_carried_out: true },
    StripeFault::Error { status: 404, kind: "api_error", is_carried_out: true },
    StripeFault::Error { status: 408, kind: "invalid_request_error", is_carried_out: true },
    StripeFault::Error { status: 424, kind: "api_error", is_carried_out: true },
    StripeFault::Error { status: 425, kind: "api_error", is_carried_out: true },
    StripeFault::Error { status: 424, kind: "api_error", is_carried_out: false },
    StripeFault::RateLimited,
    StripeFault::LockTimeout,
    StripeFault::InProgress,
    StripeFault::NotBegun,
    StripeFault::Busy,
    StripeFault::FailsAfter,
    StripeFault::LostAfter,
];

#[tokio::test]
async fn charge_is_made_once_if_stripe_refuses_a_key_that_has_been_replaced() {
    let subscription = new_subscription(10, "2026-03-01");
    let StripeWorld { world, server, gateway } = StripeWorld::new(&subscription).await;
    let key = create_replaced_secret("sk_test_revoked".to_owned(), STRIPE_KEY.to_owned(), &world.clock).await;
    let client = Arc::new(gateway.as_ref().clone().with_key(key));
    let payments = world.separate_payment_batch(EngineConnection::default(), client).await;
    let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
    assert_eq!((report.stopped, report.counts.paid, server.intents().len()), (None, 1, 1));
}

#[tokio::test]
async fn month_is_paid_once_despite_a_fault_at_any_request() {
    for fault in FAULTS {
        for request_number in 0..6 {
            let stripe_world = StripeWorld::new(&subscription_with_card("pm_card_visa")).await;
            stripe_world.server.set_next_faults((0..=request_number).map(|n| (n == request_number).then_some(fault)));
            for hours in [0, 2] {
                let _ = stripe_world.run_payments(DAY, hours).await;
            }
            for day in ["2026-03-11", "2026-03-12", "2026-03-13"] {
                let _ = stripe_world.run_payments(day, 0).await;
            }
            let paid = stripe_world.intents_with_status("succeeded");
            let case = format!("{fault:?} at request {request_number}");
            assert_eq!(paid.len(), 1, "{case}: {:?}", stripe_world.server);
            assert_eq!(paid[0].metadata["dueday_due_date"], DAY, "{case}");
            let subscription = subscription_with_card("pm_card_visa");
            let receipts = stripe_world.world.receipt_due_dates(&subscription).await;
            assert_eq!(receipts.len(), 1, "{case}: {receipts:?}");
        }
    }
}

#[tokio::test]
async fn charge_with_a_late_response_is_found_and_not_repeated() {
    for (card, later_outcome, charges) in
        [("pm_card_visa", "paid", 1), ("pm_card_visa_chargeDeclinedInsufficientFunds", "declined", 0)]
    {
        let stripe_world = StripeWorld::new(&subscription_with_card(card)).await;
        let with_short_timeout =
            Arc::new(connect_with_timeout(&stripe_world.server, STRIPE_KEY, Duration::from_millis(300)).await);
        let stripe_world = StripeWorld { gateway: with_short_timeout, ..stripe_world };
        stripe_world.server.set_next_faults([None, Some(StripeFault::ResponseTooLate)]);
        assert_eq!(stripe_world.run_payments(DAY, 0).await.unwrap(), [("in_doubt", 1)], "{card}");
        assert_eq!(stripe_world.server.intents().len(), 1, "{card}: Stripe made the charge");
        assert_eq!(stripe_world.run_payments(DAY, 2).await.unwrap(), [(later_outcome, 1)], "{card}");
        assert_eq!(stripe_world.intents_with_status("succeeded").len(), charges, "{card}");
        assert_eq!(stripe_world.server.intents().len(), 1, "{card}: no second charge");
    }
}

#[tokio::test]
async fn later_runs_complete_a_run_that_was_interrupted_at_any_call() {
    for (card, status, receipts) in [
        ("pm_card_visa", SubscriptionStatus::Active, 1),
        ("pm_card_visa_chargeDeclinedLostCard", SubscriptionStatus::Unpaid, 0),
        ("pm_usBankAccount_success", SubscriptionStatus::Active, 1),
    ] {
        for fault in FAULTS_AT_EACH_CALL {
            let mut calls = 1;
            loop {
                let stripe_world = StripeWorld::new(&subscription_with_card(card)).await;
                let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
                let gateway = Arc::new(FaultyService::new(stripe_world.gateway.clone(), injector.clone()));
                let connection = EngineConnection::with_injector(injector.clone()).without_retries();
                let payments = stripe_world.world.separate_payment_batch(connection, gateway).await;
                stripe_world.world.clock.set(billing_time(DAY));
                let (request, deadline) = (BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1));
                let _ = injector.run(payments.run(&request, deadline)).await;
                if injector.call_count() < calls {
                    break;
                }
                for (day, hours) in [(DAY, 2), ("2026-03-11", 0), ("2026-03-12", 0), ("2026-03-13", 0)] {
                    let _ = stripe_world.run_payments(day, hours).await;
                }
                let case = format!("{card}: {fault:?} at call {calls}");
                assert_eq!(
                    stripe_world.intents_with_status("succeeded").len(),
                    receipts,
                    "{case}: {:?}",
                    stripe_world.server
                );
                assert_eq!(
                    stripe_world.world.receipt_due_dates(&subscription_with_card(card)).await.len(),
                    receipts,
                    "{case}"
                );
                let stored = stripe_world.world.load(&subscription_with_card(card)).await;
                assert_eq!((stored.status, stored.attempt.is_some()), (status, false), "{case}");
                let open =
                    stripe_world.server.intents().into_iter().filter(|intent| intent.status.starts_with("requires"));
                assert_eq!(
                    open.count(),
                    0,
                    "{case}: a declined PaymentIntent can still be paid: {:?}",
                    stripe_world.server
                );
                calls += 1;
            }
            assert!(calls > 6, "{card} {fault:?}: only {calls} calls");
        }
    }
}

#[tokio::test]
async fn declined_payment_can_no_longer_be_paid_despite_a_fault_at_any_request() {
    for fault in FAULTS {
        for request_number in 0..6 {
            let stripe_world =
                StripeWorld::new(&subscription_with_card("pm_card_visa_chargeDeclinedInsufficientFunds")).await;
            stripe_world.server.set_next_faults((0..=request_number).map(|n| (n == request_number).then_some(fault)));
            for (day, hours) in [(DAY, 0), (DAY, 2), ("2026-03-11", 0), ("2026-03-11", 2)] {
                let _ = stripe_world.run_payments(day, hours).await;
            }
            let open = stripe_world.server.intents().into_iter().filter(|intent| intent.status != "canceled").count();
            assert_eq!(open, 0, "{fault:?} at request {request_number}: {:?}", stripe_world.server);
            let stored = stripe_world.world.load(&subscription_with_card("pm_card_visa")).await;
            assert_eq!(
                (stored.status, stored.attempt.is_some()),
                (SubscriptionStatus::PastDue, false),
                "{fault:?} at {request_number}"
            );
        }
    }
}

#[tokio::test]
async fn outcome_matches_the_test_payment_method() {
    for (method, outcome, status) in [
        ("pm_card_visa", ("paid", 1), SubscriptionStatus::Active),
        ("pm_card_visa_chargeDeclined", ("declined", 1), SubscriptionStatus::PastDue),
        ("pm_card_authenticationRequired", ("declined", 1), SubscriptionStatus::PastDue),
        ("pm_card_visa_chargeDeclinedLostCard", ("declined", 1), SubscriptionStatus::Unpaid),
        ("pm_usBankAccount_success", ("processing", 1), SubscriptionStatus::Active),
        ("pm_none", ("rejected", 1), SubscriptionStatus::Active),
    ] {
        let stripe_world = StripeWorld::new(&subscription_with_card(method)).await;
        assert_eq!(stripe_world.run_payments(DAY, 0).await.unwrap(), [outcome], "{method}");
        assert_eq!(stripe_world.world.load(&subscription_with_card(method)).await.status, status, "{method}");
    }
}

#[tokio::test]
async fn bank_debit_is_settled_days_later_with_its_outcome() {
    for (method, later_outcome) in
        [("pm_usBankAccount_success", "paid"), ("pm_usBankAccount_insufficientFunds", "declined")]
    {
        let stripe_world = StripeWorld::new(&subscription_with_card(method)).await;
        assert_eq!(stripe_world.run_payments(DAY, 0).await.unwrap(), [("processing", 1)]);
        assert_eq!(stripe_world.run_payments("2026-03-11", 0).await.unwrap(), [("processing", 1)], "{method}");
        assert_eq!(stripe_world.run_payments("2026-03-13", 0).await.unwrap(), [(later_outcome, 1)], "{method}");
    }
}

/// Charges 12.99 EUR with `stripe`, and returns the payment.
pub async fn charge_example(stripe: &Stripe) -> Payment {
    match stripe.charge(&charge_request(Money::new(1_299, "EUR".parse().unwrap()))).await {
        ChargeResponse::Succeeded(payment) => payment,
        other => panic!("{other:?}"),
    }
}

/// Returns an example of a charge request.
pub fn charge_request(amount: Money) -> ChargeRequest {
    ChargeRequest {
        idempotency_key: "key-1".to_owned(),
        table: None,
        account: "acme".parse().unwrap(),
        subscription: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
        sku: "gold".parse().unwrap(),
        due_on: DAY.parse().unwrap(),
        attempt_no: 1,
        amount,
        payment_method: billing::PaymentMethod {
            customer: "cus_1".parse().unwrap(),
            payment_method: "pm_card_visa".parse().unwrap(),
        },
    }
}

/// Returns the current time of the world's clock in whole seconds, as Stripe states times.
fn now_in_seconds(world: &World) -> DateTime<Utc> {
    DateTime::from_timestamp(clock::Clock::now(world.clock.as_ref()).timestamp(), 0).unwrap()
}

#[tokio::test]
async fn checkout_page_state_contains_the_payment_method_that_the_customer_entered() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = connect(&server, STRIPE_KEY).await;
    let request = |setup: &str, customer: Option<&str>| CheckoutPageRequest {
        setup: setup.parse().unwrap(),
        account: "acme".parse().unwrap(),
        email: "a@example.com".parse().unwrap(),
        customer: customer.map(|customer| customer.parse().unwrap()),
        return_url: "https://api.example.com/back".to_owned(),
    };
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let submit_card = async |page: &CheckoutPage, card: &str| {
        let response = browser.post(&page.url).body(format!("payment_method={card}")).send().await.unwrap();
        assert_eq!(response.headers()["location"], "https://api.example.com/back");
    };
    for (setup, customer, expected_customer) in
        [("01JZXCVBNM0123456789ABCDE1", Some("cus_9"), "cus_9"), ("01JZXCVBNM0123456789ABCDE2", None, "cus_000002")]
    {
        let request = request(setup, customer);
        let page = stripe.create_checkout_page(&request).await.unwrap();
        assert_eq!(
            stripe.create_checkout_page(&request).await.unwrap(),
            page,
            "a repeated request returns the same checkout page"
        );
        assert_eq!(stripe.checkout_page_state(&page.id).await.unwrap(), CheckoutPageState::Open);
        submit_card(&page, "pm_card_visa").await;
        let payment_method = billing::PaymentMethod {
            customer: expected_customer.parse().unwrap(),
            payment_method: "pm_card_visa".parse().unwrap(),
        };
        assert_eq!(
            stripe.checkout_page_state(&page.id).await.unwrap(),
            CheckoutPageState::Complete { payment_method, given_at: now_in_seconds(&world) }
        );
    }
    let page = stripe.create_checkout_page(&request("01JZXCVBNM0123456789ABCDE3", None)).await.unwrap();
    world.clock.set(page.expires_at);
    assert_eq!(stripe.checkout_page_state(&page.id).await.unwrap(), CheckoutPageState::Expired);
    assert!(stripe.checkout_page_state(&"cs_test_none".parse().unwrap()).await.is_err());
}

#[tokio::test]
async fn stripe_adapter_keeps_the_contract_of_the_gateway_trait() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = connect(&server, STRIPE_KEY).await;
    let euro: Currency = "EUR".parse().unwrap();
    let account = stripe.account().await.unwrap();
    assert_eq!((account.kind.as_str(), account.account.as_str(), account.live), ("stripe", "acct_standin", false));

    let charge = charge_request(Money::new(1_299, euro));
    let ChargeResponse::Succeeded(payment) = stripe.charge(&charge).await else { panic!() };
    assert_eq!((payment.amount, &payment.status), (charge.amount, &PaymentStatus::Succeeded));
    assert_eq!(stripe.charge(&charge).await, ChargeResponse::Succeeded(payment.clone()), "the same payment");
    assert_eq!(stripe.charge(&charge_request(Money::new(1, euro))).await, ChargeResponse::KeyReused);
    let dinars =
        ChargeRequest { idempotency_key: "key-2".into(), ..charge_request(Money::new(57_505, "KWD".parse().unwrap())) };
    assert_eq!(stripe.charge(&dinars).await, ChargeResponse::Rejected { code: "amount_not_representable".to_owned() });
    let krona =
        ChargeRequest { idempotency_key: "key-3".into(), ..charge_request(Money::new(500, "ISK".parse().unwrap())) };
    let ChargeResponse::Succeeded(in_krona) = stripe.charge(&krona).await else { panic!() };
    assert_eq!((in_krona.amount, server.intents()[1].amount), (krona.amount, 50_000));

    server.set_next_faults([Some(StripeFault::RateLimited)]);
    let throttled = stripe.charge(&ChargeRequest { idempotency_key: "key-4".into(), ..charge.clone() }).await;
    assert_eq!(throttled, ChargeResponse::Throttled { retry_after: Some(Duration::ZERO) });
    for fault in [StripeFault::InProgress, StripeFault::LockTimeout, StripeFault::NotBegun] {
        server.set_next_faults([Some(fault)]);
        let unknown = stripe.charge(&ChargeRequest { idempotency_key: "key-4".into(), ..charge.clone() }).await;
        assert!(matches!(unknown, ChargeResponse::Unknown { .. }), "{fault:?}: {unknown:?}");
    }
    assert_eq!(server.intents().len(), 2, "the failed requests made no charge");
    let before = server.request_count();
    server.set_next_faults([Some(StripeFault::Busy), Some(StripeFault::Busy)]);
    let retried = stripe.charge(&ChargeRequest { idempotency_key: "key-5".into(), ..charge.clone() }).await;
    assert!(
        matches!(retried, ChargeResponse::Succeeded(_)),
        "a header of Stripe's response allows a retry: {retried:?}"
    );
    assert_eq!((server.request_count() - before, server.intents().len()), (3, 3));
    server.set_next_faults([Some(StripeFault::Busy); 4]);
    let too_often = stripe.charge(&ChargeRequest { idempotency_key: "key-6".into(), ..charge.clone() }).await;
    assert!(matches!(too_often, ChargeResponse::Unknown { .. }), "the number of retries is limited: {too_often:?}");
    server.set_next_faults([]);
    let with_invalid_key = connect(&server, "sk_test_other").await;
    assert!(matches!(with_invalid_key.charge(&charge).await, ChargeResponse::Unusable { .. }));
    assert!(matches!(with_invalid_key.account().await, Err(GatewayError::Unusable { .. })));

    let customer = charge.payment_method.customer.clone();
    let since = clock::Clock::now(world.clock.as_ref()) - TimeDelta::days(1);
    for n in 0..250 {
        let more = ChargeRequest { idempotency_key: format!("more-{n}"), attempt_no: n + 2, ..charge.clone() };
        assert!(matches!(stripe.charge(&more).await, ChargeResponse::Succeeded(_)));
    }
    let before = server.request_count();
    assert_eq!(stripe.payments_of_customer(&customer, since).await.unwrap().len(), 253, "all list pages are read");
    assert_eq!(server.request_count() - before, 3);
    server.set_next_faults([None, Some(StripeFault::NotBegun)]);
    assert!(stripe.payments_of_customer(&customer, since).await.is_err(), "an incomplete list is an error");
    let declined = Decline { code: "lost_card".to_owned(), hard: true };
    let lost = ChargeRequest {
        idempotency_key: "lost".into(),
        payment_method: billing::PaymentMethod {
            customer: "cus_2".parse().unwrap(),
            payment_method: "pm_card_visa_chargeDeclinedLostCard".parse().unwrap(),
        },
        ..charge
    };
    // The adapter returns the decline only after the PaymentIntent has been cancelled, so that the decline is final.
    server.set_next_faults([None, Some(StripeFault::NotBegun)]);
    assert!(matches!(stripe.charge(&lost).await, ChargeResponse::Unknown { .. }));
    assert_eq!(stripe.charge(&lost).await, ChargeResponse::Declined(declined.clone()));
    let payments = stripe.payments_of_customer(&lost.payment_method.customer, since).await.unwrap();
    assert_eq!(
        payments.iter().map(|payment| payment.status.clone()).collect::<Vec<_>>(),
        [PaymentStatus::Declined(declined)]
    );
}
