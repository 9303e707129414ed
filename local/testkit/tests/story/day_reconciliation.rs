//! Tests of the comparison of a day: the table is compared with the stand-in for Stripe. The comparison finds every
//! kind of difference and reports nothing else. An interrupted comparison continues, and its memory has a maximum.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use billing::{
    AcceptedDifference, ActionKind, Actor, DayReconciliation, DifferenceKind, Dispute, DisputeStatus, Finding,
    FindingReason, GatewayDifference, GatewayList, Label, NewAction, PaymentMethod, Receipt, ReconciledCounts,
    ReconciliationStep, ResolvedFinding, Subscription,
};
use charging::{ApplyResult, FindingDecision};
use chrono::{NaiveDate, TimeDelta};
use clock::Clock as _;
use emulator::{EngineConnection, STRIPE_KEY, ServerLimits, StripeFault, StripeServer, serve_http};
use gateway_objects::RefundRequester;
use gateways::{ChargeRequest, ChargeResponse, HttpGateway, PaymentGateway as _, Stripe};
use reconciling::{CorrectionMode, ReconcileError, Reconciler};
use store::Paging;
use sweep::BatchRequest;
use ulid::Ulid;

use crate::stripe::connect;
use crate::world::{World, billing_time, date, numbered_subscription};

/// The day on which all payments are made, and that is compared.
pub const DAY: &str = "2026-03-10";
/// The day after [`DAY`].
pub const NEXT_DAY: &str = "2026-03-11";

/// Returns a reconciler, which compares the table of `world` with `gateway`.
pub async fn reconciler(world: &World, gateway: Arc<dyn gateways::Refunds>, corrections: CorrectionMode) -> Reconciler {
    let table_id = world.table.get_settings().await.unwrap().unwrap().table_id;
    let today = world.clock.now().date_naive();
    Reconciler::new(world.table.clone(), table_id, gateway, corrections, world.clock.clone(), today)
}

/// A world whose subscriptions were charged at the stand-in for Stripe on [`DAY`].
pub struct ChargedWorld {
    pub world: World,
    pub server: Arc<StripeServer>,
    pub stripe: Arc<Stripe>,
    pub subscriptions: Vec<Subscription>,
}

impl ChargedWorld {
    /// Creates a world with subscriptions that are paid with `cards`, and runs its payment batch.
    pub async fn new(cards: &[&str]) -> Self {
        let world = World::new().await;
        let mut subscriptions = Vec::new();
        for (n, card) in (0..).zip(cards) {
            let payment_method =
                PaymentMethod { customer: format!("cus_{n}").parse().unwrap(), payment_method: card.parse().unwrap() };
            let subscription = Subscription { payment_method, ..numbered_subscription(n, 10, "2026-03-01") };
            world.store(&subscription).await;
            subscriptions.push(subscription);
        }
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(connect(&server, STRIPE_KEY).await);
        let payments = world.separate_payment_batch(EngineConnection::default(), stripe.clone()).await;
        world.clock.set(billing_time(DAY));
        payments.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
        world.clock.set(billing_time(DAY) + TimeDelta::hours(2));
        Self { world, server, stripe, subscriptions }
    }

    pub async fn table_id(&self) -> Ulid {
        self.world.table.get_settings().await.unwrap().unwrap().table_id
    }

    pub async fn reconciler(&self, gateway: Arc<dyn gateways::Refunds>, corrections: CorrectionMode) -> Reconciler {
        reconciler(&self.world, gateway, corrections).await
    }

    /// Compares [`DAY`] on the next day. Settles payments without a receipt, or stores findings for them.
    pub async fn reconcile(&self) -> DayReconciliation {
        self.world.clock.set(billing_time(NEXT_DAY));
        let mut reconciler = self.reconciler(self.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
        reconciler.reconcile(date(DAY), None).await.unwrap()
    }

    /// Compares [`DAY`] on the next day, and only reports the differences.
    pub async fn report(&self) -> DayReconciliation {
        self.world.clock.set(billing_time(NEXT_DAY));
        let mut reconciler = self.reconciler(self.stripe.clone(), CorrectionMode::ReportOnly).await;
        reconciler.reconcile(date(DAY), None).await.unwrap()
    }

    /// Returns the latest receipt of the subscription `n`.
    pub async fn receipt(&self, n: usize) -> Receipt {
        let account = &self.subscriptions[n].account;
        let receipts = self.world.table.get_receipts_by_account(account, &Paging::all(), self.world.clock.now()).await;
        receipts.unwrap().items.remove(0)
    }

    /// Charges the subscription `n` for `due_on` at the gateway, without changing the table. Returns the payment's id.
    pub async fn charge_at_gateway(&self, n: usize, due_on: &str, attempt_no: u32, table: Ulid) -> String {
        let subscription = &self.subscriptions[n];
        let request = ChargeRequest {
            idempotency_key: format!("{n} {due_on} {attempt_no} {table}"),
            table: Some(table),
            account: subscription.account.clone(),
            subscription: subscription.id,
            sku: subscription.sku.clone(),
            due_on: date(due_on),
            attempt_no,
            amount: subscription.price,
            payment_method: PaymentMethod {
                payment_method: "pm_card_visa".parse().unwrap(),
                ..subscription.payment_method.clone()
            },
        };
        match self.stripe.charge(&request).await {
            ChargeResponse::Succeeded(payment) => payment.id.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// Changes the amount of the receipt of the subscription `n` directly in the table.
    async fn change_receipt_amount(&self, n: usize, minor: i64) {
        use aws_sdk_dynamodb::types::AttributeValue;
        let subscription = &self.subscriptions[n];
        let sk = format!("REC#{DAY}#SKU#{}#SUB#{}", subscription.sku, subscription.id);
        let update = self.world.table.client().update_item().table_name(self.world.table.name());
        let update = update.key("PK", AttributeValue::S(format!("ACC#{}", subscription.account)));
        let update = update.key("SK", AttributeValue::S(sk)).update_expression("SET ProcessedAmount = :amount");
        let amount = AttributeValue::N(minor.to_string());
        update.expression_attribute_values(":amount", amount).send().await.unwrap();
    }

    /// Accepts a difference, as an operator does: stores the decision and its entry in the action log.
    pub async fn accept(&self, on: NaiveDate, kind: DifferenceKind, id: &str) {
        let (reason, at): (Label, _) = ("seen in the dashboard".parse().unwrap(), self.world.clock.now());
        let accepted = AcceptedDifference { on, kind, id: id.to_owned(), reason: reason.clone(), at };
        let actor = Actor::Operator(None);
        let action = NewAction { at, actor, kind: ActionKind::AcceptDifference, reason: Some(reason) };
        assert!(self.world.table.accept_difference(&accepted, &action).await.unwrap(), "{accepted:?}");
        assert!(
            !self.world.table.accept_difference(&accepted, &action).await.unwrap(),
            "the difference is already accepted"
        );
        let entries = self.world.table.get_actions_without_account(&Paging::all(), at).await.unwrap().items;
        assert!(entries.iter().any(|entry| entry.item.as_deref() == Some(id)), "{entries:?}");
    }

    /// Returns the service that refunds payments at the stand-in for Stripe.
    pub fn refunds(&self) -> RefundRequester {
        RefundRequester::new(self.world.table.clone(), self.stripe.clone(), self.world.clock.clone())
    }

    /// Returns the reasons of all open findings.
    async fn finding_reasons(&self) -> Vec<FindingReason> {
        let open = self.world.table.get_open_findings().await.unwrap();
        open.iter().map(|finding| finding.reason).collect()
    }
}

/// Returns the kind and the id of each difference, sorted.
pub fn kinds_and_ids(day: &DayReconciliation) -> Vec<(DifferenceKind, String)> {
    let mut found: Vec<_> =
        day.first_differences.iter().map(|difference| (difference.kind, difference.id.clone())).collect();
    found.sort();
    found
}

#[tokio::test]
async fn day_without_a_difference_is_clean() {
    let charged = ChargedWorld::new(&["pm_card_visa", "pm_card_visa_chargeDeclined", "pm_card_visa"]).await;
    let receipt = charged.receipt(0).await;
    charged.refunds().refund(&receipt.account, &receipt.id(), Ulid::from_parts(1, 1), Some(500), None).await.unwrap();
    // Payments of another deployment at the same gateway account are ignored.
    charged.charge_at_gateway(1, DAY, 9, Ulid::from_parts(9, 9)).await;
    let day = charged.reconcile().await;
    assert!(day.is_clean(), "{day:?}");
    let counts = ReconciledCounts { payments: 2, refunds: 1, receipts: 2, ..ReconciledCounts::default() };
    assert_eq!(day.counts, counts);
    assert_eq!(charged.world.table.get_reconciliation(date(DAY)).await.unwrap(), Some(day), "the result is stored");
    let days = charged.world.table.get_reconciliations(&Paging::all()).await.unwrap().items;
    assert_eq!(days.len(), 1);
}

#[tokio::test]
async fn every_kind_of_difference_is_found_and_nothing_else_is_reported() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 9]).await;
    let (table, mut expected) = (charged.table_id().await, Vec::new());
    // Subscription 0 has no difference.
    let twice = charged.charge_at_gateway(1, DAY, 7, table).await;
    expected.push((DifferenceKind::PaidTwice, twice));
    let next_month = charged.charge_at_gateway(2, "2026-04-10", 7, table).await;
    expected.push((DifferenceKind::PaymentWithoutReceipt, next_month));
    charged.change_receipt_amount(3, 1298).await;
    expected.push((DifferenceKind::AmountDiffers, charged.receipt(3).await.payment.to_string()));
    let failed = charged.receipt(4).await.payment.to_string();
    charged.server.fail_debit_after_success(&failed, "insufficient_funds");
    expected.push((DifferenceKind::ReceiptWithoutPayment, failed));
    let refund = charged.server.refund_in_the_dashboard(charged.receipt(5).await.payment.as_str(), 200, "succeeded");
    expected.push((DifferenceKind::RefundNotStored, refund));
    // Neither the request for this refund nor its look-up gets a response.
    charged.server.set_next_faults([None, Some(StripeFault::NotBegun), Some(StripeFault::NotBegun)]);
    let (receipt, id) = (charged.receipt(6).await, Ulid::from_parts(5, 5));
    charged.refunds().refund(&receipt.account, &receipt.id(), id, Some(100), None).await.unwrap();
    charged.server.set_next_faults([]);
    expected.push((DifferenceKind::RefundNotAtGateway, id.to_string()));
    let dispute = charged.server.set_dispute_status(charged.receipt(7).await.payment.as_str(), "needs_response");
    expected.push((DifferenceKind::DisputeNotStored, dispute));
    let receipt = charged.receipt(8).await;
    let dispute = Dispute {
        id: "dp_unknown".parse().unwrap(),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: "pm_card_visa".parse().unwrap(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Open,
        opened_at: receipt.processed_at,
        closed_at: None,
        version: 1,
    };
    charged.world.table.write_dispute(&dispute, None).await.unwrap();
    expected.push((DifferenceKind::DisputeNotAtGateway, dispute.id.to_string()));
    expected.sort();

    let day = charged.report().await;
    assert_eq!(kinds_and_ids(&day), expected, "{day:#?}");
    assert_eq!(day.differences.len(), 8, "each kind has one difference: {:?}", day.differences);
    assert_eq!(charged.finding_reasons().await, [], "a report stores no finding");

    // The refund and the dispute whose events never came are stored, so they are no difference any more.
    let day = charged.reconcile().await;
    expected.retain(|(kind, _)| !matches!(kind, DifferenceKind::RefundNotStored | DifferenceKind::DisputeNotStored));
    assert_eq!((kinds_and_ids(&day), day.counts.applied), (expected.clone(), 2), "{day:#?}");
    let mut findings = charged.finding_reasons().await;
    findings.sort();
    assert_eq!(findings, [FindingReason::PaidTwice, FindingReason::NoAttempt]);
    assert!(!day.is_clean());
    let again = charged.reconcile().await;
    assert_eq!((kinds_and_ids(&again), charged.finding_reasons().await.len()), (expected, 2), "repeated");

    // A person accepts the differences, but two of them with a wrong day or a wrong kind. These two stay differences.
    for GatewayDifference { kind, id, .. } in &again.first_differences {
        let other = if *kind == DifferenceKind::PaidTwice { DifferenceKind::AmountDiffers } else { *kind };
        let on = if *kind == DifferenceKind::RefundNotAtGateway { date(NEXT_DAY) } else { date(DAY) };
        charged.accept(on, other, id).await;
    }
    let day = charged.reconcile().await;
    let kinds: Vec<DifferenceKind> = day.differences.keys().copied().collect();
    assert_eq!(kinds, [DifferenceKind::PaidTwice, DifferenceKind::RefundNotAtGateway], "{day:#?}");
    assert_eq!((day.counts.accepted, day.is_clean()), (4, false));
    for GatewayDifference { kind, id, .. } in &day.first_differences {
        charged.accept(date(DAY), *kind, id).await;
    }
    let day = charged.reconcile().await;
    assert_eq!((day.counts.accepted, day.is_clean()), (6, true), "{day:#?}");
}

#[tokio::test]
async fn payment_after_a_decline_is_settled_and_a_resolved_finding_is_no_difference() {
    let charged = ChargedWorld::new(&["pm_card_visa_chargeDeclined", "pm_card_visa"]).await;
    let table = charged.table_id().await;
    // The customer of the declined attempt 1 has nevertheless paid.
    let paid = charged.charge_at_gateway(0, DAY, 1, table).await;
    let day = charged.report().await;
    assert_eq!(kinds_and_ids(&day), [(DifferenceKind::PaymentWithoutReceipt, paid.clone())]);
    let day = charged.reconcile().await;
    assert_eq!((day.is_clean(), day.counts.settled), (true, 1), "{day:?}");
    assert_eq!(charged.receipt(0).await.payment.as_str(), paid);
    assert_eq!(charged.reconcile().await.counts.settled, 0, "the payment is settled once");

    charged.world.clock.set(billing_time(DAY) + TimeDelta::hours(3));
    let twice = charged.charge_at_gateway(1, DAY, 7, table).await;
    assert_eq!(kinds_and_ids(&charged.reconcile().await), [(DifferenceKind::PaidTwice, twice.clone())]);
    let (engine, gateway) = (charged.world.engine(), charged.stripe.clone());
    let account = &charged.subscriptions[1].account;
    let payment = twice.parse().unwrap();
    let decision = FindingDecision::CloseAlthoughPaid;
    engine.resolve_finding(gateway.as_ref(), account, &payment, decision, "kept", date(NEXT_DAY)).await.unwrap();
    let day = charged.reconcile().await;
    assert!(day.is_clean(), "a person has decided: {day:?}");
}

#[tokio::test]
async fn payment_whose_finding_a_person_has_resolved_is_never_settled() {
    let charged = ChargedWorld::new(&["pm_card_visa_chargeDeclined"]).await;
    let (table, paid_on) = (&charged.world.table, charged.subscriptions[0].account.clone());
    // The customer of the declined attempt 1 has nevertheless paid, and a person has decided about this payment.
    let id = charged.charge_at_gateway(0, DAY, 1, charged.table_id().await).await;
    let payment = charged.stripe.payment(&id.parse().unwrap()).await.unwrap().unwrap();
    let stored = table.get_subscription(&paid_on, charged.subscriptions[0].id).await.unwrap().unwrap();
    let resolved = ResolvedFinding { at: billing_time(NEXT_DAY), reason: "refunded by bank transfer".to_owned() };
    let finding = |stored: &Subscription| Finding {
        account: stored.account.clone(),
        subscription: stored.id,
        sku: stored.sku.clone(),
        due_on: payment.due_on,
        payment: payment.id.clone(),
        amount: payment.amount,
        reason: FindingReason::NoAttempt,
        blocks: false,
        found_at: billing_time(DAY),
        resolved: Some(resolved.clone()),
        version: 1,
    };
    table.put_finding(stored.clone(), finding).await.unwrap();
    let (engine, gateway) = (charged.world.engine(), charged.stripe.clone());
    let outcome = engine.apply_payment(gateway.as_ref(), &payment, date(NEXT_DAY)).await.unwrap();
    assert!(matches!(outcome, ApplyResult::FindingStored(found) if found.resolved.is_some()));
    let after = table.get_subscription(&paid_on, stored.id).await.unwrap().unwrap();
    assert_eq!(after.due_on, stored.due_on, "the month is still owed");
    assert!(charged.reconcile().await.is_clean());
}

#[tokio::test]
async fn interrupted_comparison_continues_and_needs_no_more_memory_than_the_maximum() {
    /// The number of payments on the compared day: three list pages.
    const PAYMENTS: usize = 230;
    /// The maximum number of payments that the reconciler keeps in memory.
    const MAX_SEEN: usize = 10;
    let charged = ChargedWorld::new(&["pm_card_visa"; PAYMENTS]).await;
    charged.world.clock.set(billing_time(NEXT_DAY));
    let reconciler = charged.reconciler(charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    let mut reconciler = reconciler.with_max_seen_payments(MAX_SEEN);
    // The gateway responds to the requests for the first two list pages, but not to the request for the third.
    charged.server.set_next_faults([None, None, Some(StripeFault::NotBegun)]);
    let error = reconciler.reconcile(date(DAY), None).await.unwrap_err();
    assert!(matches!(error, ReconcileError::Gateway(_)), "{error}");
    let stored = charged.world.table.get_reconciliation(date(DAY)).await.unwrap().unwrap();
    assert_eq!((stored.step, stored.counts.payments, stored.ended_at), (ReconciliationStep::Payments, 200, None));
    assert!(stored.position.is_some());

    let before = charged.server.request_count();
    let day = reconciler.reconcile(date(DAY), None).await.unwrap();
    assert!(day.is_clean(), "{day:?}");
    let all = PAYMENTS as u64;
    let counts = ReconciledCounts { payments: all, receipts: all, ..ReconciledCounts::default() };
    assert_eq!(day.counts, counts, "no payment is counted twice");
    assert_eq!(reconciler.seen_payments().len(), MAX_SEEN);
    // The requests are: three lists (payments, refunds and disputes) of one list page each, and one request for each
    // receipt whose payment is not kept in memory.
    assert_eq!(charged.server.request_count() - before, 3 + all - MAX_SEEN as u64);

    // The payments that were seen before an interruption are stored, so another process does not request them again
    // when it compares their receipts.
    charged.server.set_next_faults([None, None, Some(StripeFault::NotBegun)]);
    let mut interrupted = charged.reconciler(charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    interrupted.reconcile(date(DAY), None).await.unwrap_err();
    let before = charged.server.request_count();
    let mut continued = charged.reconciler(charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    assert_eq!(continued.reconcile(date(DAY), None).await.unwrap().counts, counts);
    assert_eq!(charged.server.request_count() - before, 3, "one list page of each list, and no receipt");

    // A day whose comparison has ended is compared again from the start. This reconciler keeps all payments in memory.
    let before = charged.server.request_count();
    let mut reconciler = charged.reconciler(charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    assert_eq!(reconciler.reconcile(date(DAY), None).await.unwrap().counts, counts);
    assert_eq!(charged.server.request_count() - before, 3 + 2, "three list pages of payments, and no receipt");

    // At its deadline, a comparison stops without a result.
    let deadline = Some(billing_time(NEXT_DAY));
    let stopped = reconciler.reconcile(date(DAY), deadline).await.unwrap();
    assert!(stopped.ended_at.is_none() && !stopped.is_clean());
}

#[tokio::test]
async fn gateway_without_lists_is_reported_and_is_never_a_success() {
    let charged = ChargedWorld::new(&[]).await;
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, Router::new(), ServerLimits::default()));
    let gateway = Arc::new(HttpGateway::new(&url, Duration::from_secs(5)));
    charged.world.clock.set(billing_time(NEXT_DAY));
    let mut reconciler = charged.reconciler(gateway, CorrectionMode::SettleOrStoreFinding).await;
    let day = reconciler.reconcile(date(DAY), None).await.unwrap();
    let lists = [GatewayList::Payments, GatewayList::Refunds, GatewayList::Disputes];
    assert_eq!(day.not_compared, lists.into());
    assert!(day.ended_at.is_some() && day.differences.is_empty() && !day.is_clean());
}

#[tokio::test]
async fn sandbox_in_the_process_and_over_http_lists_the_same_days() {
    let world = World::new().await;
    let all: Vec<Subscription> = (20..270).map(|n| numbered_subscription(n, 12, "2026-03-01")).collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    world.run_payments("2026-03-12").await;
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, sandbox::gateway_router(world.sandbox.clone()), ServerLimits::default()));
    world.clock.set(billing_time("2026-03-13"));
    let over_http = HttpGateway::new(&url, Duration::from_secs(5));
    for gateway in [world.sandbox.clone() as Arc<dyn gateways::Refunds>, Arc::new(over_http)] {
        let mut reconciler = reconciler(&world, gateway, CorrectionMode::SettleOrStoreFinding).await;
        let day = reconciler.reconcile(date("2026-03-12"), None).await.unwrap();
        assert!(day.is_clean(), "{day:?}");
        assert_eq!((day.counts.payments, day.counts.receipts), (250, 250));
    }
}

#[tokio::test]
async fn day_that_has_not_ended_or_whose_receipts_have_expired_is_refused() {
    let charged = ChargedWorld::new(&["pm_card_visa"]).await;
    let mut reconciler = charged.reconciler(charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    for (now, on, is_allowed) in [
        ("2026-03-11T00:59:59Z", DAY, false),
        ("2026-03-11T01:00:00Z", DAY, true),
        ("2026-03-11T01:00:00Z", NEXT_DAY, false),
        ("2026-09-15T23:00:00Z", DAY, true),
        ("2026-09-16T00:00:00Z", DAY, false),
    ] {
        charged.world.clock.set(now.parse().unwrap());
        let compared = reconciler.reconcile(date(on), None).await;
        assert_eq!(compared.is_ok(), is_allowed, "{on} at {now}: {compared:?}");
    }
}
