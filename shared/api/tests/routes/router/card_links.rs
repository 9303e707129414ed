//! Tests of card links, and of the web pages that a browser gets in place of problems in JSON.

use billing::Locale;
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
    let account = billing::Account { locale: "de".parse::<Locale>().unwrap(), ..testkit::sample::account() };
    world.table.put_account(&account).await.unwrap();
    let card = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclinedInsufficientFunds"}}"#;
    assert_eq!(world.request("PATCH {gold}", card).await.status, 200);
    world.run_payments("2026-03-10T06:00:00Z").await;
    let link = CardLink { account: world.gold.account.clone(), subscription: world.gold.id, due_on: world.gold.due_on };
    world.table.put_card_link(CARD_LINK_ID, &link, super::world::at("2026-03-10T06:00:00Z")).await.unwrap();
    world
}

/// Returns the number of stored payment method setups.
async fn setup_count(world: &World) -> usize {
    let items = world.table.scan().await.unwrap();
    items.iter().filter(|item| item["PK"].as_s().unwrap().starts_with("SETUP#")).count()
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
async fn browser_gets_a_page_in_place_of_a_problem_and_a_program_gets_json() {
    let world = World::new().await;
    for (request, status, title) in [
        ("GET /nowhere", 404, "Not found"),
        ("GET /card-links/01JZXCVBNM0123456789ABCDEF", 404, "Not found"),
        ("GET /card-links/x", 404, "Not found"),
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
