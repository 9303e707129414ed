//! Tests of the reconciliation of a table with the payments, refunds and disputes at the stand-in for Stripe: each
//! difference is reported, and also each list that cannot be read.

use std::sync::Arc;

use audit::{BrokenInvariant, Invariant, InvariantChecker, Reconciliation};
use billing::{Dispute, DisputeStatus, GatewayToken, PaymentMethod, Receipt, Refund, RefundStatus, Subscription};
use charging::FindingDecision;
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::{EngineConnection, STRIPE_KEY, StripeFault, StripeServer};
use gateway_objects::RefundRequester;
use gateways as gateway;
use gateways::{ChargeRequest, ChargeResponse, PaymentGateway as _, Refunds as _, Stripe};
use store::Paging;
use sweep::BatchRequest;
use ulid::Ulid;

use crate::stripe::connect;
use crate::world::{World, billing_time, date, new_subscription, numbered_subscription};

/// The day on which the subscriptions are charged.
const DAY: &str = "2026-03-10";
/// The id of the first refund in a test.
const REFUND_ID: Ulid = Ulid::from_parts(1, 1);

/// A world whose subscriptions were charged at the stand-in for Stripe.
struct ChargedWorld {
    world: World,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
}

fn payment_method(customer: &str, method: &str) -> PaymentMethod {
    PaymentMethod { customer: customer.parse().unwrap(), payment_method: method.parse().unwrap() }
}

impl ChargedWorld {
    /// Creates a world with these subscriptions, and runs its payment batch on [`DAY`].
    async fn new(subscriptions: &[&Subscription]) -> Self {
        let world = World::new().await;
        for subscription in subscriptions {
            world.store(subscription).await;
        }
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(connect(&server, STRIPE_KEY).await);
        let charged = Self { world, server, stripe };
        charged.run_payments(DAY).await;
        charged
    }

    /// Runs the payment batch with the stand-in for Stripe at the billing time of `day`.
    async fn run_payments(&self, day: &str) {
        let payments = self.world.separate_payment_batch(EngineConnection::default(), self.stripe.clone()).await;
        self.world.clock.set(billing_time(day));
        payments.run(&BatchRequest::for_date(date(day)), billing_time(day) + TimeDelta::hours(1)).await.unwrap();
    }

    /// Audits the whole table and compares it with `gateway`, an hour after the last run. Returns the violated
    /// invariants with their descriptions.
    async fn reconcile_with(&self, gateway: Arc<dyn gateway::Refunds>) -> Vec<(Invariant, String)> {
        let now = self.world.clock.now() + TimeDelta::hours(1);
        self.world.clock.set(now);
        let records_kept = TimeDelta::days(190);
        let checker = InvariantChecker {
            shards: 4,
            today: now.date_naive(),
            now,
            records_kept,
            longest_gap: 2,
            lead: Default::default(),
        };
        let table = self.world.table.get_settings().await.unwrap().unwrap().table_id;
        let (mut reconciliation, mut found) = Reconciliation::begin(gateway, checker, table).await.unwrap();
        let mut partitions = self.world.table.account_partitions();
        while let Some(partition) = partitions.next().await.unwrap() {
            found.extend(reconciliation.compare_account(&partition).await.unwrap());
            found.extend(checker.check_account(&partition));
        }
        found.sort();
        found.into_iter().map(|BrokenInvariant { invariant, what, .. }| (invariant, what)).collect()
    }

    /// Audits the whole table and compares it with the stand-in for Stripe.
    async fn reconcile(&self) -> Vec<(Invariant, String)> {
        self.reconcile_with(self.stripe.clone()).await
    }

    /// Returns the latest receipt of the account of `subscription`.
    async fn receipt(&self, subscription: &Subscription) -> Receipt {
        let (table, now) = (&self.world.table, self.world.clock.now());
        table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap().items.remove(0)
    }

    /// Charges the same period of `subscription` again at the gateway, without changing the table. Returns the id of
    /// the payment.
    async fn charge_again(&self, subscription: &Subscription, payment_method: PaymentMethod) -> GatewayToken {
        let request = ChargeRequest {
            idempotency_key: "another key".to_owned(),
            table: self.world.table.get_settings().await.unwrap().map(|settings| settings.table_id),
            account: subscription.account.clone(),
            subscription: subscription.id,
            sku: subscription.sku.clone(),
            due_on: date(DAY),
            attempt_no: 7,
            amount: subscription.price,
            payment_method,
        };
        match self.stripe.charge(&request).await {
            ChargeResponse::Succeeded(payment) => payment.id,
            other => panic!("{other:?}"),
        }
    }

    async fn change_payment_method(&self, subscription: &Subscription, new: PaymentMethod) {
        let change = |s: &Subscription| Subscription { payment_method: new.clone(), ..s.clone() };
        self.world.change_subscription(subscription, change).await;
    }

    /// Returns the service that refunds payments at the stand-in for Stripe.
    fn refunds(&self) -> RefundRequester {
        RefundRequester::new(self.world.table.clone(), self.stripe.clone(), self.world.clock.clone())
    }

    /// Changes the stored refund directly, as an earlier version of Dueday or an operator may have done.
    async fn rewrite_refund(&self, refund: Refund, change: impl Fn(&Refund) -> Refund) {
        self.world.table.change_refund(refund, |stored| Some(change(stored))).await.unwrap();
    }
}

#[tokio::test]
async fn unreadable_refund_of_a_receipt_is_reported_and_foreign_objects_are_ignored() {
    let (gold, silver) = (numbered_subscription(1, 10, "2026-03-01"), numbered_subscription(2, 10, "2026-03-01"));
    let charged = ChargedWorld::new(&[&gold, &silver]).await;
    charged.server.set_foreign_objects(3);
    assert_eq!(charged.reconcile().await, []);
    let [unreadable, with_nulls] = [charged.receipt(&gold).await, charged.receipt(&silver).await]
        .map(|receipt| charged.server.refund_in_the_dashboard(receipt.payment.as_str(), 100, "succeeded"));
    charged.server.set_currency_of_refund(&unreadable, "xyz");
    charged.server.hide_fields_of_refund(&with_nulls);
    let Receipt { payment, account, .. } = charged.receipt(&silver).await;
    let expected = [
        (
            Invariant::Refunded,
            format!("{with_nulls}: the gateway refunded 1.00 EUR of {payment} ({account}), but no refund is stored"),
        ),
        (Invariant::Listed, format!("{unreadable} is not compared: it has no valid currency")),
    ];
    assert_eq!(charged.reconcile().await, expected);
}

#[tokio::test]
async fn payment_that_is_listed_twice_is_no_double_charge() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    charged.server.set_permanent_fault(Some(StripeFault::ListedTwice));
    assert_eq!(charged.reconcile().await, []);
}

#[tokio::test]
async fn double_charge_is_found_after_a_change_of_the_customer() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    let old = charged.world.load(&gold).await.payment_method;
    charged.change_payment_method(&gold, payment_method("cus_new", "pm_card_mastercard")).await;
    assert_eq!(charged.reconcile().await, [], "the receipt is correct, although the customer has changed");
    let again = charged.charge_again(&gold, old).await;
    let first = charged.receipt(&gold).await.payment;
    let expected = [
        (Invariant::PaidOnce, format!("2026-03 was charged more than once: {again}, {first}")),
        (
            Invariant::Receipted,
            format!(
                "{again}: acme paid 12.99 EUR for 2026-03-10 ({}), but the receipt of this period is of {first}",
                gold.id
            ),
        ),
    ];
    assert_eq!(charged.reconcile().await, expected);
}

#[tokio::test]
async fn double_charge_about_which_a_person_has_decided_is_no_difference() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    let again = charged.charge_again(&gold, charged.world.load(&gold).await.payment_method).await;
    let (engine, gateway) = (charged.world.engine(), charged.stripe.clone());
    let payment = charged.stripe.payment(&again).await.unwrap().unwrap();
    engine.apply_payment(gateway.as_ref(), &payment, date(DAY)).await.unwrap();
    // The differences are the double charge, the payment without a receipt, and the open finding.
    assert_eq!(charged.reconcile().await.len(), 3, "the finding is open");
    let refund = charged.server.refund_in_the_dashboard(again.as_str(), gold.price.minor(), "succeeded");
    assert_eq!(charged.reconcile().await.len(), 3, "no person has decided");
    engine
        .resolve_finding(gateway.as_ref(), &gold.account, &again, FindingDecision::Close, "refunded", date(DAY))
        .await
        .unwrap();
    assert_eq!(charged.reconcile().await, []);
    // The bank returns the refund: the merchant keeps the money of a payment that a person closed as refunded.
    charged.server.set_refund_status(&refund, "failed");
    assert_eq!(charged.reconcile().await.len(), 2, "the refund has failed");
    charged.server.refund_in_the_dashboard(again.as_str(), gold.price.minor(), "pending");
    assert_eq!(charged.reconcile().await, [], "the money is refunded by another refund");
}

#[tokio::test]
async fn double_charge_whose_money_a_person_has_decided_to_keep_is_no_difference_at_any_gateway() {
    let gold = new_subscription(10, "2026-03-01");
    let world = World::new().await;
    world.store(&gold).await;
    world.run_payments(DAY).await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = Arc::new(connect(&server, STRIPE_KEY).await);
    let charged = ChargedWorld { world, server, stripe };
    let (sandbox, receipt) = (charged.world.sandbox.clone(), charged.receipt(&gold).await);
    let request = ChargeRequest {
        idempotency_key: "another key".to_owned(),
        table: charged.world.table.get_settings().await.unwrap().map(|settings| settings.table_id),
        account: gold.account.clone(),
        subscription: gold.id,
        sku: gold.sku.clone(),
        due_on: receipt.due_on,
        attempt_no: 7,
        amount: gold.price,
        payment_method: gold.payment_method.clone(),
    };
    let ChargeResponse::Succeeded(again) = sandbox.charge(&request).await else { panic!("the charge failed") };
    let (engine, gateway) = (charged.world.engine(), sandbox.clone());
    engine.apply_payment(gateway.as_ref(), &again, date(DAY)).await.unwrap();
    assert_eq!(charged.reconcile_with(sandbox.clone()).await.len(), 3, "the finding is open");
    let decision = FindingDecision::CloseAlthoughPaid;
    engine
        .resolve_finding(gateway.as_ref(), &gold.account, &again.id, decision, "paid in advance", date(DAY))
        .await
        .unwrap();
    assert_eq!(charged.reconcile_with(sandbox).await, []);
}

#[tokio::test]
async fn receipt_without_a_stored_customer_is_compared_with_the_known_customers() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    let receipt = charged.receipt(&gold).await;
    let key = |text: String| aws_sdk_dynamodb::types::AttributeValue::S(text);
    let sk = format!("REC#{DAY}#SKU#{}#SUB#{}", gold.sku, gold.id);
    let update = charged.world.table.client().update_item().table_name(charged.world.table.name());
    let update = update.key("PK", key(format!("ACC#{}", gold.account))).key("SK", key(sk));
    update.update_expression("REMOVE GatewayCustomerId").send().await.unwrap();
    assert_eq!((charged.receipt(&gold).await.customer, receipt.customer.is_some()), (None, true));
    assert_eq!(charged.reconcile().await, []);
    // After a change of the customer, the reconciliation reads the payment by its id.
    let old = charged.world.load(&gold).await.payment_method;
    charged.change_payment_method(&gold, payment_method("cus_new", "pm_card_mastercard")).await;
    assert_eq!(charged.reconcile().await, []);
    charged.change_payment_method(&gold, old).await;
    let again = charged.charge_again(&gold, gold.payment_method.clone()).await;
    let found = charged.reconcile().await;
    let expected = format!("{again}: ");
    let is_reported = |(invariant, what): &(Invariant, String)| {
        *invariant == Invariant::Receipted
            && what.starts_with(&expected)
            && what.contains("but the receipt of this period is of")
    };
    assert!(found.iter().any(is_reported), "{found:?}");
}

#[tokio::test]
async fn payments_of_the_customer_of_a_failed_attempt_are_compared() {
    let gold = Subscription {
        payment_method: payment_method("cus_declining", "pm_card_visa_chargeDeclined"),
        ..new_subscription(10, "2026-03-01")
    };
    let charged = ChargedWorld::new(&[&gold]).await;
    charged.change_payment_method(&gold, payment_method("cus_new", "pm_card_visa")).await;
    charged.run_payments("2026-03-11").await;
    assert_eq!(charged.reconcile().await, []);
    let again = charged.charge_again(&gold, payment_method("cus_declining", "pm_card_visa")).await;
    let found = charged.reconcile().await;
    let expected = format!("{again}: ");
    let is_reported = |(invariant, what): &(Invariant, String)| {
        *invariant == Invariant::Receipted
            && what.starts_with(&expected)
            && what.contains("but the receipt of this period is of")
    };
    assert!(found.iter().any(is_reported), "{found:?}");
}

#[tokio::test]
async fn customer_unknown_to_the_gateway_is_reported_and_other_customers_are_compared() {
    // After a certain number of consecutive failed requests, the reconciliation checks whether the gateway responds at
    // all. This test has more unknown customers than this number.
    let all: Vec<Subscription> = (0..13)
        .map(|n| Subscription {
            payment_method: payment_method(&format!("cus_{n}"), "pm_card_visa"),
            ..numbered_subscription(n, 10, "2026-03-01")
        })
        .collect();
    let charged = ChargedWorld::new(&all.iter().collect::<Vec<_>>()).await;
    assert_eq!(charged.reconcile().await, []);
    (0..12).for_each(|n| charged.server.delete_customer(&format!("cus_{n}")));
    let again = charged.charge_again(&all[12], all[12].payment_method.clone()).await;
    let found = charged.reconcile().await;
    let unknown = found.iter().filter(|(invariant, _)| *invariant == Invariant::Listed).collect::<Vec<_>>();
    assert_eq!(unknown.len(), 12, "{found:?}");
    assert!(unknown.iter().any(|(_, what)| what.contains("the customer cus_3 are not compared")), "{unknown:?}");
    assert_eq!(found.len(), 14, "the receipts of the unknown customers are not reported: {found:?}");
    let expected = format!("{again}: ");
    let is_reported = |(invariant, what): &(Invariant, String)| {
        *invariant == Invariant::Receipted
            && what.starts_with(&expected)
            && what.contains("but the receipt of this period is of")
    };
    assert!(found.iter().any(is_reported), "{found:?}");
}

#[tokio::test]
async fn gateway_that_does_not_respond_ends_the_audit() {
    let all: Vec<Subscription> = (0..13).map(|n| numbered_subscription(n, 10, "2026-03-01")).collect();
    let charged = ChargedWorld::new(&all.iter().collect::<Vec<_>>()).await;
    let now = charged.world.clock.now();
    let checker = InvariantChecker {
        shards: 4,
        today: date(DAY),
        now,
        records_kept: TimeDelta::days(190),
        longest_gap: 2,
        lead: Default::default(),
    };
    let (mut reconciliation, _) = Reconciliation::begin(charged.stripe.clone(), checker, Ulid::nil()).await.unwrap();
    charged.server.set_permanent_fault(Some(StripeFault::NotBegun));
    let (mut partitions, mut error) = (charged.world.table.account_partitions(), None);
    while let Some(partition) = partitions.next().await.unwrap() {
        error = reconciliation.compare_account(&partition).await.err();
        if error.is_some() {
            break;
        }
    }
    assert!(error.is_some(), "the audit must end with an error instead of a report for each customer");
}

#[tokio::test]
async fn refunds_that_differ_from_the_gateway_are_reported() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    let (receipt, refunds) = (charged.receipt(&gold).await, charged.refunds());
    refunds.refund(&gold.account, &receipt.id(), REFUND_ID, Some(500), None).await.unwrap();
    assert_eq!(charged.reconcile().await, [], "the table and the gateway have the same refund");

    charged.server.refund_in_the_dashboard(receipt.payment.as_str(), 200, "succeeded");
    let Receipt { payment, account, .. } = &receipt;
    let missing = format!("re_000002: the gateway refunded 2.00 EUR of {payment} ({account}), but no refund is stored");
    assert_eq!(charged.reconcile().await, [(Invariant::Refunded, missing)]);
    refunds.update_refunds_from_gateway(&gold.account, &receipt.id(), &receipt.payment).await.unwrap();
    assert_eq!(charged.reconcile().await, [], "after the update of the stored refunds");

    charged.server.set_refund_status("re_000001", "failed");
    let refund = format!("re_000001: the refund {REFUND_ID} of 5.00 EUR for {payment} ({account})");
    let failed = format!("{refund} is succeeded in the table and failed at the gateway");
    assert_eq!(charged.reconcile().await, [(Invariant::Refunded, failed)]);
    charged.server.set_refund_status("re_000001", "succeeded");

    let stored = charged.world.table.get_refunds_by_receipt(&gold.account, &receipt.id()).await.unwrap();
    let first = stored.into_iter().find(|refund| refund.id == REFUND_ID).unwrap();
    charged
        .rewrite_refund(first.clone(), |r| Refund { status: RefundStatus::Pending, settled_at: None, ..r.clone() })
        .await;
    let pending = format!("{refund} is pending in the table and succeeded at the gateway");
    assert_eq!(charged.reconcile().await, [(Invariant::Refunded, pending)]);
    let succeeded =
        |r: &Refund| Refund { status: RefundStatus::Succeeded, settled_at: Some(r.created_at), ..r.clone() };
    charged.rewrite_refund(first, succeeded).await;

    // Neither the refund request nor its look-up gets a response.
    charged.server.set_next_faults([None, Some(StripeFault::NotBegun), Some(StripeFault::NotBegun)]);
    refunds.refund(&gold.account, &receipt.id(), Ulid::from_parts(5, 5), Some(100), None).await.unwrap();
    let unlisted = "is pending in the table, but the gateway does not have it";
    let found = charged.reconcile().await;
    assert!(found.len() == 1 && found[0].1.ends_with(unlisted), "{found:?}");
}

#[tokio::test]
async fn successful_refund_that_is_stored_as_failed_is_reported_for_every_gateway() {
    let gold = new_subscription(10, "2026-03-01");
    let world = World::new().await;
    world.store(&gold).await;
    world.run_payments(DAY).await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = Arc::new(connect(&server, STRIPE_KEY).await);
    let charged = ChargedWorld { world, server, stripe };
    let receipt = charged.receipt(&gold).await;
    let sandbox = charged.world.sandbox.clone();
    let refunds = RefundRequester::new(charged.world.table.clone(), sandbox.clone(), charged.world.clock.clone());
    let refund = refunds.refund(&gold.account, &receipt.id(), REFUND_ID, Some(500), None).await.unwrap();
    assert!(
        sandbox.refunds_since(receipt.processed_at).await.unwrap().is_none(),
        "the sandbox lists refunds only by payment"
    );
    assert_eq!(charged.reconcile_with(sandbox.clone()).await, []);
    let failed =
        |r: &Refund| Some(Refund { status: RefundStatus::Failed, code: Some("rate_limit".into()), ..r.clone() });
    charged.world.table.settle_refund(refund, failed).await.unwrap();
    let expected = " of 5.00 EUR for ";
    let found = charged.reconcile_with(sandbox).await;
    let ends = found[0].1.ends_with("(acme) is failed in the table and succeeded at the gateway");
    assert!(found.len() == 1 && found[0].1.contains(expected) && ends, "{found:?}");
}

#[tokio::test]
async fn disputes_that_differ_from_the_gateway_are_reported() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    let receipt = charged.receipt(&gold).await;
    charged.world.clock.set(charged.world.clock.now() + TimeDelta::days(1));
    let id = charged.server.set_dispute_status(receipt.payment.as_str(), "needs_response");
    let missing = format!("{id}: the dispute of 12.99 EUR for {} (acme) is open, but is not stored", receipt.payment);
    assert_eq!(charged.reconcile().await, [(Invariant::Disputed, missing)]);

    let dispute = Dispute {
        id: id.parse().unwrap(),
        account: gold.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: "pm_another".parse().unwrap(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Open,
        opened_at: charged.world.clock.now() - TimeDelta::hours(1),
        closed_at: None,
        version: 1,
    };
    charged.world.table.write_dispute(&dispute, None).await.unwrap();
    assert_eq!(charged.reconcile().await, [], "the table and the gateway have the same dispute");
    charged.server.set_dispute_status(receipt.payment.as_str(), "lost");
    let of = format!("12.99 EUR for {} (acme)", receipt.payment);
    let lost = format!("{id}: the dispute of {of} is open in the table, and at the gateway it is lost with 12.99 EUR");
    assert_eq!(charged.reconcile().await, [(Invariant::Disputed, lost)]);
    let unknown = Dispute { id: "dp_unknown".parse().unwrap(), ..dispute };
    charged.world.table.write_dispute(&unknown, None).await.unwrap();
    let found = charged.reconcile().await;
    let of = &receipt.payment;
    let unlisted =
        format!("dp_unknown: the dispute of {of} (acme) is open in the table, but the gateway does not list it");
    assert!(found.contains(&(Invariant::Disputed, unlisted)), "{found:?}");
}

#[tokio::test]
async fn lists_that_the_api_key_may_not_read_are_reported() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = ChargedWorld::new(&[&gold]).await;
    charged.server.set_next_faults([Some(StripeFault::Forbidden), Some(StripeFault::Forbidden)]);
    let found = charged.reconcile().await;
    let texts: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts[0].starts_with("disputes are not compared: ") && texts[1].starts_with("refunds are not compared: "),
        "{texts:?}"
    );
}
