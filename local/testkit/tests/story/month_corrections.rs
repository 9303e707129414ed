//! Tests of payments that the gateway rejects because of their amount: no customer is blamed, and the merchant corrects
//! the price, waives the month, or records that it was paid elsewhere.

use std::sync::Arc;

use audit::Invariant;
use billing::{ChangeRefusal, Money, Period, Subscription, SubscriptionStatus, WaivedReason};
use chrono::{DateTime, NaiveTime};
use clock::Clock as _;
use emulator::{EngineConnection, STRIPE_KEY, StripeServer};
use store::Paging;

use crate::stripe::connect;
use crate::table_audit::violations;
use crate::world::{World, billing_time, date, nonzero_counts, numbered_subscription};

/// The lead of the reminders in these tests.
fn lead() -> billing::LeadDays {
    billing::LeadDays::default()
}

/// Waives `month` of `subscription` for `reason` on March 16.
fn waive(subscription: &Subscription, month: &str, reason: WaivedReason) -> Result<billing::Settlement, ChangeRefusal> {
    let (month, now) = (month.parse::<Period>().unwrap(), billing_time("2026-03-16"));
    subscription.waive_month(month, reason, 0, lead(), date("2026-03-16"), now)
}

#[tokio::test]
async fn rejected_amount_blames_no_customer_until_the_merchant_corrects_or_waives_the_month() {
    let world = World::new().await;
    let wrong = Money::new(10, "USD".parse().unwrap());
    let all: Vec<Subscription> =
        (0..3).map(|n| Subscription { price: wrong, ..numbered_subscription(n, 10, "2026-03-01") }).collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    let server = StripeServer::new(world.clock.clone());
    let stripe = Arc::new(connect(&server, STRIPE_KEY).await);
    let payments = world.separate_payment_batch(EngineConnection::default(), stripe).await;
    for day in ["2026-03-10", "2026-03-11", "2026-03-12", "2026-03-13", "2026-03-14", "2026-03-15"] {
        let report = world.run_payment_batch(&payments, day, billing_time(day)).await;
        assert_eq!(nonzero_counts(&report), [("rejected", 3)], "{day}");
        assert!(!report.is_done(), "{day}: the merchant must solve it");
    }
    for subscription in &all {
        let stored = world.load(subscription).await;
        assert_eq!(
            (stored.status, stored.failed_attempts, stored.first_declined_on),
            (SubscriptionStatus::Active, 0, None)
        );
    }
    assert_eq!(server.intents().len(), 0, "nothing was charged");

    let [corrected, waived, elsewhere] = all.as_slice() else { panic!("three subscriptions") };
    let stored = world.load(corrected).await;
    assert!(matches!(stored.correct_price(0, date("2026-03-16")), Err(ChangeRefusal::Amount(_))));
    world.change_subscription(corrected, |stored| stored.correct_price(1_299, date("2026-03-16")).unwrap()).await;
    for (subscription, reason) in [(waived, WaivedReason::Merchant), (elsewhere, WaivedReason::PaidElsewhere)] {
        let stored = world.load(subscription).await;
        let other = waive(&stored, "2026-04", reason).unwrap_err();
        assert!(matches!(other, ChangeRefusal::OtherMonth { .. }), "{other}");
        world.table.write_settlement(stored, |stored| waive(stored, "2026-03", reason)).await.unwrap();
        let again = waive(&world.load(subscription).await, "2026-03", reason).unwrap_err();
        assert!(matches!(again, ChangeRefusal::OtherMonth { .. }), "a repeated request waives no other month: {again}");
    }
    let report = world.run_payment_batch(&payments, "2026-03-16", billing_time("2026-03-16")).await;
    assert_eq!(nonzero_counts(&report), [("paid", 1)]);
    let now = world.clock.now();
    for (subscription, expected) in
        all.iter().zip([None, Some(WaivedReason::Merchant), Some(WaivedReason::PaidElsewhere)])
    {
        let records = world.table.get_payment_records(&subscription.account, subscription.id, now).await.unwrap();
        assert_eq!(records.waived.iter().map(|waived| waived.reason).next(), expected);
        let stored = world.load(subscription).await;
        assert_eq!(
            (stored.status, stored.due_on, stored.rejections),
            (SubscriptionStatus::Active, date("2026-04-10"), 0)
        );
    }
    let receipts = world.table.get_receipts_by_account(&corrected.account, &Paging::all(), now).await.unwrap().items;
    assert_eq!(receipts.iter().map(|receipt| receipt.amount.minor()).collect::<Vec<_>>(), [1_299]);
}

/// The customer pays February and March in cash in January. The audit accepts the due date of April, but not that of a
/// subscription without these records.
#[tokio::test]
async fn months_that_a_person_waives_in_advance_are_no_violation() {
    let world = World::with_one_shard().await;
    let all: Vec<Subscription> = (0..2).map(|n| numbered_subscription(n, 5, "2026-01-02")).collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    world.run_payments("2026-01-05").await;
    for month in ["2026-02", "2026-03"] {
        let paid = |stored: &Subscription| {
            let (month, reason) = (month.parse().unwrap(), WaivedReason::PaidElsewhere);
            stored.waive_month(month, reason, 0, lead(), date("2026-01-20"), billing_time("2026-01-20"))
        };
        let stored = world.load(&all[0]).await;
        world.table.write_settlement(stored, paid).await.expect(month);
    }
    assert_eq!(world.load(&all[0]).await.due_on, date("2026-04-05"));
    assert_eq!(violations(&world, "2026-01-20").await, []);
    let expiry = |item: &store::Item| {
        let is_of_march = item["SK"].as_s().unwrap().starts_with("WAV#2026-03-05");
        is_of_march.then(|| DateTime::from_timestamp(item["TTL"].as_n().unwrap().parse().unwrap(), 0).unwrap())
    };
    let expires = world.table.scan().await.unwrap().iter().find_map(expiry).unwrap();
    assert_eq!(
        expires,
        billing_time("2026-03-05").date_naive().and_time(NaiveTime::MIN).and_utc() + world.table.receipt_retention()
    );
    let other = world.load(&all[1]).await;
    let later = Subscription { due_on: date("2026-04-05"), next_payment_on: Some(date("2026-04-05")), ..other.clone() };
    world.table.update_subscription(&other, &later).await.unwrap();
    let broken: Vec<Invariant> = violations(&world, "2026-01-20").await.into_iter().map(|(found, _)| found).collect();
    assert!(broken.contains(&Invariant::DatesNear), "{broken:?}");
}

#[test]
fn month_is_corrected_only_if_it_is_owed_and_no_attempt_is_open() {
    let today = date("2026-03-09");
    let due_later = numbered_subscription(0, 10, "2026-03-01");
    assert!(matches!(due_later.correct_price(999, today), Err(ChangeRefusal::NothingOwed { .. })));
    let owed_on = date("2026-03-10");
    let open = crate::lifecycle::with_open_attempt(&due_later);
    assert!(matches!(open.correct_price(999, owed_on), Err(ChangeRefusal::Paying { .. })));
    assert!(matches!(waive(&open, "2026-03", WaivedReason::Merchant), Err(ChangeRefusal::Paying { .. })));
    let with_finding = Subscription { open_findings: 1, ..due_later.clone() };
    assert!(matches!(waive(&with_finding, "2026-03", WaivedReason::Merchant), Err(ChangeRefusal::OpenFinding { .. })));
    let before_paid_month = with_finding.waive_month(
        "2026-03".parse().unwrap(),
        WaivedReason::Merchant,
        1,
        lead(),
        owed_on,
        billing_time("2026-03-10"),
    );
    assert_eq!(
        before_paid_month.unwrap().subscription.due_on,
        date("2026-04-10"),
        "the finding is about a later month"
    );
    for status in [SubscriptionStatus::Paused, SubscriptionStatus::Cancelled] {
        let stopped = Subscription { status, ..due_later.clone() };
        assert!(matches!(stopped.correct_price(999, owed_on), Err(ChangeRefusal::Status { .. })), "{status}");
        assert!(
            matches!(waive(&stopped, "2026-03", WaivedReason::Merchant), Err(ChangeRefusal::Status { .. })),
            "{status}"
        );
    }
    let ending = Subscription { cancel_from: Some("2026-03".parse().unwrap()), ..due_later.clone() };
    assert!(matches!(ending.correct_price(999, owed_on), Err(ChangeRefusal::Ends { .. })));
    assert!(matches!(waive(&ending, "2026-03", WaivedReason::Merchant), Err(ChangeRefusal::Ends { .. })));
    // Another month was paid today, so the corrected month waits until tomorrow.
    let paid_today = Subscription {
        last_payment_at: Some(billing_time("2026-03-10")),
        next_payment_on: Some(date("2026-03-11")),
        ..due_later.clone()
    };
    let corrected = paid_today.correct_price(999, owed_on).unwrap();
    assert_eq!((corrected.price.minor(), corrected.next_payment_on), (999, Some(date("2026-03-11"))));

    // An unpaid subscription becomes active, and the months that fell due while it was unpaid are waived, too.
    let unpaid = Subscription {
        status: SubscriptionStatus::Unpaid,
        unpaid_since: Some(date("2026-03-18")),
        next_payment_on: None,
        ..due_later.clone()
    };
    let now = billing_time("2026-05-20");
    let settled = unpaid
        .waive_month("2026-03".parse().unwrap(), WaivedReason::PaidElsewhere, 0, lead(), date("2026-05-20"), now)
        .unwrap();
    assert_eq!(
        (settled.subscription.status, settled.subscription.due_on),
        (SubscriptionStatus::Active, date("2026-06-10"))
    );
    let reasons: Vec<_> = settled.waived.iter().map(|waived| (waived.due_on.to_string(), waived.reason)).collect();
    let unpaid = |day: &str| (day.to_owned(), WaivedReason::Unpaid);
    let paid_elsewhere = ("2026-03-10".to_owned(), WaivedReason::PaidElsewhere);
    assert_eq!(reasons, [paid_elsewhere, unpaid("2026-04-10"), unpaid("2026-05-10")]);
}
