//! Tests of payment method setups: a customer enters a card on the gateway's page, and the subscriptions use this card.

use billing::{GatewayToken, SubscriptionStatus};
use chrono::{SubsecRound as _, TimeDelta};
use clock::Clock as _;
use rest::Caller;
use serde_json::Value;

use crate::router::world::{NEW_SUBSCRIPTION, World, acme, at};

/// The request that creates a payment method setup.
const CREATE_SETUP: &str = "POST /accounts/acme/payment-method-setups";

impl World {
    /// Creates a payment method setup with the request body `body`. Returns the JSON of the setup.
    async fn create_setup(&self, body: &str) -> Value {
        let created = self.request(CREATE_SETUP, body).await;
        assert_eq!((created.status, created.json()["status"].as_str()), (201, Some("open")), "{}", created.text);
        created.json()
    }

    /// Enters `card` on the gateway's page of `setup`, as the customer does.
    fn enter_card(&self, setup: &Value, card: &str) {
        let page: GatewayToken = format!("page_{}", setup["id"].as_str().unwrap()).parse().unwrap();
        assert!(self.sandbox.complete_page_at(&page, &card.parse().unwrap(), self.clock.now()).unwrap());
    }

    /// Requests the return URL of `setup`, as the customer's browser does after the gateway's checkout page. Returns
    /// the web page of the response.
    async fn return_from_page(&self, setup: &Value) -> String {
        let path = format!("GET /payment-method-setups/{}/return", setup["id"].as_str().unwrap());
        let page = self.request_without_token(&path, &[("accept", "text/html")], "").await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text
    }

    /// Requests the current state of `setup`, as the account does. Returns the JSON of the setup.
    async fn get_setup(&self, setup: &Value) -> Value {
        let path = format!("GET /accounts/acme/payment-method-setups/{}", setup["id"].as_str().unwrap());
        self.request_as(&acme(), &path, &[], "").await.json()
    }

    /// Returns the payment method of the stored subscription `gold`.
    async fn stored_card(&self) -> String {
        self.stored_gold().await.payment_method.payment_method.to_string()
    }
}

#[tokio::test]
async fn owed_payment_is_charged_to_the_new_card_at_the_next_run() {
    let world = World::new().await;
    let lost = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclinedLostCard"}}"#;
    assert_eq!(world.request("PATCH {gold}", lost).await.status, 200);
    world.run_payments("2026-03-10T06:00:00Z").await;
    assert_eq!(world.stored_gold().await.status, SubscriptionStatus::Unpaid);

    let setup = world.create_setup("{}").await;
    assert!(setup["url"].as_str().unwrap().starts_with("http://127.0.0.1:7879/pages/page_"), "{setup}");
    world.enter_card(&setup, "pm_card_mastercard");
    let page = world.return_from_page(&setup).await;
    assert!(page.contains("Your card is saved"));
    insta::assert_snapshot!("card_saved", page);
    let stored = world.stored_gold().await;
    assert_eq!(
        (stored.status, world.stored_card().await.as_str()),
        (SubscriptionStatus::PastDue, "pm_card_mastercard")
    );
    assert_eq!(stored.payment_method.customer.as_str(), "cus_1", "the gateway's customer is unchanged");
    world.run_payments("2026-03-11T06:00:00Z").await;
    assert_eq!(world.stored_gold().await.status, SubscriptionStatus::Active);
    let read = world.get_setup(&setup).await;
    assert_eq!(
        (&read["status"], &read["payment_method"]["payment_method"]),
        (&"complete".into(), &"pm_card_mastercard".into())
    );
}

#[tokio::test]
async fn returning_again_from_an_older_page_does_not_restore_the_older_card() {
    let world = World::new().await;
    let (first, second) = (world.create_setup("{}").await, world.create_setup("{}").await);
    world.enter_card(&first, "pm_card_amex");
    world.return_from_page(&first).await;
    world.enter_card(&second, "pm_card_mastercard");
    world.return_from_page(&second).await;
    world.return_from_page(&first).await;
    assert_eq!(world.stored_card().await, "pm_card_mastercard");
}

#[tokio::test]
async fn get_setup_attaches_the_card_if_the_browser_did_not_return() {
    let world = World::new().await;
    let setup = world.create_setup("{}").await;
    world.enter_card(&setup, "pm_card_mastercard");
    assert_eq!(
        (world.stored_card().await.as_str(), &world.get_setup(&setup).await["status"]),
        ("pm_card_visa", &"complete".into())
    );
    assert_eq!(world.stored_card().await, "pm_card_mastercard");
}

#[tokio::test]
async fn late_completion_of_an_older_setup_does_not_replace_a_newer_card() {
    // The newer card comes from another setup, or from a change of the subscription.
    for by_setup in [true, false] {
        let world = World::new().await;
        let older_setup = world.create_setup("{}").await;
        world.enter_card(&older_setup, "pm_card_amex");
        world.clock.set(at("2026-03-05T13:00:00Z"));
        if by_setup {
            let newer = world.create_setup("{}").await;
            world.enter_card(&newer, "pm_card_mastercard");
            world.return_from_page(&newer).await;
        } else {
            let newer = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_mastercard"}}"#;
            assert_eq!(world.request("PATCH {gold}", newer).await.status, 200);
        }
        assert_eq!(world.get_setup(&older_setup).await["status"], "complete");
        assert_eq!(world.stored_card().await, "pm_card_mastercard", "by a setup: {by_setup}");
    }
}

#[tokio::test]
async fn card_is_attached_if_the_gateway_rounds_its_time_down_or_its_clock_is_behind() {
    for seconds_behind in [0, 90] {
        let world = World::new().await;
        let silver = world.request("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION).await.json();
        let setup = world.create_setup("{}").await;
        let page: GatewayToken = format!("page_{}", setup["id"].as_str().unwrap()).parse().unwrap();
        let given_at = world.clock.now().trunc_subsecs(0) - TimeDelta::seconds(seconds_behind);
        assert!(world.sandbox.complete_page_at(&page, &"pm_card_mastercard".parse().unwrap(), given_at).unwrap());
        world.return_from_page(&setup).await;
        let path = format!("GET /accounts/acme/subscriptions/{}", silver["id"].as_str().unwrap());
        let read = world.request(&path, "").await.json();
        assert_eq!(read["payment_method"]["payment_method"], "pm_card_mastercard", "{seconds_behind} s behind");
    }
}

#[tokio::test]
async fn subscription_is_unchanged_until_a_card_is_entered() {
    let world = World::new().await;
    let setup = world.create_setup(&format!(r#"{{"subscriptions": ["{}"]}}"#, world.gold.id)).await;
    let before = world.stored_gold().await;
    let page = world.return_from_page(&setup).await;
    assert!(page.contains("No card was entered"));
    insta::assert_snapshot!("no_card", page);
    assert_eq!(world.stored_gold().await, before);
    world.clock.set(at("2026-03-06T12:00:00Z"));
    assert_eq!(world.get_setup(&setup).await["status"], "expired");
    assert!(world.return_from_page(&setup).await.contains("No card was entered"));
}

#[tokio::test]
async fn card_is_attached_to_the_named_subscriptions_and_to_no_cancelled_one() {
    let world = World::new().await;
    let silver = world.request("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION).await.json();
    let silver = silver["id"].as_str().unwrap();
    let setup = world.create_setup(&format!(r#"{{"subscriptions": ["{silver}"]}}"#)).await;
    world.enter_card(&setup, "pm_card_mastercard");
    world.return_from_page(&setup).await;
    assert_eq!(world.stored_card().await, "pm_card_visa", "the setup does not name this subscription");
    let read = world.request(&format!("GET /accounts/acme/subscriptions/{silver}"), "").await.json();
    assert_eq!(read["payment_method"]["payment_method"], "pm_card_mastercard");

    let all = world.create_setup("{}").await;
    assert_eq!(world.request("POST {gold}/cancel", "{}").await.status, 200);
    world.enter_card(&all, "pm_card_amex");
    assert!(world.return_from_page(&all).await.contains("Your card is saved"));
    let read = world.request(&format!("GET /accounts/acme/subscriptions/{silver}"), "").await.json();
    assert_eq!(
        (read["payment_method"]["payment_method"].as_str(), world.stored_card().await.as_str()),
        (Some("pm_card_amex"), "pm_card_visa")
    );
    let named = format!(r#"{{"subscriptions": ["{}"]}}"#, world.gold.id);
    let refused = world.request(CREATE_SETUP, &named).await;
    assert!(refused.problem().starts_with("422 refused-field subscriptions: the subscription"), "{}", refused.text);
}

#[tokio::test]
async fn invalid_setups_are_refused_and_a_repeated_key_returns_the_same_setup() {
    let world = World::new().await;
    for (body, expected) in [
        (
            r#"{"subscriptions": ["01JZXCVBNM0123456789ABCDEF"]}"#,
            "422 refused-field subscriptions: there is no subscription",
        ),
        (r#"{"subscriptions": []}"#, "400 invalid-field subscriptions: must name 1 to 100"),
        (r#"{"subscriptions": ["x"]}"#, "400 invalid-field subscriptions: "),
        (r#"{"card": "4242"}"#, "400 invalid-field card: "),
    ] {
        let refused = world.request(CREATE_SETUP, body).await;
        assert!(refused.problem().starts_with(expected), "{body}: {}", refused.problem());
    }
    let no_account = world.request("POST /accounts/unknown/payment-method-setups", "{}").await;
    assert!(no_account.problem().starts_with("404 not-found"), "{}", no_account.text);
    let other = Caller::of_account("other".parse().unwrap());
    assert_eq!(world.request_as(&other, CREATE_SETUP, &[], "{}").await.status, 404);

    let (first, again) =
        (world.request_with_key(CREATE_SETUP, "k", "{}").await, world.request_with_key(CREATE_SETUP, "k", "{}").await);
    assert_eq!((first.status, again.status, first.text == again.text), (201, 201, true));
    let setup = first.json();
    let under_other_account = format!("GET /accounts/other/payment-method-setups/{}", setup["id"].as_str().unwrap());
    let response = world.request_as(&other, &under_other_account, &[], "").await;
    assert_eq!(response.status, 404, "the setup belongs to another account");
    for id in ["x", "01JZXCVBNM0123456789ABCDEF"] {
        let response = world.request_without_token(&format!("GET /payment-method-setups/{id}/return"), &[], "").await;
        assert_eq!(response.status, 404, "{id}");
    }
}
