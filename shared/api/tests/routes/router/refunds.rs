//! Tests of the route for refunds: the required idempotency key, repeated requests under the same key, refunds of
//! disputed payments, and the sum that support may refund per day.

use billing::{Dispute, DisputeStatus, Money, PaymentLimit, PaymentLimits, Reversal};
use clock::Clock as _;
use rest::{Caller, Role};
use serde_json::Value;
use store::Paging;

use crate::router::world::{NEW_SUBSCRIPTION, World};

/// The body of a request for a refund of the remaining amount.
const REFUND_REMAINING_AMOUNT: &str = r#"{"reason": "late"}"#;

/// Creates a world with a payment of 12.99 EUR. Returns the world, and the method and path of the request for a refund
/// of this payment.
async fn charge_payment() -> (World, String) {
    let world = World::new().await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let receipts = world.request("GET /accounts/acme/receipts", "").await.json();
    let id = receipts["data"][0]["id"].as_str().unwrap().to_owned();
    (world, format!("POST /accounts/acme/receipts/{id}/refund"))
}

/// Returns the refunded amount of the only receipt, in minor units.
async fn refunded_amount(world: &World) -> Value {
    world.request("GET /accounts/acme/receipts", "").await.json()["data"][0]["refunded_amount"].clone()
}

#[tokio::test]
async fn refund_without_an_idempotency_key_is_refused() {
    let (world, refund) = charge_payment().await;
    for body in ["{}", r#"{"amount": 100, "reason": "late"}"#, ""] {
        let problem = world.request(&refund, body).await.problem();
        assert!(problem.starts_with("400 invalid-field Idempotency-Key: is required"), "{body}: {problem}");
    }
    assert_eq!(refunded_amount(&world).await, 0);
    let empty = world.request_with_key(&refund, "", "{}").await.problem();
    assert!(empty.starts_with("400 invalid-field Idempotency-Key: must be 1 to 255"), "{empty}");
}

#[tokio::test]
async fn refund_without_a_reason_is_refused_and_makes_nothing() {
    let (world, refund) = charge_payment().await;
    for (body, reason) in [
        (r#"{"amount": 100}"#, "is required"),
        ("{}", "is required"),
        ("", "is required"),
        (r#"{"amount": 100, "reason": null}"#, "must"),
        (r#"{"amount": 100, "reason": ""}"#, "must"),
    ] {
        let problem = world.request_with_key(&refund, "part", body).await.problem();
        assert!(problem.starts_with(&format!("400 invalid-field reason: {reason}")), "{body}: {problem}");
    }
    assert_eq!(refunded_amount(&world).await, 0);
}

#[tokio::test]
async fn same_key_with_another_body_is_refused_and_with_the_same_body_is_the_same_refund() {
    let (world, refund) = charge_payment().await;
    let first = world.request_with_key(&refund, "part", r#"{"amount": 100, "reason": "late"}"#).await;
    assert_eq!((first.status, &first.json()["amount"]), (201, &100.into()));
    let again = world.request_with_key(&refund, "part", r#"{ "reason": "late", "amount": 100 }"#).await;
    assert_eq!((again.status, again.json()), (201, first.json()), "the same request");
    for body in [REFUND_REMAINING_AMOUNT, r#"{"amount": 200, "reason": "late"}"#] {
        let problem = world.request_with_key(&refund, "part", body).await.problem();
        assert!(problem.starts_with("422 idempotency-key-reused"), "{body}: {problem}");
    }
    let rest = world.request_with_key(&refund, "rest", REFUND_REMAINING_AMOUNT).await;
    assert_eq!((rest.status, &rest.json()["amount"]), (201, &1199.into()));
    let problem = world.request_with_key(&refund, "rest", r#"{"amount": 1199, "reason": "late"}"#).await.problem();
    assert!(problem.starts_with("422 idempotency-key-reused"), "{problem}");
    assert_eq!(refunded_amount(&world).await, 1299);
}

#[tokio::test]
async fn receipt_number_names_the_same_receipt_and_the_same_refund_as_its_id() {
    let (world, refund) = charge_payment().await;
    let receipts = world.request("GET /accounts/acme/receipts", "").await.json();
    let (id, number) = (&receipts["data"][0]["id"], receipts["data"][0]["number"].as_str().unwrap());
    let found = world.request(&format!("GET /accounts/acme/receipts/{}", number.to_lowercase()), "").await;
    assert_eq!((found.status, &found.json()["id"]), (200, id));
    let other_month = number.replacen("202603", "202604", 1);
    let missing = world.request(&format!("GET /accounts/acme/receipts/{other_month}"), "").await;
    assert_eq!(missing.status, 404);

    let first = world.request_with_key(&refund, "part", r#"{"amount": 100, "reason": "late"}"#).await;
    let by_number = format!("POST /accounts/acme/receipts/{number}/refund");
    let again = world.request_with_key(&by_number, "part", r#"{"amount": 100, "reason": "late"}"#).await;
    assert_eq!((again.status, again.json()["id"].clone()), (201, first.json()["id"].clone()));
    assert_eq!(refunded_amount(&world).await, 100, "the second request names the same refund");
    let receipt = world.request(&format!("GET /accounts/acme/receipts/{number}"), "").await.json();
    assert_eq!((&receipt["net_amount"], receipt["refunded_at"].is_string()), (&1199.into(), true));
}

#[tokio::test]
async fn repeated_refund_by_number_is_one_refund_for_an_account_called_receipts_too() {
    let world = World::new().await;
    let account = r#"{"email": "a@example.com", "name": "A"}"#;
    assert_eq!(world.request("PUT /accounts/receipts", account).await.status, 201);
    let created = world.request_with_key("POST /accounts/receipts/subscriptions", "one", NEW_SUBSCRIPTION).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let due = created.json()["due_date"].as_str().unwrap().to_owned();
    world.run_payments(&format!("{due}T06:00:00Z")).await;
    let receipt = world.request("GET /accounts/receipts/receipts", "").await.json()["data"][0].clone();
    let mut refunds = Vec::new();
    for name in ["id", "number"] {
        let path = format!("POST /accounts/receipts/receipts/{}/refund", receipt[name].as_str().unwrap());
        let refund = world.request_with_key(&path, "part", r#"{"amount": 100, "reason": "late"}"#).await;
        assert_eq!(refund.status, 201, "{}", refund.text);
        refunds.push(refund.json()["id"].clone());
    }
    assert_eq!(refunds[0], refunds[1]);
    let receipt = world.request("GET /accounts/receipts/receipts", "").await.json()["data"][0].clone();
    assert_eq!(receipt["refunded_amount"], 100);
}

#[tokio::test]
async fn refund_of_a_disputed_payment_needs_a_permission_and_the_net_amount_may_be_negative() {
    let (world, refund) = charge_payment().await;
    let account = "acme".parse().unwrap();
    let receipts = world.table.get_receipts_by_account(&account, &Paging::all(), world.clock.now()).await;
    let receipt = receipts.unwrap().items.remove(0);
    let dispute = Dispute {
        id: "dp_1".parse().unwrap(),
        account,
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: "pm_card_visa".parse().unwrap(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Open,
        opened_at: world.clock.now(),
        closed_at: None,
        version: 1,
    };
    world.table.write_dispute(&dispute, None).await.unwrap();
    for body in [REFUND_REMAINING_AMOUNT, r#"{"amount": 100, "reason": "late", "although_disputed": false}"#] {
        let problem = world.request_with_key(&refund, "disputed", body).await.problem();
        assert!(problem.starts_with("409 disputed -: the customer would get the money twice"), "{body}: {problem}");
        assert!(problem.contains("`although_disputed`"), "{problem}");
    }
    assert_eq!(refunded_amount(&world).await, 0);
    let body = r#"{"amount": 100, "reason": "late", "although_disputed": true}"#;
    let made = world.request_with_key(&refund, "disputed", body).await;
    assert_eq!((made.status, &made.json()["status"]), (201, &"succeeded".into()), "{}", made.text);
    let actions = world.request("GET /accounts/acme/log", "").await.json();
    let is_refund = |action: &&Value| action["action"].as_str().is_some_and(|kind| kind.starts_with("refund."));
    let logged = actions["data"].as_array().unwrap().iter().find(is_refund).unwrap_or(&Value::Null);
    assert_eq!(logged["action"], "refund.create_although_disputed", "{actions}");

    let receipts = world.table.get_receipts_by_account(&receipt.account, &Paging::all(), world.clock.now()).await;
    let reversal = Reversal { at: world.clock.now(), amount: receipt.amount };
    world.table.mark_reversal(&receipts.unwrap().items[0], Some(reversal)).await.unwrap();
    let receipt = world.request("GET /accounts/acme/receipts", "").await.json()["data"][0].clone();
    assert_eq!(receipt["net_amount"], -100);
}

/// Sends `refund` as an operator with the role support.
async fn refund_as_support(world: &World, refund: &str, key: &str, body: &str) -> (u16, String) {
    let support = Caller::Operator(Role::Support);
    let response = world.request_as(&support, refund, &[("idempotency-key", key)], body).await;
    (response.status, response.problem())
}

#[tokio::test]
async fn support_refunds_up_to_the_sum_of_the_day_and_an_admin_refunds_more() {
    let (world, refund) = charge_payment().await;
    let problem = |text: &str| (403, format!("403 refund-limit -: support may refund at most {text}"));
    let nothing = "0.00 EUR per day, and has refunded 0.00 EUR today; an admin may refund more";
    assert_eq!(refund_as_support(&world, &refund, "a", REFUND_REMAINING_AMOUNT).await, problem(nothing));

    let mut limits = PaymentLimits::default();
    limits.set_limit(PaymentLimit::SupportRefunds, "EUR=5.00").unwrap();
    assert!(world.table.set_payment_limits(&PaymentLimits::default(), &limits, None).await.unwrap());
    let of = |minor: i64| format!(r#"{{"amount": {minor}, "reason": "late"}}"#);
    assert_eq!(refund_as_support(&world, &refund, "b", &of(300)).await.0, 201);
    // A repeated request is the same refund, and counts once.
    assert_eq!(refund_as_support(&world, &refund, "b", &of(300)).await.0, 201);
    let over = "5.00 EUR per day, and has refunded 3.00 EUR today; an admin may refund more";
    assert_eq!(refund_as_support(&world, &refund, "c", &of(201)).await, problem(over));
    assert_eq!(refund_as_support(&world, &refund, "c", &of(200)).await.0, 201);
    let full = "5.00 EUR per day, and has refunded 5.00 EUR today; an admin may refund more";
    assert_eq!(refund_as_support(&world, &refund, "d", &of(1)).await, problem(full));
    assert_eq!(refunded_amount(&world).await, 500);
    // The refund of an admin does not count.
    assert_eq!(world.request_with_key(&refund, "e", &of(300)).await.status, 201);
    let today = world.clock.now().date_naive();
    let refunded = world.table.get_support_refunds(today, "EUR".parse().unwrap()).await.unwrap();
    assert_eq!(refunded, Money::new(500, "EUR".parse().unwrap()));
    // The next day begins with nothing refunded.
    world.clock.set(world.clock.now() + chrono::TimeDelta::days(1));
    assert_eq!(refund_as_support(&world, &refund, "f", &of(499)).await.0, 201);
}

#[tokio::test]
async fn refunds_at_the_same_time_do_not_exceed_the_sum_of_the_day() {
    let (world, refund) = charge_payment().await;
    let mut limits = PaymentLimits::default();
    limits.set_limit(PaymentLimit::SupportRefunds, "EUR=5.00").unwrap();
    assert!(world.table.set_payment_limits(&PaymentLimits::default(), &limits, None).await.unwrap());
    let body = r#"{"amount": 300, "reason": "late"}"#;
    let (first, second) =
        tokio::join!(refund_as_support(&world, &refund, "a", body), refund_as_support(&world, &refund, "b", body));
    let mut statuses = [first.0, second.0];
    statuses.sort_unstable();
    assert!(statuses[0] == 201 && [403, 409].contains(&statuses[1]), "{first:?} {second:?}");
    assert_eq!(refunded_amount(&world).await, 300);
}

#[tokio::test]
async fn only_an_admin_refunds_disputed_money() {
    let (world, refund) = charge_payment().await;
    let body = r#"{"amount": 100, "reason": "late", "although_disputed": true}"#;
    let (status, problem) = refund_as_support(&world, &refund, "a", body).await;
    let expected =
        "403 forbidden although_disputed: this needs the role admin of operators; the token has the role support";
    assert_eq!((status, problem.as_str()), (403, expected));
    let read = Caller::Operator(Role::Read);
    let refused = world.request_as(&read, &refund, &[("idempotency-key", "b")], body).await.problem();
    assert_eq!(refused, "403 forbidden -: this needs the role support of operators; the token has the role read");
}
