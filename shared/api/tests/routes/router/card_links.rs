//! Tests of card links, and of the web pages that a browser gets in place of problems in JSON.

use billing::Locale;
use clock::Clock as _;
use store::CardLink;
use ulid::Ulid;

use super::world::World;

/// The header `Accept` of a browser, which prefers HTML.
const BROWSER_HEADER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
/// The id of the card link that the tests open.
const CARD_LINK_ID: Ulid = Ulid(77);

/// Creates a world with a declined payment, a German customer, and a card link for the payment.
async fn world_with_owed_payment() -> World {
    let world = World::new().await;
    let account = billing::Account { locale: "de".parse::<Locale>().unwrap(), ..testkit::sample_account() };
    world.table.put_account(&account).await.unwrap();
    let card = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclinedInsufficientFunds"}}"#;
    assert_eq!(world.request("PATCH {gold}", card).await.status, 200);
    world.run_payments("2026-03-10T06:00:00Z").await;
    let link = CardLink { account: world.gold.account.clone(), subscription: world.gold.id, due_on: world.gold.due_on };
    world.table.put_card_link(CARD_LINK_ID, &link, super::world::at("2026-03-10T06:00:00Z")).await.unwrap();
    world
}

/// Returns the ids of the stored payment method setups.
async fn setup_ids(world: &World) -> Vec<Ulid> {
    let items = world.table.scan().await.unwrap();
    let id = |item: &store::Item| item["PK"].as_s().unwrap().strip_prefix("SETUP#").map(|id| id.parse().unwrap());
    items.iter().filter_map(id).collect()
}

/// Returns the number of stored payment method setups.
async fn setup_count(world: &World) -> usize {
    setup_ids(world).await.len()
}

#[tokio::test]
async fn card_link_shows_the_owed_payment_and_opens_the_page_for_a_card_until_it_is_paid() {
    let world = world_with_owed_payment().await;
    let path = format!("/card-links/{CARD_LINK_ID}");
    let page = world.request_without_token(&format!("GET {path}"), &[BROWSER_HEADER], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    insta::assert_snapshot!("card_link", page.text);
    for part in ["<html lang=\"de\">", "12,99", "Gold plan", "<form method=\"post\"><button>Karte hinterlegen</button>"]
    {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert_eq!(setup_count(&world).await, 0, "a mail scanner that opens the link makes no request to the gateway");

    let opened = world.request_without_token(&format!("POST {path}"), &[BROWSER_HEADER], "").await;
    assert_eq!(opened.status, 303, "{}", opened.text);
    assert!(opened.header("location").starts_with("http://127.0.0.1:7879/pages/"), "{}", opened.header("location"));
    assert_eq!(setup_count(&world).await, 1);

    let card = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa"}}"#;
    assert_eq!(world.request("PATCH {gold}", card).await.status, 200);
    world.run_payments("2026-03-11T06:00:00Z").await;
    for method in ["GET", "POST"] {
        let page = world.request_without_token(&format!("{method} {path}"), &[BROWSER_HEADER], "").await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains("Keine offene Zahlung") && !page.text.contains("<form"), "{}", page.text);
    }
}

#[tokio::test]
async fn card_link_changes_only_the_subscription_with_the_owed_payment_unless_the_customer_chooses_all() {
    let world = world_with_owed_payment().await;
    let silver = billing::Subscription {
        product_name: "Silver <plan>".parse().unwrap(),
        ..testkit::sample_subscription(20, "2026-03-09".parse().unwrap())
    };
    world.table.create_subscription(&silver, None).await.unwrap();
    let path = format!("/card-links/{CARD_LINK_ID}");
    let page = world.request_without_token(&format!("GET {path}"), &[BROWSER_HEADER], "").await;
    insta::assert_snapshot!("card_link_of_one_of_two_subscriptions", page.text);
    assert!(page.text.contains("bleibt die Zahlungsart, wie sie ist: Silver &lt;plan&gt;."), "{}", page.text);

    for (query, expected) in [("", Some(vec![world.gold.id])), ("?subscriptions=all", None)] {
        let opened = world.request_without_token(&format!("POST {path}{query}"), &[BROWSER_HEADER], "").await;
        assert_eq!(opened.status, 303, "{}", opened.text);
        let setups = setup_ids(&world).await;
        let newest = setups.iter().max().unwrap();
        assert_eq!(world.table.get_setup(*newest).await.unwrap().unwrap().subscriptions, expected, "{query}");
    }
    let refused = world.request_without_token(&format!("POST {path}?subscriptions=none"), &[], "").await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn page_of_an_expired_link_is_in_the_language_of_the_browser_and_names_the_merchant() {
    let world = World::new().await;
    let headers = [BROWSER_HEADER, ("accept-language", "fr-CA,fr;q=0.9,en;q=0.8")];
    let page = world.request_without_token("GET /card-links/01JZXCVBNM0123456789ABCDEF", &headers, "").await;
    assert_eq!(page.status, 404);
    for part in ["<html lang=\"fr\">", "Ce lien a expiré", "Contactez Example Shop"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
}

#[tokio::test]
async fn browser_gets_a_page_in_place_of_a_problem_and_a_program_gets_json() {
    let world = World::new().await;
    for (request, status, title) in [
        ("GET /nowhere", 404, "Not found"),
        ("GET /card-links/01JZXCVBNM0123456789ABCDEF", 404, "This link has expired"),
        ("POST /card-links/x", 404, "This link has expired"),
        ("DELETE /health", 405, "Method not allowed"),
        ("GET /accounts/acme/receipts/x", 404, "Not found"),
    ] {
        let page = world.request_as(&super::world::acme(), request, &[BROWSER_HEADER], "").await;
        assert_eq!((page.status, page.header("content-type")), (status, "text/html; charset=utf-8"), "{request}");
        if request == "GET /nowhere" {
            insta::assert_snapshot!("error_page", page.text);
        }
        assert!(page.text.contains(&format!("<h1>{title}</h1>")), "{request}: {}", page.text);
        assert_eq!((page.header("cache-control"), page.header("vary")), ("no-store", "accept"), "{request}");
        let json = world.request_as(&super::world::acme(), request, &[("accept", "*/*")], "").await;
        assert_eq!((json.status, json.header("content-type")), (status, "application/problem+json"), "{request}");
    }
}

#[tokio::test]
async fn card_link_works_for_a_year_after_the_last_day_on_which_the_payment_was_owed() {
    let world = world_with_owed_payment().await;
    let open = async |time: &str| {
        world.clock.set(super::world::at(time));
        world.request_without_token(&format!("GET /card-links/{CARD_LINK_ID}"), &[BROWSER_HEADER], "").await
    };
    let expiry = async || {
        let items = world.table.scan().await.unwrap();
        let link = items.iter().find(|item| item["PK"].as_s().unwrap().starts_with("CARDLINK#")).unwrap();
        let seconds = link["TTL"].as_n().unwrap().parse().unwrap();
        chrono::DateTime::from_timestamp(seconds, 0).unwrap().date_naive().to_string()
    };
    assert_eq!(expiry().await, "2027-03-10", "a year after the mail");
    assert_eq!(open("2026-03-10T20:00:00Z").await.status, 200);
    assert_eq!(expiry().await, "2027-03-10", "on the same day, a use writes nothing");
    // The payment is owed when the customer opens the link almost a year later.
    let page = open("2027-03-09T06:00:00Z").await;
    assert!(page.status == 200 && page.text.contains("<form"), "{}", page.text);
    assert_eq!(expiry().await, "2028-03-08");

    let card = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa"}}"#;
    assert_eq!(world.request("PATCH {gold}", card).await.status, 200);
    world.run_payments("2027-03-10T06:00:00Z").await;
    let page = open("2027-12-01T06:00:00Z").await;
    assert!(page.status == 200 && !page.text.contains("<form"), "{}", page.text);
    assert_eq!(expiry().await, "2028-03-08", "a use after the payment does not renew the link");
    assert_eq!(open("2028-03-07T06:00:00Z").await.status, 200);
    let page = open("2028-03-08T06:00:00Z").await;
    assert_eq!(
        (page.status, page.text.contains("expired")),
        (404, true),
        "an item that is not deleted yet: {}",
        page.text
    );
}

#[tokio::test]
async fn card_link_that_an_earlier_version_stored_for_ten_years_expires_a_year_after_it_is_opened() {
    let world = world_with_owed_payment().await;
    let link = CardLink { account: world.gold.account.clone(), subscription: world.gold.id, due_on: world.gold.due_on };
    world.table.put_card_link(Ulid(78), &link, super::world::at("2035-03-10T06:00:00Z")).await.unwrap();
    let stored = world.table.get_card_link(Ulid(78), world.clock.now()).await.unwrap().unwrap();
    assert_eq!(stored.expires_at.date_naive().to_string(), "2036-03-09");
    world.table.renew_card_link(&stored, false, super::world::at("2026-03-12T06:00:00Z")).await.unwrap();
    let stored = world.table.get_card_link(Ulid(78), world.clock.now()).await.unwrap().unwrap();
    assert_eq!(stored.expires_at.date_naive().to_string(), "2027-03-12");
}
