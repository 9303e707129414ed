//! Reconciliation of a table with the lists of the stand-in for Stripe: each difference is named, and what cannot be listed ends nothing.

use std::sync::Arc;

use audit::{Broken, Invariant, Judge, Reconciliation};
use billing::{Dispute, DisputeStatus, GatewayToken, PaymentMethod, Receipt, Refund, RefundStatus, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::{STRIPE_KEY, StripeFault, StripeServer, Wire};
use gateways as gateway;
use gateways::{ChargeAnswer, ChargeRequest, PaymentGateway as _, Refunds as _, Stripe};
use settling::Refunds;
use store::Paging;
use sweep::BatchRequest;
use ulid::Ulid;

use crate::stripe::reached;
use crate::world::{World, another, date, morning, new_subscription};

const DAY: &str = "2026-03-10";
const REFUND: Ulid = Ulid::from_parts(1, 1);

/// Subscriptions that were charged through the stand-in.
struct Charged {
    world: World,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
}

fn pays_as(customer: &str, method: &str) -> PaymentMethod {
    PaymentMethod { customer: customer.parse().unwrap(), payment_method: method.parse().unwrap() }
}

impl Charged {
    async fn new(subscriptions: &[&Subscription]) -> Self {
        let world = World::new().await;
        for subscription in subscriptions {
            world.has(subscription).await;
        }
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(reached(&server, STRIPE_KEY).await);
        let charged = Self { world, server, stripe };
        charged.run(DAY).await;
        charged
    }

    async fn run(&self, day: &str) {
        let payments = self.world.payments_over(Wire::default(), self.stripe.clone()).await;
        self.world.clock.set(morning(day));
        payments.run(&BatchRequest::on(date(day)), morning(day) + TimeDelta::hours(1)).await.unwrap();
    }

    /// Compares the whole table with `gateway` an hour after the last run.
    async fn compared_with(&self, gateway: Arc<dyn gateway::Refunds>) -> Vec<(Invariant, String)> {
        let now = self.world.clock.now() + TimeDelta::hours(1);
        self.world.clock.set(now);
        let (records_kept, lease) = (TimeDelta::days(190), TimeDelta::minutes(20));
        let judge = Judge { shards: 4, today: now.date_naive(), now, records_kept, retry_days: 7, lease };
        let table = self.world.table.get_settings().await.unwrap().unwrap().table_id;
        let (mut reconciliation, mut broken) = Reconciliation::begin(gateway, judge, table).await.unwrap();
        let mut partitions = self.world.table.partitions();
        while let Some(partition) = partitions.next().await.unwrap() {
            broken.extend(reconciliation.compare(&partition).await.unwrap());
            broken.extend(judge.judge(&partition));
        }
        broken.sort();
        broken.into_iter().map(|Broken { invariant, what, .. }| (invariant, what)).collect()
    }

    async fn compared(&self) -> Vec<(Invariant, String)> {
        self.compared_with(self.stripe.clone()).await
    }

    async fn receipt(&self, subscription: &Subscription) -> Receipt {
        let (table, now) = (&self.world.table, self.world.clock.now());
        table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap().items.remove(0)
    }

    /// Charges the period of `subscription` at the gateway once more, without the table.
    async fn charges_again(&self, subscription: &Subscription, payment_method: PaymentMethod) -> GatewayToken {
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
            ChargeAnswer::Succeeded(payment) => payment.id,
            other => panic!("{other:?}"),
        }
    }

    async fn changes_payment_method(&self, subscription: &Subscription, to: PaymentMethod) {
        let changed = |s: &Subscription| Subscription { payment_method: to.clone(), ..s.clone() };
        self.world.customer(subscription, changed).await;
    }

    fn refunds(&self) -> Refunds {
        Refunds::new(self.world.table.clone(), self.stripe.clone(), self.world.clock.clone())
    }

    /// Rewrites the stored refund, as an earlier version or a person may have done.
    async fn rewrites(&self, refund: Refund, change: impl Fn(&Refund) -> Refund) {
        self.world.table.change_refund(refund, |stored| Some(change(stored))).await.unwrap();
    }
}

#[tokio::test]
async fn changed_customer_hides_no_double_charge_and_makes_no_receipt_wrong() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = Charged::new(&[&gold]).await;
    let old = charged.world.stored(&gold).await.payment_method;
    charged.changes_payment_method(&gold, pays_as("cus_new", "pm_card_mastercard")).await;
    assert_eq!(charged.compared().await, [], "the receipt is correct");
    let again = charged.charges_again(&gold, old).await;
    let first = charged.receipt(&gold).await.payment;
    let expected = [
        (Invariant::PaidOnce, format!("2026-03 was charged by {again}, {first}")),
        (Invariant::Receipted, format!("{again} has no receipt")),
    ];
    assert_eq!(charged.compared().await, expected);
}

#[tokio::test]
async fn receipt_of_an_earlier_version_is_compared_with_the_customers_that_are_known() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = Charged::new(&[&gold]).await;
    let receipt = charged.receipt(&gold).await;
    let key = |text: String| aws_sdk_dynamodb::types::AttributeValue::S(text);
    let sk = format!("REC#{DAY}#SKU#{}#SUB#{}", gold.sku, gold.id);
    let update = charged.world.table.client().update_item().table_name(charged.world.table.name());
    let update = update.key("PK", key(format!("ACC#{}", gold.account))).key("SK", key(sk));
    update.update_expression("REMOVE GatewayCustomerId").send().await.unwrap();
    assert_eq!((charged.receipt(&gold).await.customer, receipt.customer.is_some()), (None, true));
    assert_eq!(charged.compared().await, []);
    // Its payment is read by its id once the customer has changed.
    let old = charged.world.stored(&gold).await.payment_method;
    charged.changes_payment_method(&gold, pays_as("cus_new", "pm_card_mastercard")).await;
    assert_eq!(charged.compared().await, []);
    charged.changes_payment_method(&gold, old).await;
    let again = charged.charges_again(&gold, gold.payment_method.clone()).await;
    let found = charged.compared().await;
    assert!(found.contains(&(Invariant::Receipted, format!("{again} has no receipt"))), "{found:?}");
}

#[tokio::test]
async fn customer_of_a_failed_attempt_is_followed() {
    let gold = Subscription {
        payment_method: pays_as("cus_declining", "pm_card_visa_chargeDeclined"),
        ..new_subscription(10, "2026-03-01")
    };
    let charged = Charged::new(&[&gold]).await;
    charged.changes_payment_method(&gold, pays_as("cus_new", "pm_card_visa")).await;
    charged.run("2026-03-11").await;
    assert_eq!(charged.compared().await, []);
    let again = charged.charges_again(&gold, pays_as("cus_declining", "pm_card_visa")).await;
    let found = charged.compared().await;
    assert!(found.contains(&(Invariant::Receipted, format!("{again} has no receipt"))), "{found:?}");
}

#[tokio::test]
async fn customer_that_the_gateway_does_not_know_is_a_finding_and_the_others_are_compared() {
    // More unknown customers in a row than requests may fail before the gateway is asked whether it responds.
    let all: Vec<Subscription> = (0..13)
        .map(|n| Subscription {
            payment_method: pays_as(&format!("cus_{n}"), "pm_card_visa"),
            ..another(n, 10, "2026-03-01")
        })
        .collect();
    let charged = Charged::new(&all.iter().collect::<Vec<_>>()).await;
    assert_eq!(charged.compared().await, []);
    (0..12).for_each(|n| charged.server.forget_customer(&format!("cus_{n}")));
    let again = charged.charges_again(&all[12], all[12].payment_method.clone()).await;
    let found = charged.compared().await;
    let unknown = found.iter().filter(|(invariant, _)| *invariant == Invariant::Listed).collect::<Vec<_>>();
    assert_eq!(unknown.len(), 12, "{found:?}");
    assert!(unknown.iter().any(|(_, what)| what.contains("the customer cus_3 are not compared")), "{unknown:?}");
    assert_eq!(found.len(), 14, "their receipts are not findings: {found:?}");
    assert!(found.contains(&(Invariant::Receipted, format!("{again} has no receipt"))), "{found:?}");
}

#[tokio::test]
async fn gateway_that_does_not_respond_ends_the_audit() {
    let all: Vec<Subscription> = (0..13).map(|n| another(n, 10, "2026-03-01")).collect();
    let charged = Charged::new(&all.iter().collect::<Vec<_>>()).await;
    let now = charged.world.clock.now();
    let judge = Judge {
        shards: 4,
        today: date(DAY),
        now,
        records_kept: TimeDelta::days(190),
        retry_days: 7,
        lease: TimeDelta::minutes(20),
    };
    let (mut reconciliation, _) = Reconciliation::begin(charged.stripe.clone(), judge, Ulid::nil()).await.unwrap();
    charged.server.always(Some(StripeFault::NotBegun));
    let (mut partitions, mut ended) = (charged.world.table.partitions(), None);
    while let Some(partition) = partitions.next().await.unwrap() {
        ended = reconciliation.compare(&partition).await.err();
        if ended.is_some() {
            break;
        }
    }
    assert!(ended.is_some(), "every customer was a finding");
}

#[tokio::test]
async fn refunds_that_differ_from_the_gateways_are_named() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = Charged::new(&[&gold]).await;
    let (receipt, refunds) = (charged.receipt(&gold).await, charged.refunds());
    refunds.refund(&gold.account, &receipt.id(), REFUND, Some(500)).await.unwrap();
    assert_eq!(charged.compared().await, [], "the same refund");

    charged.server.refund_in_the_dashboard(receipt.payment.as_str(), 200, "succeeded");
    let missing = "the gateway has refunded 2.00 EUR by re_000002, and no refund is stored".to_owned();
    assert_eq!(charged.compared().await, [(Invariant::Refunded, missing)]);
    refunds.look_at(&gold.account, &receipt.id(), &receipt.payment).await.unwrap();
    assert_eq!(charged.compared().await, [], "once the event was worked on");

    charged.server.refund_comes_to("re_000001", "failed");
    let failed = format!("the refund {REFUND} of 5.00 EUR is succeeded here and failed at the gateway");
    assert_eq!(charged.compared().await, [(Invariant::Refunded, failed)]);
    charged.server.refund_comes_to("re_000001", "succeeded");

    let stored = charged.world.table.get_refunds_by_receipt(&gold.account, &receipt.id()).await.unwrap();
    let first = stored.into_iter().find(|refund| refund.id == REFUND).unwrap();
    charged.rewrites(first.clone(), |r| Refund { status: RefundStatus::Pending, settled_at: None, ..r.clone() }).await;
    let pending = format!("the refund {REFUND} of 5.00 EUR is pending here and succeeded at the gateway");
    assert_eq!(charged.compared().await, [(Invariant::Refunded, pending)]);
    let succeeded =
        |r: &Refund| Refund { status: RefundStatus::Succeeded, settled_at: Some(r.created_at), ..r.clone() };
    charged.rewrites(first, succeeded).await;

    // Neither the request nor the look-up got a response.
    charged.server.next([None, Some(StripeFault::NotBegun), Some(StripeFault::NotBegun)]);
    refunds.refund(&gold.account, &receipt.id(), Ulid::from_parts(5, 5), Some(100)).await.unwrap();
    let unlisted = "is pending here, and the gateway does not list it";
    let found = charged.compared().await;
    assert!(found.len() == 1 && found[0].1.ends_with(unlisted), "{found:?}");
}

#[tokio::test]
async fn refund_that_was_recorded_as_failed_and_made_is_named_by_every_gateway() {
    let gold = new_subscription(10, "2026-03-01");
    let world = World::new().await;
    world.has(&gold).await;
    world.charge(DAY).await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = Arc::new(reached(&server, STRIPE_KEY).await);
    let charged = Charged { world, server, stripe };
    let receipt = charged.receipt(&gold).await;
    let sandbox = charged.world.sandbox.clone();
    let refunds = Refunds::new(charged.world.table.clone(), sandbox.clone(), charged.world.clock.clone());
    let refund = refunds.refund(&gold.account, &receipt.id(), REFUND, Some(500)).await.unwrap();
    assert!(sandbox.refunds_since(receipt.processed_at).await.unwrap().is_none(), "it lists refunds by payment only");
    assert_eq!(charged.compared_with(sandbox.clone()).await, []);
    let failed =
        |r: &Refund| Some(Refund { status: RefundStatus::Failed, code: Some("rate_limit".into()), ..r.clone() });
    charged.world.table.settle_refund(refund, failed).await.unwrap();
    let expected = format!("the refund {REFUND} of 5.00 EUR is failed here and succeeded at the gateway");
    assert_eq!(charged.compared_with(sandbox).await, [(Invariant::Refunded, expected)]);
}

#[tokio::test]
async fn disputes_that_differ_from_the_gateways_are_named() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = Charged::new(&[&gold]).await;
    let receipt = charged.receipt(&gold).await;
    charged.world.clock.set(charged.world.clock.now() + TimeDelta::days(1));
    let id = charged.server.dispute(receipt.payment.as_str(), "needs_response");
    let missing =
        format!("the dispute {id} of 12.99 EUR of {} is open at the gateway, and is not stored", receipt.payment);
    assert_eq!(charged.compared().await, [(Invariant::Disputed, missing)]);

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
    assert_eq!(charged.compared().await, [], "the same dispute");
    charged.server.dispute(receipt.payment.as_str(), "lost");
    let lost = format!("the dispute {id} is open here and lost at the gateway");
    assert_eq!(charged.compared().await, [(Invariant::Disputed, lost)]);
    let unknown = Dispute { id: "dp_unknown".parse().unwrap(), ..dispute };
    charged.world.table.write_dispute(&unknown, None).await.unwrap();
    let found = charged.compared().await;
    let unlisted = "the dispute dp_unknown is open here, and the gateway does not list it".to_owned();
    assert!(found.contains(&(Invariant::Disputed, unlisted)), "{found:?}");
}

#[tokio::test]
async fn lists_that_the_key_may_not_read_are_findings() {
    let gold = new_subscription(10, "2026-03-01");
    let charged = Charged::new(&[&gold]).await;
    charged.server.next([Some(StripeFault::Forbidden), Some(StripeFault::Forbidden)]);
    let found = charged.compared().await;
    let said: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("disputes are not compared: ") && said[1].starts_with("refunds are not compared: "),
        "{said:?}"
    );
}
