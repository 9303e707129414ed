//! The protocol over Stripe, which a strict stand-in speaks: what goes wrong at any request, no month is paid twice, and none is
//! missed.

use std::sync::Arc;
use std::time::Duration;

use billing::{Currency, Decline, Money, Payment, PaymentStatus, Status, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use emulator::{Fault, Injector, Intent, Limits, STRIPE_KEY, StripeFault, StripeServer, Wire, serve};
use gateways::{
    ChargeAnswer, ChargeRequest, GatewayError, Page, PageRequest, PageState, PaymentGateway as _,
    PaymentMethodPages as _, Stripe,
};
use testkit::{Faulty, nth};

use sweep::{BatchRequest, SweepError};

use crate::world::{World, counts, date, morning, new_subscription};

const DAY: &str = "2026-03-10";

/// A world that charges by Stripe.
struct Striped {
    world: World,
    server: Arc<StripeServer>,
    gateway: Arc<Stripe>,
}

pub async fn reached(server: &Arc<StripeServer>, key: &str) -> Stripe {
    reached_within(server, key, Duration::from_secs(5)).await
}

async fn reached_within(server: &Arc<StripeServer>, key: &str, timeout: Duration) -> Stripe {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, server.clone().router(), Limits::default()));
    Stripe::new(key, &url, timeout)
}

impl Striped {
    async fn new(subscription: &Subscription) -> Self {
        let world = World::new().await;
        world.has(subscription).await;
        let server = StripeServer::new(world.clock.clone());
        let gateway = Arc::new(reached(&server, STRIPE_KEY).await);
        Self { world, server, gateway }
    }

    /// A run of `day`, so many hours after its first. It is an error if Stripe does not say whose account it is.
    async fn run(&self, day: &str, hours: i64) -> Result<Vec<(&'static str, u64)>, SweepError> {
        let payments = self.world.payments_over(Wire::default(), self.gateway.clone()).await;
        let now = morning(day) + TimeDelta::hours(hours);
        self.world.clock.set(now);
        let report = payments.run(&BatchRequest::on(date(day)), now + TimeDelta::hours(1)).await;
        report.map(|report| counts(&report))
    }

    fn in_status(&self, status: &str) -> Vec<Intent> {
        self.server.intents().into_iter().filter(|intent| intent.status == status).collect()
    }
}

pub fn paying_with(method: &str) -> Subscription {
    let mut subscription = new_subscription(10, "2026-03-01");
    subscription.payment_method.payment_method = method.parse().unwrap();
    subscription
}

const FAULTS: [StripeFault; 16] = [
    StripeFault::BusyAfter,
    StripeFault::RepairedAfter { status: 500, hours: 1 },
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
async fn month_is_paid_once_whatever_goes_wrong_at_whichever_request() {
    for fault in FAULTS {
        for nth in 0..6 {
            let striped = Striped::new(&paying_with("pm_card_visa")).await;
            striped.server.next((0..=nth).map(|n| (n == nth).then_some(fault)));
            for hours in [0, 2] {
                let _ = striped.run(DAY, hours).await;
            }
            for day in ["2026-03-11", "2026-03-12", "2026-03-13"] {
                let _ = striped.run(day, 0).await;
            }
            let paid = striped.in_status("succeeded");
            let story = format!("{fault:?} at request {nth}");
            assert_eq!(paid.len(), 1, "{story}: {:?}", striped.server);
            assert_eq!(paid[0].metadata["dueday_due_date"], DAY, "{story}");
            let subscription = paying_with("pm_card_visa");
            let receipts = striped.world.receipts(&subscription).await;
            assert_eq!(receipts.len(), 1, "{story}: {receipts:?}");
        }
    }
}

#[tokio::test]
async fn charge_whose_answer_comes_too_late_is_found_and_not_made_again() {
    for (card, then, charges) in
        [("pm_card_visa", "paid", 1), ("pm_card_visa_chargeDeclinedInsufficientFunds", "declined", 0)]
    {
        let striped = Striped::new(&paying_with(card)).await;
        let hasty = Arc::new(reached_within(&striped.server, STRIPE_KEY, Duration::from_millis(300)).await);
        let striped = Striped { gateway: hasty, ..striped };
        striped.server.next([None, Some(StripeFault::Late)]);
        assert_eq!(striped.run(DAY, 0).await.unwrap(), [("in_doubt", 1)], "{card}");
        assert_eq!(striped.server.intents().len(), 1, "{card}: it was made");
        assert_eq!(striped.run(DAY, 2).await.unwrap(), [(then, 1)], "{card}");
        assert_eq!(striped.in_status("succeeded").len(), charges, "{card}");
        assert_eq!(striped.server.intents().len(), 1, "{card}: once");
    }
}

#[tokio::test]
async fn crash_at_any_call_of_a_run_is_made_good_by_the_next_ones() {
    for (card, status, receipts) in [
        ("pm_card_visa", Status::Active, 1),
        ("pm_card_visa_chargeDeclinedLostCard", Status::Unpaid, 0),
        ("pm_usBankAccount_success", Status::Active, 1),
    ] {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
            let mut calls = 1;
            loop {
                let striped = Striped::new(&paying_with(card)).await;
                let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
                let gateway = Arc::new(Faulty::new(striped.gateway.clone(), injector.clone()));
                let wire = Wire::through(injector.clone()).and_no_retries();
                let payments = striped.world.payments_over(wire, gateway).await;
                striped.world.clock.set(morning(DAY));
                let (request, deadline) = (BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1));
                let _ = injector.run(payments.run(&request, deadline)).await;
                if injector.calls() < calls {
                    break;
                }
                for (day, hours) in [(DAY, 2), ("2026-03-11", 0), ("2026-03-12", 0), ("2026-03-13", 0)] {
                    let _ = striped.run(day, hours).await;
                }
                let story = format!("{card}: {fault:?} of call {calls}");
                assert_eq!(striped.in_status("succeeded").len(), receipts, "{story}: {:?}", striped.server);
                assert_eq!(striped.world.receipts(&paying_with(card)).await.len(), receipts, "{story}");
                let stored = striped.world.stored(&paying_with(card)).await;
                assert_eq!((stored.status, stored.attempt.is_some()), (status, false), "{story}");
                let open = striped.server.intents().into_iter().filter(|intent| intent.status.starts_with("requires"));
                assert_eq!(open.count(), 0, "{story}: what was declined can be paid: {:?}", striped.server);
                calls += 1;
            }
            assert!(calls > 6, "{card} {fault:?}: {calls} calls");
        }
    }
}

#[tokio::test]
async fn what_is_declined_can_no_longer_be_paid_whatever_goes_wrong() {
    for fault in FAULTS {
        for nth in 0..6 {
            let striped = Striped::new(&paying_with("pm_card_visa_chargeDeclinedInsufficientFunds")).await;
            striped.server.next((0..=nth).map(|n| (n == nth).then_some(fault)));
            for (day, hours) in [(DAY, 0), (DAY, 2), ("2026-03-11", 0), ("2026-03-11", 2)] {
                let _ = striped.run(day, hours).await;
            }
            let open = striped.server.intents().into_iter().filter(|intent| intent.status != "canceled").count();
            assert_eq!(open, 0, "{fault:?} at request {nth}: {:?}", striped.server);
            let stored = striped.world.stored(&paying_with("pm_card_visa")).await;
            assert_eq!((stored.status, stored.attempt.is_some()), (Status::PastDue, false), "{fault:?} at {nth}");
        }
    }
}

#[tokio::test]
async fn outcome_is_what_stripe_says_of_each_payment_method() {
    for (method, first, status) in [
        ("pm_card_visa", ("paid", 1), Status::Active),
        ("pm_card_visa_chargeDeclined", ("declined", 1), Status::PastDue),
        ("pm_card_authenticationRequired", ("declined", 1), Status::PastDue),
        ("pm_card_visa_chargeDeclinedLostCard", ("declined", 1), Status::Unpaid),
        ("pm_usBankAccount_success", ("processing", 1), Status::Active),
        ("pm_none", ("rejected", 1), Status::Active),
    ] {
        let striped = Striped::new(&paying_with(method)).await;
        assert_eq!(striped.run(DAY, 0).await.unwrap(), [first], "{method}");
        assert_eq!(striped.world.stored(&paying_with(method)).await.status, status, "{method}");
    }
}

#[tokio::test]
async fn bank_debit_is_settled_days_later_by_what_has_become_of_it() {
    for (method, then) in [("pm_usBankAccount_success", "paid"), ("pm_usBankAccount_insufficientFunds", "declined")] {
        let striped = Striped::new(&paying_with(method)).await;
        assert_eq!(striped.run(DAY, 0).await.unwrap(), [("processing", 1)]);
        assert_eq!(striped.run("2026-03-11", 0).await.unwrap(), [("processing", 1)], "{method}");
        assert_eq!(striped.run("2026-03-13", 0).await.unwrap(), [(then, 1)], "{method}");
    }
}

/// A payment of 12.99 EUR.
pub async fn charged(stripe: &Stripe) -> Payment {
    match stripe.charge(&request(Money::new(1_299, "EUR".parse().unwrap()))).await {
        ChargeAnswer::Succeeded(payment) => payment,
        other => panic!("{other:?}"),
    }
}

fn request(amount: Money) -> ChargeRequest {
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

fn at_second(world: &World) -> DateTime<Utc> {
    DateTime::from_timestamp(clock::Clock::now(world.clock.as_ref()).timestamp(), 0).unwrap()
}

#[tokio::test]
async fn page_of_stripes_tells_what_a_customer_gave_on_it() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = reached(&server, STRIPE_KEY).await;
    let request = |setup: &str, customer: Option<&str>| PageRequest {
        setup: setup.parse().unwrap(),
        account: "acme".parse().unwrap(),
        email: "a@example.com".parse().unwrap(),
        customer: customer.map(|customer| customer.parse().unwrap()),
        return_url: "https://api.example.com/back".to_owned(),
    };
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let gives = async |page: &Page, card: &str| {
        let given = browser.post(&page.url).body(format!("payment_method={card}")).send().await.unwrap();
        assert_eq!(given.headers()["location"], "https://api.example.com/back");
    };
    for (setup, customer, becomes) in
        [("01JZXCVBNM0123456789ABCDE1", Some("cus_9"), "cus_9"), ("01JZXCVBNM0123456789ABCDE2", None, "cus_000002")]
    {
        let request = request(setup, customer);
        let page = stripe.open_page(&request).await.unwrap();
        assert_eq!(stripe.open_page(&request).await.unwrap(), page, "asked for again, it is the same one");
        assert_eq!(stripe.page_state(&page.id).await.unwrap(), PageState::Open);
        gives(&page, "pm_card_visa").await;
        let payment_method = billing::PaymentMethod {
            customer: becomes.parse().unwrap(),
            payment_method: "pm_card_visa".parse().unwrap(),
        };
        assert_eq!(
            stripe.page_state(&page.id).await.unwrap(),
            PageState::Complete { payment_method, given_at: at_second(&world) }
        );
    }
    let page = stripe.open_page(&request("01JZXCVBNM0123456789ABCDE3", None)).await.unwrap();
    world.clock.set(page.expires_at);
    assert_eq!(stripe.page_state(&page.id).await.unwrap(), PageState::Expired);
    assert!(stripe.page_state(&"cs_test_none".parse().unwrap()).await.is_err());
}

#[tokio::test]
async fn adapter_answers_what_it_promises() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = reached(&server, STRIPE_KEY).await;
    let euro: Currency = "EUR".parse().unwrap();
    let account = stripe.account().await.unwrap();
    assert_eq!((account.kind.as_str(), account.account.as_str(), account.live), ("stripe", "acct_standin", false));

    let charge = request(Money::new(1_299, euro));
    let ChargeAnswer::Succeeded(payment) = stripe.charge(&charge).await else { panic!() };
    assert_eq!((payment.amount, &payment.status), (charge.amount, &PaymentStatus::Succeeded));
    assert_eq!(stripe.charge(&charge).await, ChargeAnswer::Succeeded(payment.clone()), "the same key");
    assert_eq!(stripe.charge(&request(Money::new(1, euro))).await, ChargeAnswer::KeyReused);
    let dinars =
        ChargeRequest { idempotency_key: "key-2".into(), ..request(Money::new(57_505, "KWD".parse().unwrap())) };
    assert_eq!(stripe.charge(&dinars).await, ChargeAnswer::Rejected { code: "amount_not_representable".to_owned() });
    let krona = ChargeRequest { idempotency_key: "key-3".into(), ..request(Money::new(500, "ISK".parse().unwrap())) };
    let ChargeAnswer::Succeeded(in_krona) = stripe.charge(&krona).await else { panic!() };
    assert_eq!((in_krona.amount, server.intents()[1].amount), (krona.amount, 50_000));

    server.next([Some(StripeFault::RateLimited)]);
    let throttled = stripe.charge(&ChargeRequest { idempotency_key: "key-4".into(), ..charge.clone() }).await;
    assert_eq!(throttled, ChargeAnswer::Throttled { retry_after: Some(Duration::ZERO) });
    for fault in [StripeFault::InProgress, StripeFault::LockTimeout, StripeFault::NotBegun] {
        server.next([Some(fault)]);
        let unknown = stripe.charge(&ChargeRequest { idempotency_key: "key-4".into(), ..charge.clone() }).await;
        assert!(matches!(unknown, ChargeAnswer::Unknown { .. }), "{fault:?}: {unknown:?}");
    }
    assert_eq!(server.intents().len(), 2, "nothing was made");
    let before = server.requests();
    server.next([Some(StripeFault::Busy), Some(StripeFault::Busy)]);
    let again = stripe.charge(&ChargeRequest { idempotency_key: "key-5".into(), ..charge.clone() }).await;
    assert!(matches!(again, ChargeAnswer::Succeeded(_)), "Stripe said that it may be sent again: {again:?}");
    assert_eq!((server.requests() - before, server.intents().len()), (3, 3));
    server.next([Some(StripeFault::Busy); 4]);
    let given_up = stripe.charge(&ChargeRequest { idempotency_key: "key-6".into(), ..charge.clone() }).await;
    assert!(matches!(given_up, ChargeAnswer::Unknown { .. }), "not for ever: {given_up:?}");
    server.next([]);
    let stranger = reached(&server, "sk_test_other").await;
    assert!(matches!(stranger.charge(&charge).await, ChargeAnswer::Unusable { .. }));
    assert!(matches!(stranger.account().await, Err(GatewayError::Unusable { .. })));

    let customer = charge.payment_method.customer.clone();
    let since = clock::Clock::now(world.clock.as_ref()) - TimeDelta::days(1);
    for n in 0..250 {
        let more = ChargeRequest { idempotency_key: format!("more-{n}"), attempt_no: n + 2, ..charge.clone() };
        assert!(matches!(stripe.charge(&more).await, ChargeAnswer::Succeeded(_)));
    }
    let before = server.requests();
    assert_eq!(stripe.payments_of(&customer, since).await.unwrap().len(), 253, "all pages");
    assert_eq!(server.requests() - before, 3);
    server.next([None, Some(StripeFault::NotBegun)]);
    assert!(stripe.payments_of(&customer, since).await.is_err(), "part of a list is none");
    let declined = Decline { code: "lost_card".to_owned(), hard: true };
    let lost = ChargeRequest {
        idempotency_key: "lost".into(),
        payment_method: billing::PaymentMethod {
            customer: "cus_2".parse().unwrap(),
            payment_method: "pm_card_visa_chargeDeclinedLostCard".parse().unwrap(),
        },
        ..charge
    };
    // The decline is told only once it is final.
    server.next([None, Some(StripeFault::NotBegun)]);
    assert!(matches!(stripe.charge(&lost).await, ChargeAnswer::Unknown { .. }));
    assert_eq!(stripe.charge(&lost).await, ChargeAnswer::Declined(declined.clone()));
    let payments = stripe.payments_of(&lost.payment_method.customer, since).await.unwrap();
    assert_eq!(
        payments.iter().map(|payment| payment.status.clone()).collect::<Vec<_>>(),
        [PaymentStatus::Declined(declined)]
    );
}
