//! Tests of events about payments, cards and refunds.

use super::*;

#[tokio::test]
async fn bank_debit_is_settled_once_by_its_event() {
    for (card, status, receipts) in [
        ("pm_usBankAccount_success", SubscriptionStatus::Active, 1),
        ("pm_usBankAccount_insufficientFunds", SubscriptionStatus::PastDue, 0),
    ] {
        let world = World::new(card).await;
        assert_eq!(world.run_payments("2026-03-10T06:00:00Z").await, [("processing", 1)]);
        let created = world.server.event_body("evt_0", "payment_intent.processing", "pi_000001");
        assert_eq!(
            world.send_event(&created).await.unwrap(),
            InboundOutcome::Processed,
            "the bank has not decided yet"
        );
        assert!(world.stored_subscription().await.attempt.is_some());
        world.system.clock.set(at("2026-03-12T07:00:00Z"));
        let event = world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001");
        assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
        let stored = world.stored_subscription().await;
        assert_eq!((stored.status, stored.attempt.is_some()), (status, false), "{card}");
        assert_eq!(world.receipts().await.len(), receipts);
        assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::AlreadyProcessed);
        let again = world.server.event_body("evt_2", "payment_intent.succeeded", "pi_000001");
        assert_eq!(world.send_event(&again).await.unwrap(), InboundOutcome::Processed);
        assert_eq!(
            world.stored_subscription().await,
            stored,
            "another event about the same payment has the same result"
        );
    }
}

#[tokio::test]
async fn event_is_rejected_while_a_worker_has_leased_its_attempt() {
    let world = World::new("pm_card_visa").await;
    // Stripe makes the charge, and the response is lost.
    world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
    assert_eq!(world.run_payments("2026-03-10T06:00:00Z").await, [("in_doubt", 1)]);
    let event = world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001");
    let error = world.send_event(&event).await.unwrap_err();
    assert!(matches!(error, InboundError::AttemptLeased { .. }) && error.is_transient(), "{error}");
    assert_eq!(world.receipts().await, []);
    world.system.clock.set(at("2026-03-10T08:00:00Z"));
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    assert_eq!(world.receipts().await.len(), 1);
    assert_eq!(world.run_payments("2026-03-11T06:00:00Z").await, []);
    assert_eq!(world.server.intents().len(), 1, "the customer was charged once");
}

#[tokio::test]
async fn event_of_a_canceled_payment_whose_charge_succeeded_is_not_believed() {
    let world = World::new("pm_card_visa").await;
    world.server.set_next_faults([None, Some(StripeFault::CanceledWithPaidCharge { hours: 24 })]);
    assert_eq!(world.run_payments("2026-03-10T06:00:00Z").await, [("in_doubt", 1)]);
    world.system.clock.set(at("2026-03-10T08:00:00Z"));
    let event = world.server.event_body("evt_1", "payment_intent.canceled", "pi_000001");
    let error = world.send_event(&event).await.unwrap_err();
    assert!(matches!(error, InboundError::Gateway(_)) && error.is_transient(), "{error}");
    assert!(world.stored_subscription().await.attempt.is_some(), "the attempt is not settled as declined");
    world.system.clock.set(at("2026-03-11T07:00:00Z"));
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    assert_eq!((world.receipts().await.len(), world.server.intents().len()), (1, 1));
}

#[tokio::test]
async fn event_of_a_settled_month_does_not_change_the_open_month() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    world.send_event(&world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("processing", 1)]);
    world.system.clock.set(at("2026-04-10T09:00:00Z"));
    let late = world.server.event_body("evt_2", "payment_intent.succeeded", "pi_000001");
    assert_eq!(
        world.send_event(&late).await.unwrap(),
        InboundOutcome::Processed,
        "the attempt of April is processing, and March has its receipt"
    );
    assert!(world.stored_subscription().await.attempt.is_some());
}

#[tokio::test]
async fn card_is_attached_by_event_without_return_of_the_browser() {
    let world = World::new("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let setups = PaymentMethodSetups::new(world.table().clone(), world.stripe.clone(), world.system.clock.clone());
    let back = |_| "http://127.0.0.1/back".to_owned();
    let setup = setups.open(&sample_account(), None, back).await.unwrap();
    world.table().create_setup(&setup, None).await.unwrap();
    world.system.clock.set(at("2026-03-10T07:00:00Z"));
    let open = world.server.event_body("evt_1", "checkout.session.completed", setup.page.as_str());
    assert_eq!(
        world.send_event(&open).await.unwrap(),
        InboundOutcome::Processed,
        "the customer has not entered a card yet, although the event says that the session is complete"
    );
    assert_eq!(world.stored_subscription().await.status, SubscriptionStatus::PastDue);
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let submitted = http.post(&setup.url).header("content-type", "application/x-www-form-urlencoded");
    submitted.body("payment_method=pm_card_mastercard").send().await.unwrap();
    let event = world.server.event_body("evt_2", "checkout.session.completed", setup.page.as_str());
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    let stored = world.stored_subscription().await;
    assert_eq!(stored.payment_method.payment_method.as_str(), "pm_card_mastercard");
    assert_eq!(stored.next_payment_on, Some("2026-03-10".parse().unwrap()), "the next run charges the owed payment");
}

#[tokio::test]
async fn dashboard_refund_is_stored_and_failed_refund_is_undone() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let refunded = async || world.receipts().await[0].refunded.minor();
    let id = world.server.refund_in_the_dashboard("pi_000001", 500, "pending");
    // The columns are: the id of the event, the status of the refund, and the refunded amount after the event.
    for (event, status, left) in
        [("evt_1", "pending", 500), ("evt_2", "succeeded", 500), ("evt_3", "failed", 0), ("evt_4", "failed", 0)]
    {
        world.server.set_refund_status(&id, status);
        let event = world.server.event_body(event, "refund.updated", &id);
        assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed, "{status}");
        assert_eq!(refunded().await, left, "{status}");
    }
    // A refund that Dueday requested succeeds first and fails later.
    let receipt = world.receipts().await.remove(0);
    let refund_id = Ulid::from_parts(1, 1);
    world.refunds().refund(&receipt.account, &receipt.id(), refund_id, Some(300), None).await.unwrap();
    assert_eq!(refunded().await, 300);
    world.server.set_refund_status("re_000002", "failed");
    let event = world.server.event_body("evt_5", "refund.failed", "re_000002");
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    assert_eq!(refunded().await, 0, "the bank returned the money");
    // A refund that was created in Stripe's dashboard is pending. A new refund must not request it again.
    let pending = world.server.refund_in_the_dashboard("pi_000001", 200, "pending");
    world.send_event(&world.server.event_body("evt_6", "refund.created", &pending)).await.unwrap();
    let another = Ulid::from_parts(2, 2);
    world.refunds().refund(&receipt.account, &receipt.id(), another, Some(100), None).await.unwrap();
    assert_eq!(refunded().await, 300);
}

#[tokio::test]
async fn events_of_other_programs_are_ignored() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let before = world.stored_subscription().await;
    for event in [
        r#"{"id":"evt_1","object":"event","type":"customer.created","data":{"object":{"id":"cus_1","object":"customer"}}}"#,
        r#"{"id":"evt_2","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_9","object":"payment_intent"}}}"#,
        r#"{"id":"evt_3","object":"event","type":"refund.created","data":{"object":{"id":"re_9","object":"refund"}}}"#,
        r#"{"id":"evt_4","object":"event","type":"charge.dispute.created","data":{"object":{"id":"dp_9","object":"dispute"}}}"#,
        r#"{"id":"evt_5","object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_9","object":"checkout.session"}}}"#,
    ] {
        assert_eq!(world.send_event(event).await.unwrap(), InboundOutcome::Ignored, "{event}");
    }
    assert_eq!(world.stored_subscription().await, before);
}

#[tokio::test]
async fn payment_that_contradicts_its_attempt_gets_no_receipt() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let more_expensive =
        Subscription { price: world.gold.price.currency().price(9_900).unwrap(), ..world.stored_subscription().await };
    let attempt = more_expensive.attempt.clone().map(|open| Attempt { amount: more_expensive.price, ..open });
    world
        .table()
        .update_subscription(&world.stored_subscription().await, &Subscription { attempt, ..more_expensive })
        .await
        .unwrap();
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let event = world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001");
    let error = world.send_event(&event).await.unwrap_err();
    assert!(
        matches!(&error, InboundError::NotSettled { .. }) && error.to_string().contains("was requested"),
        "{error}"
    );
    assert_eq!(world.receipts().await, []);
}

#[tokio::test]
async fn receipt_is_found_after_change_of_payment_day() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let moved = Receipt { due_on: "2026-03-20".parse().unwrap(), ..world.receipts().await.remove(0) };
    // Move the receipt, as if the payment that was requested on the 10th had settled the attempt of the 20th.
    let mut item =
        world.system.engine.execute("GetItem", &receipt_key(&world.gold, "2026-03-10")).unwrap()["Item"].clone();
    item["SK"] = receipt_key(&world.gold, "2026-03-20")["Key"]["SK"].clone();
    item["DueDate"] = serde_json::json!({"S": "2026-03-20"});
    world.system.engine.execute("PutItem", &serde_json::json!({"TableName": "dueday", "Item": item})).unwrap();
    world.system.engine.execute("DeleteItem", &receipt_key(&world.gold, "2026-03-10")).unwrap();
    assert_eq!(world.receipts().await, [moved]);
    let event = world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001");
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    let id = world.server.refund_in_the_dashboard("pi_000001", 500, "succeeded");
    world.send_event(&world.server.event_body("evt_2", "refund.created", &id)).await.unwrap();
    assert_eq!(world.receipts().await[0].refunded.minor(), 500);
}

/// Returns a DynamoDB request with the key of a receipt: the receipt of the subscription `of` for the payment due on
/// `due_on`.
fn receipt_key(of: &Subscription, due_on: &str) -> serde_json::Value {
    let sort = format!("REC#{due_on}#SKU#{}#SUB#{}", of.sku, of.id);
    serde_json::json!({"TableName": "dueday", "Key": {"PK": {"S": format!("ACC#{}", of.account)}, "SK": {"S": sort}}})
}

#[tokio::test]
async fn crash_at_any_call_is_repaired_by_repeating_the_event() {
    // The columns are: the type of the event, the id of its object, and the payment method.
    let cases = [
        ("charge.dispute.created", "dp_000001", "pm_card_visa"),
        ("charge.dispute.closed", "dp_000001", "pm_card_visa"),
        ("refund.updated", "re_000001", "pm_card_visa"),
        ("payment_intent.succeeded", "pi_000001", "pm_usBankAccount_success"),
    ];
    for (kind, of, card) in cases {
        for fault in FAULTS_AT_EACH_CALL {
            let mut calls = 1;
            loop {
                let story = format!("{kind}: {fault:?} of call {calls}");
                let world = World::new(card).await;
                world.run_payments("2026-03-10T06:00:00Z").await;
                world.system.clock.set(at("2026-03-12T07:00:00Z"));
                let status = if kind == "charge.dispute.closed" { "lost" } else { "needs_response" };
                world.server.set_dispute_status("pi_000001", status);
                world.server.refund_in_the_dashboard("pi_000001", 500, "succeeded");
                let event = world.server.event_body("evt_1", kind, of);
                if world.send_event_with_fault(&event, calls, fault).await < calls {
                    break;
                }
                // Stripe sends the event until it is processed. The killed worker may have leased the attempt, so send
                // the event again two hours later, after the end of the lease.
                if world.send_event(&event).await.is_err() {
                    world.system.clock.set(at("2026-03-12T09:00:00Z"));
                    world.send_event(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
                }
                let stored = world.stored_subscription().await;
                match kind {
                    "payment_intent.succeeded" => {
                        assert_eq!((world.receipts().await.len(), stored.attempt), (1, None), "{story}");
                    }
                    "refund.updated" => assert_eq!(world.receipts().await[0].refunded.minor(), 500, "{story}"),
                    _ => {
                        assert!(stored.disputed_at.is_some(), "{story}");
                        let kept = world.table().get_disputes_by_account(&stored.account).await.unwrap();
                        assert_eq!(kept.len(), 1, "{story}");
                        let reversal = world.receipts().await[0].reversal;
                        assert_eq!(reversal.is_some(), status == "lost", "{story}");
                    }
                }
                calls += 1;
            }
            assert!(calls > 3, "{kind}: {calls} calls");
        }
    }
}
