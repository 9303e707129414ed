//! Tests of the choice of a representative for new customers, while a representative should leave but must first hand
//! over all customers.

use std::sync::Arc;

use billing::Actor;
use orders::{DeskError, OrderStatus, PaidPeriod, PlaceOutcome, Requester, all_days};
use orders_api::StoredPayments;
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, address_body, employee_body, paid_month};

/// Returns the body of a request that gives an employee another assignment from March 1 on.
fn assignment_body(represents_customers: bool) -> Value {
    json!({"from": "2027-03-01", "assignment": {"job": "buying", "job_title": "Buyer", "department": "buying",
        "represents_customers": represents_customers}})
}

/// Sets the address of the account `new` on `day`. Returns the representative that the account gets.
async fn representative_of_new_customer(test_desk: &TestDesk, day: &str) -> Value {
    let (account, address) = ("new".parse().unwrap(), serde_json::from_value(address_body()).unwrap());
    test_desk.desk_on(day).set_shipping_address(&account, address).await.unwrap();
    test_desk.get_as_operator("/customers/new").await.json["representative"].clone()
}

#[tokio::test]
async fn representative_whose_leaving_waits_for_a_hand_over_gets_no_other_customers() {
    let both = ["e-10".parse().unwrap(), "e-11".parse().unwrap()];
    assert_eq!(orders::choose_representative(&"new".parse().unwrap(), &both), Some(&both[1]));
    let leave = ("POST /employees/e-11/leave", json!({"on": "2027-03-01"}));
    let (buys, sells) = (assignment_body(false), assignment_body(true));
    // The columns are: the request for the planned change of e-11, the day on which the new customer is created, the
    // number of planned changes that fail on this day, and the representative of the new customer.
    for ((request, body), day, waiting, expected) in [
        (&leave, "2027-02-28", 0, "e-11"),
        (&leave, "2027-03-01", 1, "e-10"),
        (&leave, "2027-03-02", 1, "e-10"),
        (&("PUT /employees/e-11/assignment", buys), "2027-03-02", 1, "e-10"),
        (&("PUT /employees/e-11/assignment", sells), "2027-03-02", 0, "e-11"),
    ] {
        let test_desk = TestDesk::new().await;
        let handed_over = json!({"representative": "e-11"});
        test_desk.send_as_operator("PUT /customers/acme/representative", &handed_over).await;
        assert_eq!(test_desk.send_as_operator(request, body).await.status, 200, "{request}");
        assert_eq!(test_desk.desk_on(day).apply_due_changes().await, waiting, "{request} {body} {day}");
        let representative = representative_of_new_customer(&test_desk, day).await;
        assert_eq!(representative, expected, "{request} {body} {day}");
        // The same rule decides whether a customer without a representative can be handed over to e-11.
        let (other, e11) = ("other".parse().unwrap(), "e-11".parse().unwrap());
        let handed_over = test_desk.desk_on(day).hand_over(&other, &e11, all_days()).await;
        let stored = test_desk.get_as_operator("/customers/other").await;
        match expected {
            "e-11" => assert_eq!((handed_over.unwrap(), &stored.json["representative"]), (0, &json!("e-11"))),
            _ => {
                assert!(
                    matches!(handed_over, Err(DeskError::StopsRepresenting(_))),
                    "{request} {body} {day}: {handed_over:?}"
                );
                assert_eq!(stored.status, 404, "nothing was stored");
            }
        }
    }
}

#[tokio::test]
async fn request_that_was_sent_before_midnight_uses_the_rules_of_its_date() {
    let test_desk = TestDesk::new().await;
    let leave = "POST /employees/e-11/leave";
    assert_eq!(test_desk.send_as_operator(leave, &json!({"on": "2027-03-01"})).await.status, 200);
    let (acme, e11) = ("acme".parse().unwrap(), "e-11".parse().unwrap());
    for (requested_at, is_allowed) in [("2027-02-28T23:59:59Z", true), ("2027-03-01T00:00:00Z", false)] {
        let payments = Arc::new(StoredPayments(test_desk.payments.clone()));
        let requester = Requester { payments, actor: Actor::Operator(None), at: requested_at.parse().unwrap() };
        let desk = test_desk.desk_on("2027-03-01").requested_by(requester);
        let handed_over = desk.hand_over(&acme, &e11, all_days()).await;
        assert_eq!(handed_over.is_ok(), is_allowed, "{requested_at}: {handed_over:?}");
    }
}

#[tokio::test]
async fn planned_change_that_is_due_but_not_made_yet_decides_about_new_customers() {
    for (represents_customers, expected) in [(true, "e-11"), (false, "e-10")] {
        let test_desk = TestDesk::new().await;
        let put = "PUT /employees/e-11/assignment";
        assert_eq!(test_desk.send_as_operator(put, &assignment_body(represents_customers)).await.status, 200);
        assert_eq!(representative_of_new_customer(&test_desk, "2027-03-01").await, expected);
    }
}

#[tokio::test]
async fn new_customer_has_no_representative_until_a_hand_over_if_the_leaving_of_each_one_waits() {
    let test_desk = TestDesk::new().await;
    for employee in ["e-10", "e-11"] {
        let leave = format!("POST /employees/{employee}/leave");
        assert_eq!(test_desk.send_as_operator(&leave, &json!({"on": "2027-03-01"})).await.status, 200);
    }
    let paid = PaidPeriod { account: "new".parse().unwrap(), ..paid_month(0) };
    let placed = test_desk.desk_on("2027-03-01").place(&paid).await.unwrap();
    assert_eq!(placed, PlaceOutcome::Placed(OrderStatus::BackOrdered), "the order waits for an address");
    let representatives = async || {
        let order = test_desk.get_as_operator(&format!("/orders/{}", paid.order)).await.json;
        let customer = test_desk.get_as_operator("/customers/new").await.json;
        (order["representative"].clone(), customer["representative"].clone())
    };
    assert_eq!(representatives().await, (Value::Null, Value::Null));
    assert_eq!(test_desk.send_as_operator("PUT /employees/e-12", &employee_body("Mary")).await.status, 201);
    let handed_over = json!({"representative": "e-12"});
    assert_eq!(test_desk.send_as_operator("PUT /customers/new/representative", &handed_over).await.status, 200);
    assert_eq!(representatives().await, (json!("e-12"), json!("e-12")));
}
