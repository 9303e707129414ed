//! How a customer gives a card, and what comes of it.

use billing::{GatewayToken, Status};
use clock::Clock as _;
use rest::Caller;
use serde_json::Value;

use crate::router::world::{World, acme, at};

const SETUPS: &str = "POST /accounts/acme/payment-method-setups";

impl World {
    async fn opened(&self, body: &str) -> Value {
        let opened = self.ask(SETUPS, body).await;
        assert_eq!((opened.status, opened.json()["status"].as_str()), (201, Some("open")), "{}", opened.text);
        opened.json()
    }

    /// The customer gives `card` on the page of `setup`.
    fn gives(&self, setup: &Value, card: &str) {
        let page: GatewayToken = format!("page_{}", setup["id"].as_str().unwrap()).parse().unwrap();
        assert!(self.sandbox.give_at(&page, &card.parse().unwrap(), self.clock.now()).unwrap());
    }

    /// The customer's browser comes back.
    async fn comes_back(&self, setup: &Value) -> String {
        let path = format!("GET /payment-method-setups/{}/return", setup["id"].as_str().unwrap());
        let page = self.anonymous(&path, &[("accept", "text/html")], "").await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text
    }

    async fn read(&self, setup: &Value) -> Value {
        let path = format!("GET /accounts/acme/payment-method-setups/{}", setup["id"].as_str().unwrap());
        self.send(&acme(), &path, &[], "").await.json()
    }

    async fn card(&self) -> String {
        self.stored().await.payment_method.payment_method.to_string()
    }
}

#[tokio::test]
async fn card_that_a_customer_gives_pays_what_is_owed_at_the_next_run() {
    let world = World::new().await;
    let lost = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclinedLostCard"}}"#;
    assert_eq!(world.ask("PATCH {gold}", lost).await.status, 200);
    world.charge("2026-03-10T06:00:00Z").await;
    assert_eq!(world.stored().await.status, Status::Unpaid);

    let setup = world.opened("{}").await;
    assert!(setup["url"].as_str().unwrap().starts_with("http://127.0.0.1:7879/pages/page_"), "{setup}");
    world.gives(&setup, "pm_card_mastercard");
    assert!(world.comes_back(&setup).await.contains("Your card is saved"));
    let stored = world.stored().await;
    assert_eq!((stored.status, world.card().await.as_str()), (Status::PastDue, "pm_card_mastercard"));
    assert_eq!(stored.payment_method.customer.as_str(), "cus_1", "the customer that the gateway knows already");
    world.charge("2026-03-11T06:00:00Z").await;
    assert_eq!(world.stored().await.status, Status::Active);
    let read = world.read(&setup).await;
    assert_eq!(
        (&read["status"], &read["payment_method"]["payment_method"]),
        (&"complete".into(), &"pm_card_mastercard".into())
    );
}

#[tokio::test]
async fn older_card_does_not_come_back_with_a_browser_that_goes_back() {
    let world = World::new().await;
    let (first, second) = (world.opened("{}").await, world.opened("{}").await);
    world.gives(&first, "pm_card_amex");
    world.comes_back(&first).await;
    world.gives(&second, "pm_card_mastercard");
    world.comes_back(&second).await;
    world.comes_back(&first).await;
    assert_eq!(world.card().await, "pm_card_mastercard");
}

#[tokio::test]
async fn card_of_a_customer_whose_browser_did_not_come_back_is_used_when_the_setup_is_read() {
    let world = World::new().await;
    let setup = world.opened("{}").await;
    world.gives(&setup, "pm_card_mastercard");
    assert_eq!(
        (world.card().await.as_str(), &world.read(&setup).await["status"]),
        ("pm_card_visa", &"complete".into())
    );
    assert_eq!(world.card().await, "pm_card_mastercard");
}

#[tokio::test]
async fn older_card_of_a_setup_that_nobody_came_back_to_does_not_take_the_place_of_a_newer_one() {
    for by_setup in [true, false] {
        let world = World::new().await;
        let forgotten = world.opened("{}").await;
        world.gives(&forgotten, "pm_card_amex");
        world.clock.set(at("2026-03-05T13:00:00Z"));
        if by_setup {
            let newer = world.opened("{}").await;
            world.gives(&newer, "pm_card_mastercard");
            world.comes_back(&newer).await;
        } else {
            let newer = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_mastercard"}}"#;
            assert_eq!(world.ask("PATCH {gold}", newer).await.status, 200);
        }
        assert_eq!(world.read(&forgotten).await["status"], "complete");
        assert_eq!(world.card().await, "pm_card_mastercard", "by a setup: {by_setup}");
    }
}

#[tokio::test]
async fn nothing_changes_until_a_card_is_given() {
    let world = World::new().await;
    let setup = world.opened(&format!(r#"{{"subscriptions": ["{}"]}}"#, world.gold.id)).await;
    let before = world.stored().await;
    assert!(world.comes_back(&setup).await.contains("No card was given"));
    assert_eq!(world.stored().await, before);
    world.clock.set(at("2026-03-06T12:00:00Z"));
    assert_eq!(world.read(&setup).await["status"], "expired");
    assert!(world.comes_back(&setup).await.contains("No card was given"));
}

#[tokio::test]
async fn card_is_for_the_subscriptions_that_are_named_and_for_none_that_is_cancelled() {
    let world = World::new().await;
    let silver = world.ask("POST /accounts/acme/subscriptions", crate::router::world::NEW).await.json();
    let silver = silver["id"].as_str().unwrap();
    let setup = world.opened(&format!(r#"{{"subscriptions": ["{silver}"]}}"#)).await;
    world.gives(&setup, "pm_card_mastercard");
    world.comes_back(&setup).await;
    assert_eq!(world.card().await, "pm_card_visa", "it was not named");
    let read = world.ask(&format!("GET /accounts/acme/subscriptions/{silver}"), "").await.json();
    assert_eq!(read["payment_method"]["payment_method"], "pm_card_mastercard");

    let all = world.opened("{}").await;
    assert_eq!(world.ask("POST {gold}/cancel", "{}").await.status, 200);
    world.gives(&all, "pm_card_amex");
    assert!(world.comes_back(&all).await.contains("Your card is saved"));
    let read = world.ask(&format!("GET /accounts/acme/subscriptions/{silver}"), "").await.json();
    assert_eq!(
        (read["payment_method"]["payment_method"].as_str(), world.card().await.as_str()),
        (Some("pm_card_amex"), "pm_card_visa")
    );
    let named = format!(r#"{{"subscriptions": ["{}"]}}"#, world.gold.id);
    let refused = world.ask(SETUPS, &named).await;
    assert!(refused.problem().starts_with("422 refused-field subscriptions: the subscription"), "{}", refused.text);
}

#[tokio::test]
async fn setup_is_refused_for_what_is_not_there_and_answered_again_under_its_key() {
    let world = World::new().await;
    for (body, said) in [
        (
            r#"{"subscriptions": ["01JZXCVBNM0123456789ABCDEF"]}"#,
            "422 refused-field subscriptions: there is no subscription",
        ),
        (r#"{"subscriptions": []}"#, "400 invalid-field subscriptions: must name 1 to 100"),
        (r#"{"subscriptions": ["x"]}"#, "400 invalid-field subscriptions: "),
        (r#"{"card": "4242"}"#, "400 invalid-field card: "),
    ] {
        let refused = world.ask(SETUPS, body).await;
        assert!(refused.problem().starts_with(said), "{body}: {}", refused.problem());
    }
    let nobodys = world.ask("POST /accounts/nobody/payment-method-setups", "{}").await;
    assert!(nobodys.problem().starts_with("404 not-found"), "{}", nobodys.text);
    let other = Caller::Account("somebody".parse().unwrap());
    assert_eq!(world.send(&other, SETUPS, &[], "{}").await.status, 404);

    let (first, again) = (world.keyed(SETUPS, "k", "{}").await, world.keyed(SETUPS, "k", "{}").await);
    assert_eq!((first.status, again.status, first.text == again.text), (201, 201, true));
    let setup = first.json();
    let of_another = format!("GET /accounts/somebody/payment-method-setups/{}", setup["id"].as_str().unwrap());
    assert_eq!(world.send(&other, &of_another, &[], "").await.status, 404, "it is another account's");
    for nothing in ["x", "01JZXCVBNM0123456789ABCDEF"] {
        let back = world.anonymous(&format!("GET /payment-method-setups/{nothing}/return"), &[], "").await;
        assert_eq!(back.status, 404, "{nothing}");
    }
}
