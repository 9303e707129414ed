//! Tests of the comparison of a day with a gateway whose lists contain objects of other programs, unreadable objects, or
//! list pages without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use billing::DifferenceKind;
use chrono::TimeDelta;
use emulator::{MisleadingView, ServerLimits, StripeFault, serve_http};
use gateways::{HttpGateway, TimeRangeQuery};
use reconciling::{CorrectionMode, ReconcileError};
use serde_json::{Value, json};

use crate::day_reconciliation::{ChargedWorld, DAY, NEXT_DAY, kinds_and_ids};
use crate::world::{billing_time, date};

#[tokio::test]
async fn objects_of_other_programs_and_repeated_objects_are_no_difference() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 3]).await;
    charged.server.set_foreign_objects(2);
    charged.server.set_permanent_fault(Some(StripeFault::ListedTwice));
    let day = charged.reconcile().await;
    assert_eq!((day.is_clean(), day.counts.payments, day.counts.receipts), (true, 3, 3), "{day:#?}");
}

#[tokio::test]
async fn unreadable_object_of_the_table_is_reported_and_the_rest_is_compared() {
    let charged = ChargedWorld::new(&["pm_card_visa"; 6]).await;
    charged.server.set_foreign_objects(2);
    let payment = charged.receipt(0).await.payment.to_string();
    charged.server.set_currency_of_intent(&payment, "xyz");
    let less_received = charged.receipt(1).await.payment.to_string();
    charged.server.set_misleading_view(&less_received, Some(MisleadingView::ReceivedLess { amount: 1 }));
    let canceled = charged.receipt(2).await.payment.to_string();
    let until = billing_time("2026-04-10");
    charged.server.set_misleading_view(&canceled, Some(MisleadingView::CanceledWithPaidCharge { until }));
    let refund = |payment: &str| charged.server.refund_in_the_dashboard(payment, 100, "succeeded");
    let unreadable_refund = refund(charged.receipt(3).await.payment.as_str());
    charged.server.set_currency_of_refund(&unreadable_refund, "xyz");
    let refund_with_nulls = refund(charged.receipt(4).await.payment.as_str());
    charged.server.hide_fields_of_refund(&refund_with_nulls);
    let mut unreadable =
        [payment, less_received, canceled, unreadable_refund].map(|id| (DifferenceKind::Unreadable, id));
    unreadable.sort();
    let day = charged.report().await;
    let not_stored = (DifferenceKind::RefundNotStored, refund_with_nulls);
    assert_eq!(kinds_and_ids(&day), [std::slice::from_ref(&not_stored), &unreadable].concat(), "{day:#?}");
    assert_eq!((day.counts.payments, day.counts.receipts), (3, 6), "the other payments are compared");
    assert!(day.ended_at.is_some());
    let day = charged.reconcile().await;
    assert_eq!(
        (kinds_and_ids(&day), day.counts.applied),
        (unreadable.to_vec(), 1),
        "only the readable refund is stored"
    );

    for (kind, id) in &unreadable {
        charged.accept(date(DAY), *kind, id).await;
    }
    assert!(charged.reconcile().await.is_clean(), "a person has decided");
}

#[tokio::test]
async fn payment_without_a_receipt_whose_refund_cannot_be_read_is_reported() {
    let charged = ChargedWorld::new(&["pm_card_visa_chargeDeclined", "pm_card_visa"]).await;
    let paid = charged.charge_at_gateway(0, DAY, 1, charged.table_id().await).await;
    let refund = charged.server.refund_in_the_dashboard(&paid, 100, "succeeded");
    charged.server.set_currency_of_refund(&refund, "xyz");
    let day = charged.reconcile().await;
    let mut expected = vec![(DifferenceKind::Unreadable, paid), (DifferenceKind::Unreadable, refund)];
    expected.sort();
    assert_eq!(kinds_and_ids(&day), expected, "{day:#?}");
}

#[tokio::test]
async fn list_of_a_gateway_that_repeats_its_list_pages_is_an_error() {
    // Each case contains the positions after which the next list pages begin, one after the other and then again.
    for positions in [vec!["a"], vec!["a", "b", "c"]] {
        let charged = ChargedWorld::new(&[]).await;
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        let list = move |Query(_): Query<TimeRangeQuery>| {
            let number = counter.fetch_add(1, Ordering::Relaxed);
            let next = positions[number % positions.len()];
            async move { Json::<Value>(json!({"items": [], "next": next})) }
        };
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve_http(
            listener,
            Router::new().route("/v1/lists/payments", get(list)),
            ServerLimits::default(),
        ));
        let gateway = Arc::new(HttpGateway::new(&url, Duration::from_secs(5)));
        charged.world.clock.set(billing_time(NEXT_DAY) + TimeDelta::hours(1));
        let mut reconciler = charged.reconciler(gateway, CorrectionMode::SettleOrStoreFinding).await;
        let error = reconciler.reconcile(date(DAY), None).await.unwrap_err();
        assert!(matches!(error, ReconcileError::NoProgress { .. }), "{error}");
        assert!(requests.load(Ordering::Relaxed) <= 4, "{requests:?}");
    }
}
