//! Tests of the texts on packing slips: the merchant's name, and the name of the country in the customer's language.

use billing::{Account, AccountId};
use orders::{Country, PaidPeriod};
use rest::{Caller, Role};
use serde_json::{Value, json};
use testkit::sample_account;

use crate::router::test_desk::{TestDesk, address_body, paid_month};

/// Sets the language of an account.
async fn set_language(test_desk: &TestDesk, account: &str, locale: &str) {
    let id: AccountId = account.parse().unwrap();
    let account = Account { id, locale: locale.parse().unwrap(), ..sample_account() };
    test_desk.payments.put_account(&account).await.unwrap();
}

/// Sets the address of the account `new`, and places an order of this account.
async fn place_for_new(test_desk: &TestDesk, address: &Value) {
    let put = test_desk.send_as_operator("PUT /customers/new", address).await;
    assert_eq!(put.status, 200, "{}", put.json);
    test_desk.desk.place_order(&PaidPeriod { account: "new".parse().unwrap(), ..paid_month(9) }).await.unwrap();
}

/// Returns the body of the web page with the packing slips of all open orders, without the QR codes.
async fn slips(test_desk: &TestDesk) -> String {
    let router = test_desk.router_for(Caller::Operator(Role::Admin));
    let page = test_desk.send_for_text(router, "GET /warehouses/ams/orders", "text/html").await;
    let body = page.split("<body>").nth(1).unwrap_or_else(|| panic!("{page}"));
    let without_code =
        |part: &str| part.split_once("</svg>").map_or_else(|| part.to_owned(), |(_, rest)| rest.to_owned());
    body.split("<svg").map(without_code).collect()
}

#[tokio::test]
async fn slip_has_the_name_of_the_merchant_and_of_the_country_in_the_language_of_the_customer() {
    let test_desk = TestDesk::new().await;
    set_language(&test_desk, "acme", "de-AT").await;
    set_language(&test_desk, "new", "ko").await;
    test_desk.place_orders(0..1).await;
    let mut address = address_body();
    address["name"] = json!("<New> & Co");
    for field in ["line2", "state", "phone"] {
        address[field] = Value::Null;
    }
    place_for_new(&test_desk, &address).await;
    insta::assert_snapshot!("packing_slips", slips(&test_desk).await);
}

#[tokio::test]
async fn country_without_an_iso_code_has_the_name_that_the_merchant_gave_it() {
    let test_desk = TestDesk::new().await;
    let country = Country {
        id: "scotland".parse().unwrap(),
        name: "Scotland (free delivery)".parse().unwrap(),
        region: "eu".parse().unwrap(),
    };
    test_desk.desk.table.put_entity(&country).await.unwrap();
    set_language(&test_desk, "acme", "fr").await;
    test_desk.place_orders(0..1).await;
    let mut address = address_body();
    address["country"] = json!("scotland");
    place_for_new(&test_desk, &address).await;
    let slips = slips(&test_desk).await;
    assert!(slips.contains("<span lang=\"en\">SCOTLAND (FREE DELIVERY)</span>"), "{slips}");
    assert!(slips.contains("<span lang=\"fr\">ROYAUME-UNI</span>"), "{slips}");
}

#[tokio::test]
async fn slips_are_in_english_if_an_account_cannot_be_read() {
    let test_desk = TestDesk::new().await;
    set_language(&test_desk, "acme", "de").await;
    test_desk.place_orders(0..1).await;
    let key = aws_sdk_dynamodb::types::AttributeValue::S("ACC#acme".to_owned());
    let delete = test_desk.payments.client().delete_item().table_name("dueday");
    delete.key("PK", key.clone()).key("SK", key).send().await.unwrap();
    assert!(slips(&test_desk).await.contains("<span lang=\"en\">UNITED KINGDOM</span>"));
}
