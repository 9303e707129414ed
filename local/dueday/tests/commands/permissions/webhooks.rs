//! Tests of the IAM policies of the Lambda functions that handle inbound webhooks.

use std::sync::Arc;
use std::time::Duration;

use clock::Clock as _;
use deployment::Deployment;
use dynamo::Entity as _;
use emulator::{STRIPE_KEY, ServerLimits, StripeServer, serve_http};
use gateway_objects::PaymentMethodSetups;
use gateways::{SigningSecrets, Stripe};
use inbound::{InboundOutcome, MailFeedbackHandler, StripeEventHandler};
use store::Paging;
use testkit::{sample_account, sample_subscription};

use super::policies::assert_policy;
use super::{World, parse_date, six_oclock};

#[tokio::test]
async fn policy_of_webhooks_function_matches_its_requests() {
    let world = World::new(&[]).await;
    let (clock, table) = (world.system.clock.clone(), &world.system.deployment.table);
    clock.set(six_oclock("2027-01-10"));
    let server = StripeServer::new(clock.clone());
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, server.clone().router(), ServerLimits::default()));
    let stripe = Arc::new(Stripe::new(STRIPE_KEY, &url, Duration::from_secs(5)));
    table.put_account(&sample_account()).await.unwrap();
    for (day, card) in [(9, "pm_card_visa"), (10, "pm_usBankAccount_success")] {
        let mut subscription = sample_subscription(day, parse_date("2027-01-01"));
        subscription.payment_method.payment_method = card.parse().unwrap();
        table.create_subscription(&subscription, None).await.unwrap();
    }
    let deployment = Deployment { gateway: stripe.clone(), ..world.system.deployment.clone() };
    let today = sweep::BatchRequest::for_date(parse_date("2027-01-10"));
    deployment
        .payment_batch()
        .await
        .unwrap()
        .run(&today, six_oclock("2027-01-10") + chrono::TimeDelta::hours(1))
        .await
        .unwrap();
    let setups = PaymentMethodSetups::new(table.clone(), stripe.clone(), clock.clone());
    let setup = setups.open(&sample_account(), None, |_| "http://127.0.0.1/back".to_owned()).await.unwrap();
    table.create_setup(&setup, None).await.unwrap();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let given = http.post(&setup.url).header("content-type", "application/x-www-form-urlencoded");
    given.body("payment_method=pm_card_mastercard").send().await.unwrap();

    let secrets = SigningSecrets::parse("whsec_0123456789abcdef").unwrap();
    let events = StripeEventHandler::new(world.recorded.table.clone(), stripe, secrets.clone(), clock.clone());
    clock.set(six_oclock("2027-01-13"));
    let paid: Vec<String> = server.intents().into_iter().map(|intent| intent.id).collect();
    let paid_with = |method: &str| {
        let is_it = |id: &&String| {
            let event = server.event_body("evt_0", "", id);
            event.contains("\"acme\"") && event.contains(method)
        };
        paid.iter().find(is_it).unwrap()
    };
    let (card, debit) = (paid_with("\"pm_card_visa\""), paid_with("pm_usBankAccount_success"));
    let refund = server.refund_in_the_dashboard(card, 100, "succeeded");
    let dispute = server.set_dispute_status(card, "needs_response");
    for (number, of) in [debit, setup.page.as_str(), &refund, &dispute, card].into_iter().enumerate() {
        let event = server.event_body(&format!("evt_{number}"), "something", of);
        let header = secrets.sign(event.as_bytes(), six_oclock("2027-01-13"));
        assert_eq!(events.handle(&header, event.as_bytes()).await.unwrap(), InboundOutcome::Processed, "{event}");
    }
    server.set_refund_status(&refund, "failed");
    server.set_dispute_status(card, "won");
    for (number, of) in [(10, &refund), (11, &dispute)] {
        let event = server.event_body(&format!("evt_{number}"), "something", of);
        let header = secrets.sign(event.as_bytes(), six_oclock("2027-01-13"));
        assert_eq!(events.handle(&header, event.as_bytes()).await.unwrap(), InboundOutcome::Processed, "{event}");
    }
    // A payment without a receipt becomes a finding.
    let receipts =
        table.get_receipts_by_account(&sample_account().id, &Paging::all(), clock.now()).await.unwrap().items;
    for receipt in receipts {
        let delete = table.client().delete_item().table_name(table.name()).set_key(Some(receipt.key().attributes()));
        delete.send().await.unwrap();
    }
    let event = server.event_body("evt_20", "something", card);
    let header = secrets.sign(event.as_bytes(), six_oclock("2027-01-13"));
    assert_eq!(events.handle(&header, event.as_bytes()).await.unwrap(), InboundOutcome::Processed, "{event}");
    assert_eq!(table.get_open_findings().await.unwrap().len(), 1);
    assert_policy("WebhooksFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_mail_feedback_function_matches_its_requests() {
    let world = World::new(&[]).await;
    world.system.deployment.table.put_account(&sample_account()).await.unwrap();
    let complaint = r#"{"eventType": "Complaint", "mail": {"tags": {"account": ["acme"]}},
        "complaint": {"complainedRecipients": [{"emailAddress": "billing@acme.example.com"}]}}"#;
    MailFeedbackHandler::new(world.recorded.table.clone()).handle(complaint).await.unwrap();
    assert_policy("MailFeedbackFunction", &world.connection.recorded_permissions());
}
