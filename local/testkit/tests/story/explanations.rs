//! Tests of the explanation why a subscription was or was not charged on a day, with records that real runs wrote.

use audit::{ReasonCode, explain_charge_on_day};
use billing::{
    ActionKind, LeadDays, NewAction, OnResume, Settlement, Subscription, SubscriptionChanges, SubscriptionStatus,
};
use charging::StatedOutcome;
use chrono::TimeDelta;
use emulator::Fault;
use sweep::BatchRequest;
use testkit::sample_action;

use crate::world::{World, billing_time, card, date, new_subscription};

/// Returns the explanation on `today` for the day `on`: the reason, whether an operator must act, and the text.
async fn explain_day(world: &World, subscription: &Subscription, on: &str, today: &str) -> (ReasonCode, bool, String) {
    let now = billing_time(today) + TimeDelta::hours(6);
    let Subscription { account, id, .. } = subscription;
    let explanation = explain_charge_on_day(&world.table, account, *id, Some(date(on)), now).await.unwrap().unwrap();
    (explanation.reason(), explanation.needs_attention(), explanation.to_string())
}

/// Creates a world with a subscription that is due on March 10 and has the test payment method `name`.
async fn world_with_card(name: &str) -> (World, Subscription) {
    let world = World::new().await;
    let subscription = Subscription { payment_method: card(name), ..new_subscription(10, "2026-03-01") };
    world.store(&subscription).await;
    (world, subscription)
}

#[tokio::test]
async fn explanation_of_a_day_long_ago_reads_no_later_days() {
    let (world, subscription) = world_with_card("pm_card_visa").await;
    let requests = || world.connection.request_counts().values().sum::<u64>();
    let before = requests();
    let (reason, ..) = explain_day(&world, &subscription, "0385-12-26", "2026-03-10").await;
    assert_eq!(reason, ReasonCode::NotBegun);
    assert!(requests() - before < 10, "{} requests", requests() - before);
}

#[tokio::test]
async fn explanation_of_a_charge_a_decline_a_rejection_and_a_processing_debit() {
    for (name, reason, needs_attention, expected) in [
        ("pm_card_visa", ReasonCode::Charged, false, "charged on 2026-03-10: 12.99 EUR, due on 2026-03-10, payment "),
        (
            "pm_card_chargeDeclinedInsufficientFunds",
            ReasonCode::Declined,
            false,
            "was declined (insufficient_funds); it will be tried again on 2026-03-11",
        ),
        (
            "pm_card_visa_chargeDeclinedLostCard",
            ReasonCode::Declined,
            false,
            "was declined permanently (lost_card); the subscription has been unpaid since 2026-03-10",
        ),
        (
            "pm_unknown",
            ReasonCode::Rejected,
            true,
            "was rejected by the gateway (resource_missing); it will be tried again on 2026-03-11",
        ),
        ("pm_usBankAccount_success", ReasonCode::Open, false, "began at 2026-03-10 06:00 UTC"),
    ] {
        let (world, subscription) = world_with_card(name).await;
        world.run_payments("2026-03-10").await;
        let found = explain_day(&world, &subscription, "2026-03-10", "2026-03-10").await;
        assert!((found.0, found.1) == (reason, needs_attention) && found.2.contains(expected), "{name}: {found:?}");
    }
}

#[tokio::test]
async fn payment_in_doubt_is_explained_as_open_until_its_outcome_is_known() {
    let (world, subscription) = world_with_card("pm_card_visa").await;
    world.inject_charge_fault(Fault::LostAfter);
    world.run_payments("2026-03-10").await;
    assert_eq!(explain_day(&world, &subscription, "2026-03-10", "2026-03-10").await.0, ReasonCode::Open);
    world.run_payments("2026-03-11").await;
    let (reason, needs_attention, text) = explain_day(&world, &subscription, "2026-03-10", "2026-03-11").await;
    assert_eq!((reason, needs_attention), (ReasonCode::LeftUnsettled, false), "paid in the meantime: {text}");
    assert!(
        text.ends_with(
            "and left 1 payment unsettled (the records do not show whether this payment is among them); it was paid on 2026-03-11"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn explanation_of_an_attempt_that_an_operator_resolved() {
    let (world, subscription) = world_with_card("pm_card_visa").await;
    world.inject_charge_fault(Fault::LostBefore);
    world.run_payments("2026-03-10").await;
    world.clock.set(billing_time("2026-03-10") + TimeDelta::minutes(30));
    world.resolve_attempt(&subscription, &StatedOutcome::NotCharged).await;
    let found = explain_day(&world, &subscription, "2026-03-10", "2026-03-10").await;
    assert!(found.0 == ReasonCode::Rejected && found.2.contains("(resolved_by_hand)"), "{found:?}");
}

#[tokio::test]
async fn explanation_of_an_outage_says_that_no_run_is_recorded_and_when_the_month_was_paid() {
    let (world, subscription) = world_with_card("pm_card_visa").await;
    let missing = "the payment due on 2026-03-10 was owed, and no run of shard 2 is recorded";
    assert_eq!(
        explain_day(&world, &subscription, "2026-03-10", "2026-03-11").await,
        (
            ReasonCode::NotWalked,
            true,
            format!("no charge is recorded on 2026-03-10: {missing}; it will be tried at the next run")
        )
    );
    world.run_payments("2026-03-12").await;
    for on in ["2026-03-10", "2026-03-11"] {
        assert_eq!(
            explain_day(&world, &subscription, on, "2026-03-12").await,
            (
                ReasonCode::NotWalked,
                false,
                format!("no charge is recorded on {on}: {missing}; it was paid on 2026-03-12")
            )
        );
    }
    assert_eq!(explain_day(&world, &subscription, "2026-03-12", "2026-03-12").await.0, ReasonCode::Charged);
}

#[tokio::test]
async fn day_without_a_run_needs_no_attention_after_a_later_attempt() {
    let (world, subscription) = world_with_card("pm_card_chargeDeclinedInsufficientFunds").await;
    world.run_payments("2026-03-11").await;
    let (reason, needs_attention, text) = explain_day(&world, &subscription, "2026-03-10", "2026-03-11").await;
    assert_eq!((reason, needs_attention), (ReasonCode::NotWalked, false), "{text}");
    // The retry was planned for March 12, but the retry schedule is not recorded.
    world.run_payments("2026-03-14").await;
    let (reason, needs_attention, text) = explain_day(&world, &subscription, "2026-03-12", "2026-03-14").await;
    assert_eq!((reason, needs_attention), (ReasonCode::BetweenTries, false), "{text}");
    let expected = "was declined (insufficient_funds) on 2026-03-11, and there was no attempt on this day (no run of shard 2 is recorded";
    assert!(text.contains(expected) && text.ends_with("it will be tried again on 2026-03-16"), "{text}");
}

#[tokio::test]
async fn explanation_of_a_waived_month_contains_its_reason() {
    let (world, subscription) = world_with_card("pm_card_visa_chargeDeclinedLostCard").await;
    world.run_payments("2026-03-10").await;
    let changes = SubscriptionChanges { payment_method: Some(card("pm_card_visa")), ..SubscriptionChanges::default() };
    world
        .change_subscription(&subscription, |s| {
            s.apply_changes(&changes, LeadDays::default(), date("2026-05-20")).unwrap()
        })
        .await;
    world.run_payments("2026-05-20").await;
    let unpaid = explain_day(&world, &subscription, "2026-04-10", "2026-05-20").await;
    let text = "the payment due on 2026-04-10 was waived on 2026-05-20, because the subscription was unpaid";
    assert_eq!(unpaid, (ReasonCode::Waived, false, format!("not charged on 2026-04-10: {text}")));

    let world = World::with_settings(&[("DUEDAY_CATCH_UP", "latest")]).await;
    world.store(&subscription).await;
    world.run_payments("2026-05-20").await;
    let missed = explain_day(&world, &subscription, "2026-03-10", "2026-05-20").await;
    let text = "the payment due on 2026-03-10 was waived on 2026-05-20, because an outage missed it";
    assert_eq!(missed, (ReasonCode::Waived, false, format!("not charged on 2026-03-10: {text}")));
}

#[tokio::test]
async fn explanation_says_that_charging_was_off_or_that_the_run_ran_out_of_time_or_stopped() {
    let world = World::with_settings(&[("DUEDAY_CONCURRENCY", "1")]).await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.table.set_charging(false, None).await.unwrap();
    world.run_payments("2026-03-10").await;
    let off = explain_day(&world, &subscription, "2026-03-10", "2026-03-10").await;
    let reason = "shard 2 was not processed to its end, and a run of the shard stopped early or deferred rows: charging is switched off";
    assert!((off.0, off.1) == (ReasonCode::HeldBack, true) && off.2.contains(reason), "{off:?}");

    world.table.set_charging(true, None).await.unwrap();
    world.clock.set(billing_time("2026-03-11"));
    let shard_request = BatchRequest { shards: Some(vec![2]), ..BatchRequest::for_date(date("2026-03-11")) };
    world.payments.run(&shard_request, billing_time("2026-03-11")).await.unwrap();
    let late = explain_day(&world, &subscription, "2026-03-11", "2026-03-11").await;
    assert!(late.0 == ReasonCode::NotWalked && late.2.contains("no run reached the end of shard 2;"), "{late:?}");

    // The charge of another subscription stops the run before it processes this subscription.
    world.store(&Subscription { shard: 2, ..new_subscription(9, "2026-03-01") }).await;
    world.inject_charge_fault(Fault::Refused("401"));
    world.run_payments("2026-03-12").await;
    let stopped = explain_day(&world, &subscription, "2026-03-12", "2026-03-12").await;
    let reason = "shard 2 was not processed to its end, and a run of the shard stopped early or deferred rows: the gateway refuses our requests: 401";
    assert!((stopped.0, stopped.1) == (ReasonCode::HeldBack, true) && stopped.2.contains(reason), "{stopped:?}");
}

#[tokio::test]
async fn explanation_names_the_daily_limit_that_rejected_the_run() {
    let world = World::with_payment_limits(&[("max-charges", "0")]).await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.clock.set(billing_time("2026-03-10"));
    let request = BatchRequest::for_date(date("2026-03-10"));
    world.payments.run(&request, billing_time("2026-03-10") + TimeDelta::hours(1)).await.unwrap_err();
    let found = explain_day(&world, &subscription, "2026-03-10", "2026-03-11").await;
    assert_eq!((found.0, found.1), (ReasonCode::HeldBack, true), "{}", found.2);
    assert!(
        found.2.contains("the run was not started: 1 payments are due or charged; at most 0 may be charged"),
        "{}",
        found.2
    );
}

#[tokio::test]
async fn subscription_that_became_due_after_the_last_run_is_unexplained() {
    let (world, subscription) = world_with_card("pm_card_visa").await;
    world.run_payments("2026-03-10").await;
    let late = new_subscription(11, "2026-03-01");
    world.run_payments("2026-03-11").await;
    world.store(&late).await;
    let (reason, needs_attention, text) = explain_day(&world, &late, "2026-03-11", "2026-03-11").await;
    assert_eq!((reason, needs_attention), (ReasonCode::Unexplained, true), "{text}");
    assert!(text.contains("without a charge of this payment, and the records do not explain why; it may have become payable after the last run"));
    assert_eq!(explain_day(&world, &subscription, "2026-03-11", "2026-03-11").await.0, ReasonCode::Paid);
}

#[tokio::test]
async fn get_payment_records_returns_stored_records_until_they_expire() {
    let (world, subscription) = world_with_card("pm_card_chargeDeclinedInsufficientFunds").await;
    world.store(&new_subscription(11, "2026-03-01")).await;
    for day in 10..=17 {
        world.run_payments(&format!("2026-03-{day}")).await;
    }
    let read = async |at: &str| {
        world.table.get_payment_records(&subscription.account, subscription.id, billing_time(at)).await.unwrap()
    };
    let records = read("2026-03-18").await;
    let days: Vec<String> = records.attempts.iter().map(|a| a.processed_at.date_naive().to_string()).collect();
    assert_eq!(days, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    assert!(records.attempts.iter().all(|a| a.code == "insufficient_funds" && a.amount == subscription.price));
    assert!(records.receipts.is_empty(), "receipts of other subscriptions are not included");
    assert_eq!(read("2026-09-16").await.attempts.len(), 4, "the first record has expired");
}

#[tokio::test]
async fn explain_returns_none_for_an_unknown_subscription() {
    let (world, subscription) = world_with_card("pm_card_visa").await;
    let account = "unknown".parse().unwrap();
    let explanation =
        explain_charge_on_day(&world.table, &account, subscription.id, None, billing_time("2026-03-10")).await;
    assert!(explanation.unwrap().is_none());
}

/// Simulates 100 days. The random `seed` decides for each day whether the batch runs, and whether the customer changes
/// the card, pauses or resumes. Checks the explanation of each day, on the same day and months later.
async fn check_random_quarter(seed: u64) {
    let world = World::with_one_shard().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    let mut state = seed;
    let mut one_in = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(n)
    };
    let cards = ["pm_card_visa", "pm_card_chargeDeclinedInsufficientFunds"].map(card);
    let mut expected_reasons = Vec::new();
    for day in date("2026-03-01").iter_days().take(100) {
        let day_text = day.to_string();
        let before = world.load(&subscription).await;
        let mut settlement = Settlement::from(before.clone());
        if one_in(6) {
            let other = if before.payment_method == cards[0] { &cards[1] } else { &cards[0] };
            let changes = SubscriptionChanges { payment_method: Some(other.clone()), ..SubscriptionChanges::default() };
            settlement = before.apply_changes(&changes, LeadDays::default(), day).unwrap().into();
        } else if one_in(12) {
            let change = match before.status {
                SubscriptionStatus::Paused => {
                    before.resume(OnResume::Charge, LeadDays::default(), day, billing_time(&day_text))
                }
                _ => before.pause(day).map(Settlement::from),
            };
            settlement = change.unwrap_or(settlement);
        }
        let after = settlement.subscription.clone();
        let action = NewAction { at: billing_time(&day_text), ..sample_action(ActionKind::ChangeSubscription) };
        let action = (settlement != Settlement::from(before.clone())).then_some(action);
        let change = |_: &Subscription| Ok::<_, ()>(settlement.clone());
        world.table.write_settlement_with_action(before, action.as_ref(), change).await.unwrap();
        let is_due = after.status.is_chargeable() && after.next_payment_on.is_some_and(|on| on <= day);
        let expected = match one_in(3) {
            true if is_due => ReasonCode::NotWalked,
            true => ReasonCode::NotDue,
            false => match world.run_payments(&day_text).await.counts {
                counts if counts.paid == 1 => ReasonCode::Charged,
                counts if counts.declined == 1 => ReasonCode::Declined,
                _ => ReasonCode::NotDue,
            },
        };
        let (reason, _, text) = explain_day(&world, &subscription, &day_text, &day_text).await;
        let reasons_without_due_payment = [
            ReasonCode::NotBegun,
            ReasonCode::Paid,
            ReasonCode::BetweenTries,
            ReasonCode::Stopped,
            ReasonCode::Waived,
            ReasonCode::Unrecorded,
        ];
        let is_correct =
            reason == expected || (expected == ReasonCode::NotDue && reasons_without_due_payment.contains(&reason));
        assert!(is_correct, "seed {seed}: {expected:?} on the same day: {text}");
        expected_reasons.push((day_text, if reason == ReasonCode::Stopped { reason } else { expected }));
    }
    for (day, expected) in expected_reasons {
        let (reason, _, text) = explain_day(&world, &subscription, &day, "2026-06-09").await;
        let is_correct = match expected {
            // The month was owed, but no attempt was recorded. The records may show only a later pause, card change or
            // waived month.
            ReasonCode::NotWalked => {
                !matches!(reason, ReasonCode::Charged | ReasonCode::Declined | ReasonCode::Unexplained)
            }
            // The month may have been waived when the subscription was resumed, or got another card.
            ReasonCode::Stopped => matches!(reason, ReasonCode::Stopped | ReasonCode::Waived),
            ReasonCode::NotDue => !matches!(
                reason,
                ReasonCode::Charged | ReasonCode::Declined | ReasonCode::NotWalked | ReasonCode::Unexplained
            ),
            expected => reason == expected,
        };
        assert!(is_correct, "seed {seed}: {expected:?} on {day}, months later: {text}");
    }
}

#[tokio::test]
async fn explanations_of_all_days_of_random_quarters_are_correct() {
    for seed in 0..5 {
        check_random_quarter(seed).await;
    }
}
