//! Why a subscription was charged on a day, or was not: as the whole system leaves its records.

use audit::{Reason, explain};
use billing::{Changes, LeadDays, OnResume, Settlement, Status, Subscription};
use chrono::TimeDelta;
use chrono_tz::Tz;
use emulator::Fault;
use settling::Known;
use sweep::BatchRequest;

use crate::world::{World, card, date, morning, new_subscription};

/// What is said on `today` of that day, and whether somebody must look.
async fn said(world: &World, subscription: &Subscription, on: &str, today: &str) -> (Reason, bool, String) {
    let now = morning(today) + TimeDelta::hours(6);
    let of = (&subscription.account, subscription.id);
    let explained = explain(&world.table, of, Some(date(on)), Tz::UTC, now).await.unwrap().unwrap();
    (explained.reason(), explained.needs_attention(), explained.to_string())
}

async fn with_card(name: &str) -> (World, Subscription) {
    let world = World::new().await;
    let subscription = Subscription { payment_method: card(name), ..new_subscription(10, "2026-03-01") };
    world.has(&subscription).await;
    (world, subscription)
}

#[tokio::test]
async fn explain_tells_a_charge_a_decline_a_rejection_and_an_open_debit() {
    for (name, verdict, needs_attention, words) in [
        ("pm_card_visa", Reason::Charged, false, "charged on 2026-03-10: 12.99 EUR, due on 2026-03-10, payment "),
        (
            "pm_card_chargeDeclinedInsufficientFunds",
            Reason::Declined,
            false,
            "was declined (insufficient_funds); it is tried again on 2026-03-11",
        ),
        (
            "pm_card_visa_chargeDeclinedLostCard",
            Reason::Declined,
            false,
            "was declined for good (lost_card); the subscription is unpaid since 2026-03-10",
        ),
        (
            "pm_nobody_knows",
            Reason::Rejected,
            true,
            "was rejected by the gateway (resource_missing); it is tried again on 2026-03-11",
        ),
        ("pm_usBankAccount_success", Reason::Open, true, "has been begun at 2026-03-10 06:00 UTC"),
    ] {
        let (world, subscription) = with_card(name).await;
        world.charge("2026-03-10").await;
        let said = said(&world, &subscription, "2026-03-10", "2026-03-10").await;
        assert!((said.0, said.1) == (verdict, needs_attention) && said.2.contains(words), "{name}: {said:?}");
    }
}

#[tokio::test]
async fn explain_calls_a_payment_in_doubt_open_until_the_gateway_has_answered() {
    let (world, subscription) = with_card("pm_card_visa").await;
    world.next_charge(Fault::LostAfter);
    world.charge("2026-03-10").await;
    assert_eq!(said(&world, &subscription, "2026-03-10", "2026-03-10").await.0, Reason::Open);
    world.charge("2026-03-11").await;
    let (verdict, needs_attention, words) = said(&world, &subscription, "2026-03-10", "2026-03-11").await;
    assert_eq!((verdict, needs_attention), (Reason::LeftUnsettled, false), "it is paid by now: {words}");
    assert!(
        words.ends_with(
            "with 1 payment left unsettled (whether this one is among them is not recorded); it was paid on 2026-03-11"
        ),
        "{words}"
    );
}

#[tokio::test]
async fn explain_tells_what_was_resolved_by_hand() {
    let (world, subscription) = with_card("pm_card_visa").await;
    world.next_charge(Fault::LostBefore);
    world.charge("2026-03-10").await;
    world.clock.set(morning("2026-03-10") + TimeDelta::minutes(30));
    let of = (&subscription.account, subscription.id);
    world.by_hand(true).resolve(of, &Known::NotCharged, date("2026-03-10")).await.unwrap();
    let said = said(&world, &subscription, "2026-03-10", "2026-03-10").await;
    assert!(said.0 == Reason::Rejected && said.2.contains("(resolved_by_hand)"), "{said:?}");
}

#[tokio::test]
async fn explain_says_of_each_day_of_an_outage_that_no_run_came_and_when_it_was_paid() {
    let (world, subscription) = with_card("pm_card_visa").await;
    let missing = "the payment due on 2026-03-10 was owed, and no run of shard 2 is recorded";
    assert_eq!(
        said(&world, &subscription, "2026-03-10", "2026-03-11").await,
        (
            Reason::NotWalked,
            true,
            format!("no charge is recorded on 2026-03-10: {missing}; it is tried at the next run")
        )
    );
    world.charge("2026-03-12").await;
    for on in ["2026-03-10", "2026-03-11"] {
        assert_eq!(
            said(&world, &subscription, on, "2026-03-12").await,
            (Reason::NotWalked, false, format!("no charge is recorded on {on}: {missing}; it was paid on 2026-03-12"))
        );
    }
    assert_eq!(said(&world, &subscription, "2026-03-12", "2026-03-12").await.0, Reason::Charged);
}

#[tokio::test]
async fn explain_needs_no_attention_for_a_day_without_a_run_once_it_was_retried() {
    let (world, subscription) = with_card("pm_card_chargeDeclinedInsufficientFunds").await;
    world.charge("2026-03-11").await;
    let (verdict, needs_attention, words) = said(&world, &subscription, "2026-03-10", "2026-03-11").await;
    assert_eq!((verdict, needs_attention), (Reason::NotWalked, false), "{words}");
    // The next try was due on the 12th, by a schedule that is not recorded.
    world.charge("2026-03-14").await;
    let (verdict, needs_attention, words) = said(&world, &subscription, "2026-03-12", "2026-03-14").await;
    assert_eq!((verdict, needs_attention), (Reason::BetweenTries, false), "{words}");
    let told =
        "was declined (insufficient_funds) on 2026-03-11, and not tried on this day (no run of shard 2 is recorded";
    assert!(words.contains(told) && words.ends_with("it is tried again on 2026-03-16"), "{words}");
}

#[tokio::test]
async fn explain_tells_waived_months_with_their_reason() {
    let (world, subscription) = with_card("pm_card_visa_chargeDeclinedLostCard").await;
    world.charge("2026-03-10").await;
    let changes = Changes { payment_method: Some(card("pm_card_visa")), ..Changes::default() };
    world.customer(&subscription, |s| s.change(&changes, LeadDays::default(), date("2026-05-20")).unwrap()).await;
    world.charge("2026-05-20").await;
    let unpaid = said(&world, &subscription, "2026-04-10", "2026-05-20").await;
    let words = "the payment due on 2026-04-10 was waived on 2026-05-20, because the subscription was unpaid";
    assert_eq!(unpaid, (Reason::Waived, false, format!("not charged on 2026-04-10: {words}")));

    let world = World::with(&[("DUEDAY_CATCH_UP", "latest")]).await;
    world.has(&subscription).await;
    world.charge("2026-05-20").await;
    let missed = said(&world, &subscription, "2026-03-10", "2026-05-20").await;
    let words = "the payment due on 2026-03-10 was waived on 2026-05-20, because it was missed";
    assert_eq!(missed, (Reason::Waived, false, format!("not charged on 2026-03-10: {words}")));
}

#[tokio::test]
async fn explain_names_runs_that_held_back_stopped_or_ran_out_of_time() {
    let world = World::with(&[("DUEDAY_CONCURRENCY", "1")]).await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.table.set_charging(false).await.unwrap();
    world.charge("2026-03-10").await;
    let off = said(&world, &subscription, "2026-03-10", "2026-03-10").await;
    let reason = "shard 2 was not walked to its end and a run of it stopped or held back: charging is switched off";
    assert!((off.0, off.1) == (Reason::HeldBack, true) && off.2.contains(reason), "{off:?}");

    world.table.set_charging(true).await.unwrap();
    world.clock.set(morning("2026-03-11"));
    let its_shard = BatchRequest { shards: Some(vec![2]), ..BatchRequest::on(date("2026-03-11")) };
    world.payments.run(&its_shard, morning("2026-03-11")).await.unwrap();
    let late = said(&world, &subscription, "2026-03-11", "2026-03-11").await;
    assert!(late.0 == Reason::NotWalked && late.2.contains("no run of shard 2 came to its end;"), "{late:?}");

    // Another's payment makes the run stop before this one.
    world.has(&Subscription { shard: 2, ..new_subscription(9, "2026-03-01") }).await;
    world.next_charge(Fault::Refused("401"));
    world.charge("2026-03-12").await;
    let stopped = said(&world, &subscription, "2026-03-12", "2026-03-12").await;
    let reason = "shard 2 was not walked to its end and a run of it stopped or held back: the gateway refuses us: 401";
    assert!((stopped.0, stopped.1) == (Reason::HeldBack, true) && stopped.2.contains(reason), "{stopped:?}");
}

#[tokio::test]
async fn explain_names_the_ceiling_of_a_day_that_was_not_begun() {
    let world = World::with(&[("DUEDAY_MAX_CHARGES", "0")]).await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.clock.set(morning("2026-03-10"));
    let request = BatchRequest::on(date("2026-03-10"));
    world.payments.run(&request, morning("2026-03-10") + TimeDelta::hours(1)).await.unwrap_err();
    let said = said(&world, &subscription, "2026-03-10", "2026-03-11").await;
    assert_eq!((said.0, said.1), (Reason::HeldBack, true), "{}", said.2);
    assert!(
        said.2.contains("the day is not begun: 1 payments are due or charged, and at most 0 may be charged"),
        "{}",
        said.2
    );
}

#[tokio::test]
async fn explain_finds_no_reason_for_what_became_payable_after_the_last_run() {
    let (world, subscription) = with_card("pm_card_visa").await;
    world.charge("2026-03-10").await;
    let late = new_subscription(11, "2026-03-01");
    world.charge("2026-03-11").await;
    world.has(&late).await;
    let (verdict, needs_attention, words) = said(&world, &late, "2026-03-11", "2026-03-11").await;
    assert_eq!((verdict, needs_attention), (Reason::Unexplained, true), "{words}");
    assert!(words.contains("without it, which nothing explains, unless it became payable only after the last run"));
    assert_eq!(said(&world, &subscription, "2026-03-11", "2026-03-11").await.0, Reason::Paid);
}

#[tokio::test]
async fn get_records_reads_back_what_was_written_until_it_expires() {
    let (world, subscription) = with_card("pm_card_chargeDeclinedInsufficientFunds").await;
    world.has(&new_subscription(11, "2026-03-01")).await;
    for day in 10..=17 {
        world.charge(&format!("2026-03-{day}")).await;
    }
    let read =
        async |at: &str| world.table.get_records(&subscription.account, subscription.id, morning(at)).await.unwrap();
    let records = read("2026-03-18").await;
    let days: Vec<String> = records.attempts.iter().map(|a| a.processed_at.date_naive().to_string()).collect();
    assert_eq!(days, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    assert!(records.attempts.iter().all(|a| a.code == "insufficient_funds" && a.amount == subscription.price));
    assert!(records.receipts.is_empty(), "another subscription's receipts are its own");
    assert_eq!(read("2026-09-16").await.attempts.len(), 4, "the first has expired");
}

#[tokio::test]
async fn explain_answers_nothing_for_an_unknown_subscription() {
    let (world, subscription) = with_card("pm_card_visa").await;
    let of = (&"somebody".parse().unwrap(), subscription.id);
    assert!(explain(&world.table, of, None, Tz::UTC, morning("2026-03-10")).await.unwrap().is_none());
}

/// A quarter of days, of which a seed decides: whether anybody comes, with which card, and whether it is paused.
async fn quarter(seed: u64) {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    let mut state = seed;
    let mut one_in = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(n)
    };
    let cards = ["pm_card_visa", "pm_card_chargeDeclinedInsufficientFunds"].map(card);
    let mut truth = Vec::new();
    for day in date("2026-03-01").iter_days().take(100) {
        let text = day.to_string();
        let before = world.stored(&subscription).await;
        let mut settlement = Settlement::from(before.clone());
        if one_in(6) {
            let other = if before.payment_method == cards[0] { &cards[1] } else { &cards[0] };
            let changes = Changes { payment_method: Some(other.clone()), ..Changes::default() };
            settlement = before.change(&changes, LeadDays::default(), day).unwrap().into();
        } else if one_in(12) {
            let turn = match before.status {
                Status::Paused => before.resume(OnResume::Charge, LeadDays::default(), day, morning(&text)),
                _ => before.pause(day).map(Settlement::from),
            };
            settlement = turn.unwrap_or(settlement);
        }
        let after = settlement.subscription.clone();
        world.table.settle(before, |_| Ok::<_, ()>(settlement.clone())).await.unwrap();
        let is_due = after.status.is_chargeable() && after.next_payment_on.is_some_and(|on| on <= day);
        let expected = match one_in(3) {
            true if is_due => Reason::NotWalked,
            true => Reason::NotDue,
            false => match world.charge(&text).await.counts {
                counts if counts.paid == 1 => Reason::Charged,
                counts if counts.declined == 1 => Reason::Declined,
                _ => Reason::NotDue,
            },
        };
        let (verdict, _, words) = said(&world, &subscription, &text, &text).await;
        let nothing_was_due =
            [Reason::NotBegun, Reason::Paid, Reason::BetweenTries, Reason::Stopped, Reason::Waived, Reason::Unrecorded];
        let is_right = verdict == expected || (expected == Reason::NotDue && nothing_was_due.contains(&verdict));
        assert!(is_right, "seed {seed}: {expected:?} on the day itself: {words}");
        let was_paused = after.status == Status::Paused;
        truth.push((text, if was_paused && expected == Reason::NotDue { Reason::Stopped } else { expected }));
    }
    for (day, expected) in truth {
        let (verdict, _, words) = said(&world, &subscription, &day, "2026-06-09").await;
        let is_right = match expected {
            // Of what was owed and not tried, a later pause, card or waiver may be all that is left to tell.
            Reason::NotWalked => !matches!(verdict, Reason::Charged | Reason::Declined | Reason::Unexplained),
            // Months later nothing tells that it was paused on that day.
            Reason::Stopped => true,
            Reason::NotDue => {
                !matches!(verdict, Reason::Charged | Reason::Declined | Reason::NotWalked | Reason::Unexplained)
            }
            expected => verdict == expected,
        };
        assert!(is_right, "seed {seed}: {expected:?} of {day}, months later: {words}");
    }
}

#[tokio::test]
async fn explain_tells_what_happened_on_each_day_of_a_random_quarter() {
    for seed in 0..10 {
        quarter(seed).await;
    }
}
