//! Tests of the comparison of states: the outcome of a refund or a dispute at the stand-in for Stripe whose event never
//! came is reported, and stored.

use std::sync::Arc;

use async_trait::async_trait;
use billing::{
    DayReconciliation, Dispute, DisputeStatus, GatewayAccount, GatewayToken, Money, Payment, Receipt, Refund,
    RefundStatus,
};
use chrono::{DateTime, Utc};
use clock::Clock as _;
use gateways::{
    ChargeRequest, ChargeResponse, GatewayDispute, GatewayError, GatewayRefund, ListPage, PaymentGateway,
    RefundRequest, RefundResponse, Refunds, Stripe, TimeRange,
};
use reconciling::CorrectionMode;
use ulid::Ulid;

use crate::day_reconciliation::{ChargedWorld, DAY, reconciler};
use crate::world::{billing_time, date};

/// A day long after [`DAY`], on which nothing happened.
const LATER_DAY: &str = "2026-05-20";

/// Returns the kind and the id of each difference, sorted.
fn kinds_and_ids(day: &DayReconciliation) -> Vec<(String, String)> {
    let mut found: Vec<_> =
        day.first_differences.iter().map(|difference| (difference.kind.to_string(), difference.id.clone())).collect();
    found.sort();
    found
}

/// Compares [`LATER_DAY`] with `gateway`.
async fn compare_later_day(
    charged: &ChargedWorld,
    gateway: Arc<dyn Refunds>,
    corrections: CorrectionMode,
) -> DayReconciliation {
    charged.world.clock.set(billing_time("2026-05-21"));
    reconciler(&charged.world, gateway, corrections).await.reconcile(date(LATER_DAY), None).await.unwrap()
}

/// Returns the stored refunds of the payment of the subscription `n`.
async fn refunds(charged: &ChargedWorld, n: usize) -> Vec<Refund> {
    let receipt = charged.receipt(n).await;
    charged.world.table.get_refunds_by_receipt(&receipt.account, &receipt.id()).await.unwrap()
}

/// Returns the statuses of the stored disputes of the account of the subscription `n`.
async fn dispute_statuses(charged: &ChargedWorld, n: usize) -> Vec<DisputeStatus> {
    let account = &charged.subscriptions[n].account;
    let disputes = charged.world.table.get_disputes_by_account(account).await.unwrap();
    disputes.iter().map(|dispute| dispute.status).collect()
}

/// Makes a refund of 2.00 EUR of the payment of the subscription `n` in the dashboard, which stays pending, and stores
/// it. Returns the gateway's id of the refund.
async fn make_pending_refund(charged: &ChargedWorld, n: usize) -> String {
    let Receipt { account, payment, .. } = &charged.receipt(n).await;
    let refund = charged.server.refund_in_the_dashboard(payment.as_str(), 200, "pending");
    let receipt = charged.receipt(n).await.id();
    charged.refunds().update_refunds_from_gateway(account, &receipt, payment).await.unwrap();
    refund
}

/// Opens a dispute of the payment of the subscription `n` with the gateway's status `reported`, and stores it with the
/// status `stored`. Returns its id.
async fn open_stored_dispute(
    charged: &ChargedWorld,
    n: usize,
    reported: &'static str,
    stored: DisputeStatus,
) -> String {
    let receipt = charged.receipt(n).await;
    let id = charged.server.set_dispute_status(receipt.payment.as_str(), reported);
    let dispute = Dispute {
        id: id.parse().unwrap(),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: charged.subscriptions[n].payment_method.payment_method.clone(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status: stored,
        opened_at: charged.world.clock.now(),
        closed_at: None,
        version: 1,
    };
    charged.world.table.write_dispute(&dispute, None).await.unwrap();
    id
}

#[tokio::test]
async fn outcome_whose_event_never_came_is_a_difference_and_is_stored() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 6]).await;
    let mut expected = Vec::new();
    // Subscription 0: a refund in the dashboard is not stored.
    let made = charged.server.refund_in_the_dashboard(charged.receipt(0).await.payment.as_str(), 200, "succeeded");
    expected.push(("refund_not_stored", made));
    // Subscription 1: a refund that is stored as succeeded has failed.
    let receipt = charged.receipt(1).await;
    let id = Ulid::from_parts(1, 1);
    let refund = charged.refunds().refund(&receipt.account, &receipt.id(), id, Some(500), None).await.unwrap();
    let returned = refund.gateway_refund.unwrap().to_string();
    charged.server.set_refund_status(&returned, "failed");
    expected.push(("refund_status_differs", returned));
    // Subscription 2: a refund that is stored as pending has succeeded.
    let settled = make_pending_refund(&charged, 2).await;
    charged.server.set_refund_status(&settled, "succeeded");
    expected.push(("refund_status_differs", settled));
    // Subscription 3: a lost dispute is not stored.
    let lost = charged.server.set_dispute_status(charged.receipt(3).await.payment.as_str(), "lost");
    expected.push(("dispute_not_stored", lost));
    // Subscription 4: a dispute that is stored as open is lost.
    let lost = open_stored_dispute(&charged, 4, "lost", DisputeStatus::Open).await;
    expected.push(("dispute_status_differs", lost));
    // Subscription 5: a refund that is stored as failed has succeeded. A person must decide about it.
    let contradicted = make_pending_refund(&charged, 5).await;
    let failed = |refund: &Refund| Some(Refund { status: RefundStatus::Failed, ..refund.clone() });
    charged.world.table.settle_refund(refunds(&charged, 5).await.remove(0), failed).await.unwrap();
    charged.server.set_refund_status(&contradicted, "succeeded");
    expected.push(("refund_status_differs", contradicted.clone()));
    let mut expected: Vec<_> = expected.into_iter().map(|(kind, id)| (kind.to_owned(), id)).collect();
    expected.sort();

    let day = charged.report().await;
    assert_eq!(kinds_and_ids(&day), expected, "{day:#?}");
    assert_eq!(charged.receipt(0).await.refunded.minor(), 0, "a report changes nothing");
    assert_eq!(dispute_statuses(&charged, 4).await, [DisputeStatus::Open], "a report changes nothing");

    let day = charged.reconcile().await;
    assert_eq!(kinds_and_ids(&day), [("refund_status_differs".to_owned(), contradicted)], "{day:#?}");
    assert!(day.first_differences[0].what.contains("too much may be refunded"), "{day:#?}");
    assert_eq!(day.counts.applied, 5);
    let mut statuses = Vec::new();
    for n in 0..3 {
        let refunded = charged.receipt(n).await.refunded.minor();
        statuses.extend(refunds(&charged, n).await.iter().map(|refund| (n, refund.status, refunded)));
    }
    let expected = [(0, RefundStatus::Succeeded, 200), (1, RefundStatus::Failed, 0), (2, RefundStatus::Succeeded, 200)];
    assert_eq!(statuses, expected);
    for n in [3, 4] {
        let (receipt, subscription) = (charged.receipt(n).await, charged.world.load(&charged.subscriptions[n]).await);
        assert_eq!(dispute_statuses(&charged, n).await, [DisputeStatus::Lost], "{n}");
        assert_eq!(receipt.reversal.map(|reversal| reversal.amount), Some(receipt.amount), "{n}");
        assert!(subscription.disputed_at.is_some(), "the payment method of subscription {n} is not charged any more");
    }
    let again = charged.reconcile().await;
    assert_eq!((again.counts.applied, again.difference_count()), (0, 1), "{again:#?}");
}

#[tokio::test]
async fn earlier_refunds_and_disputes_without_an_outcome_are_compared_each_day() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 4]).await;
    let refund = make_pending_refund(&charged, 0).await;
    let dispute = open_stored_dispute(&charged, 1, "needs_response", DisputeStatus::Open).await;
    // An inquiry can become a dispute, so it has no outcome yet.
    let inquiry = open_stored_dispute(&charged, 2, "warning_needs_response", DisputeStatus::Inquiry).await;
    open_stored_dispute(&charged, 3, "needs_response", DisputeStatus::Open).await;
    let day = compare_later_day(&charged, charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    assert!(day.is_clean() && day.counts.applied == 0, "nothing has changed: {day:#?}");

    charged.server.set_refund_status(&refund, "failed");
    charged.server.set_dispute_status(charged.receipt(1).await.payment.as_str(), "lost");
    charged.server.set_dispute_status(charged.receipt(2).await.payment.as_str(), "needs_response");
    let mut expected = [
        ("refund_status_differs".to_owned(), refund),
        ("dispute_status_differs".to_owned(), dispute),
        ("dispute_status_differs".to_owned(), inquiry),
    ];
    expected.sort();
    let day = compare_later_day(&charged, charged.stripe.clone(), CorrectionMode::ReportOnly).await;
    assert_eq!(kinds_and_ids(&day), expected, "{day:#?}");
    assert_eq!(dispute_statuses(&charged, 1).await, [DisputeStatus::Open], "a report changes nothing");
    let day = compare_later_day(&charged, charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    assert_eq!((day.is_clean(), day.counts.applied), (true, 3), "{day:#?}");
    assert_eq!(refunds(&charged, 0).await[0].status, RefundStatus::Failed);
    assert_eq!(dispute_statuses(&charged, 1).await, [DisputeStatus::Lost]);
    assert_eq!(dispute_statuses(&charged, 2).await, [DisputeStatus::Open]);
    assert!(charged.receipt(1).await.reversal.is_some());

    // Only the list pages and the records without an outcome cause requests. The dispute of subscription 3 needs two
    // requests: the dispute and its payment. The inquiry became a dispute after the compared day.
    let before = charged.server.request_count();
    compare_later_day(&charged, charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    assert_eq!(charged.server.request_count() - before, 3 + 2);
}

#[tokio::test]
async fn refund_or_dispute_of_a_later_day_is_not_compared() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 2]).await;
    charged.world.clock.set(billing_time("2026-05-21"));
    let refund = make_pending_refund(&charged, 0).await;
    open_stored_dispute(&charged, 1, "lost", DisputeStatus::Open).await;
    charged.server.set_refund_status(&refund, "succeeded");
    let day = compare_later_day(&charged, charged.stripe.clone(), CorrectionMode::SettleOrStoreFinding).await;
    assert!(day.is_clean() && day.counts.applied == 0, "the comparison of their day compares them: {day:#?}");
}

#[tokio::test]
async fn accepted_difference_is_not_applied() {
    let charged = ChargedWorld::new(&["pm_card_visa"]).await;
    let lost = charged.server.set_dispute_status(charged.receipt(0).await.payment.as_str(), "lost");
    let day = charged.report().await;
    charged.accept(date(DAY), day.first_differences[0].kind, &lost).await;
    let day = charged.reconcile().await;
    assert_eq!((day.is_clean(), day.counts.accepted, day.counts.applied), (true, 1, 0), "{day:#?}");
    assert_eq!(dispute_statuses(&charged, 0).await, []);
}

/// A gateway that lists disputes, but returns neither single disputes nor the list of refunds, like a merchant's own
/// gateway.
#[derive(Debug)]
struct WithoutDetails(Arc<Stripe>);

#[async_trait]
impl PaymentGateway for WithoutDetails {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.0.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        self.0.charge(request).await
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.0.payments_of_customer(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.0.payment(id).await
    }
}

#[async_trait]
impl Refunds for WithoutDetails {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        self.0.refund(request).await
    }

    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        self.0.refunds_of_payment(payment).await
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        self.0.payments_in_range(range, after).await
    }

    async fn disputes_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        self.0.disputes_in_range(range, after).await
    }
}

#[tokio::test]
async fn states_are_compared_with_the_lists_of_a_gateway_without_details() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 3]).await;
    let gateway = Arc::new(WithoutDetails(charged.stripe.clone()));
    let refund = make_pending_refund(&charged, 0).await;
    charged.server.set_refund_status(&refund, "succeeded");
    open_stored_dispute(&charged, 1, "lost", DisputeStatus::Open).await;
    let unknown = charged.server.set_dispute_status(charged.receipt(2).await.payment.as_str(), "lost");
    charged.world.clock.set(billing_time("2026-03-11"));
    let mut of_day = reconciler(&charged.world, gateway.clone(), CorrectionMode::SettleOrStoreFinding).await;
    let day = of_day.reconcile(date(DAY), None).await.unwrap();
    assert_eq!(kinds_and_ids(&day), [("dispute_not_stored".to_owned(), unknown)], "{day:#?}");
    assert!(day.first_differences[0].what.ends_with("does not return the disputed payment method"), "{day:#?}");
    assert_eq!(day.counts.applied, 2);
    assert_eq!(refunds(&charged, 0).await[0].status, RefundStatus::Succeeded);
    assert_eq!(dispute_statuses(&charged, 1).await, [DisputeStatus::Lost]);

    let earlier = make_pending_refund(&charged, 2).await;
    charged.server.set_refund_status(&earlier, "failed");
    open_stored_dispute(&charged, 0, "needs_response", DisputeStatus::Inquiry).await;
    let day = compare_later_day(&charged, gateway, CorrectionMode::SettleOrStoreFinding).await;
    assert_eq!((day.difference_count(), day.counts.applied), (0, 2), "{day:#?}");
    assert_eq!(dispute_statuses(&charged, 0).await, [DisputeStatus::Open]);
    let refunded: Vec<Money> = refunds(&charged, 2).await.iter().map(|refund| refund.amount).collect();
    assert_eq!((refunded.len(), refunds(&charged, 2).await[0].status), (1, RefundStatus::Failed));
}
