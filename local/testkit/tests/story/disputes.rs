//! Tests of disputes: in every state of the subscription, after a won dispute, each period since the first due date is
//! either paid, or waived, or owed.

use billing::{
    AfterWonDispute, Attempt, CatchUp, ClaimToken, Dispute, DisputeStatus, GatewayToken, Money, Period, Policy,
    ReceiptId, Settlement, Subscription, SubscriptionStatus,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use ulid::Ulid;

use crate::world::{billing_time, date, new_subscription};

/// Returns the date of an instant in UTC, the billing time zone of these tests.
fn utc_date(at: DateTime<Utc>) -> NaiveDate {
    at.date_naive()
}

/// Returns a dispute of the first payment of `subscription`.
fn dispute(subscription: &Subscription, status: DisputeStatus, opened_on: &str) -> Dispute {
    Dispute {
        id: "dp_1".parse().unwrap(),
        account: subscription.account.clone(),
        receipt: ReceiptId {
            due_on: subscription.first_due_on,
            subscription: subscription.id,
            sku: subscription.sku.clone(),
        },
        payment: "pi_1".parse::<GatewayToken>().unwrap(),
        payment_method: subscription.payment_method.payment_method.clone(),
        amount: subscription.price,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: billing_time(opened_on),
        closed_at: None,
        version: 1,
    }
}

/// Returns an open payment attempt for the current due date of `subscription`.
fn open_attempt(subscription: &Subscription) -> Attempt {
    Attempt {
        table: None,
        no: 1,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: billing_time("2026-03-10"),
        leased_until: billing_time("2026-03-10") + TimeDelta::minutes(20),
        claim_token: ClaimToken(Ulid::from_parts(1, 1)),
    }
}

/// Returns a subscription with the next due date March 10, 2026, and a dispute that was opened on `opened_on`.
fn disputed_subscription(opened_on: &str) -> Subscription {
    let subscription = new_subscription(10, "2026-03-01");
    subscription.with_dispute_mark(&[dispute(&subscription, DisputeStatus::Open, opened_on)])
}

/// Settles `disputed` on the day `today` after its dispute was won.
fn settle_won_dispute(disputed: &Subscription, policy: &Policy, today: &str) -> Settlement {
    let won = [dispute(disputed, DisputeStatus::Won, "2026-03-05")];
    disputed.apply_disputes(&won, policy, utc_date, billing_time(today))
}

#[test]
fn won_dispute_waives_only_the_periods_with_due_dates_before_today() {
    let policy = Policy::default();
    for (today, due_on, payable_on, waived) in [
        ("2026-03-09", "2026-03-10", "2026-03-10", &[][..]),
        ("2026-03-10", "2026-03-10", "2026-03-10", &[]),
        ("2026-03-11", "2026-04-10", "2026-04-10", &["2026-03-10"]),
        ("2026-04-10", "2026-04-10", "2026-04-10", &["2026-03-10"]),
        ("2026-06-01", "2026-06-10", "2026-06-10", &["2026-03-10", "2026-04-10", "2026-05-10"]),
    ] {
        let settlement = settle_won_dispute(&disputed_subscription("2026-03-05"), &policy, today);
        let next = &settlement.subscription;
        assert_eq!((next.due_on, next.next_payment_on), (date(due_on), Some(date(payable_on))), "{today}");
        let waived_dates: Vec<String> = settlement.waived.iter().map(|waived| waived.due_on.to_string()).collect();
        assert_eq!(waived_dates, waived, "{today}");
        assert_eq!(next.disputed_at, None);
        let second = settle_won_dispute(next, &policy, today).subscription;
        assert_eq!(second, *next, "settling the dispute twice changes nothing");
    }
}

#[test]
fn months_are_waived_only_after_the_last_overlapping_dispute_is_won() {
    let gold = new_subscription(10, "2026-03-01");
    let first = dispute(&gold, DisputeStatus::Open, "2026-03-05");
    let second = Dispute { id: "dp_2".parse().unwrap(), ..dispute(&gold, DisputeStatus::Open, "2026-05-01") };
    let won = |dispute: &Dispute, on: &str| Dispute {
        status: DisputeStatus::Won,
        closed_at: Some(billing_time(on)),
        ..dispute.clone()
    };
    let settle = |stored: &Subscription, disputes: &[Dispute], today: &str| {
        stored.apply_disputes(disputes, &Policy::default(), utc_date, billing_time(today))
    };
    let stored = gold.with_dispute_mark(&[first.clone(), second.clone()]);
    let first = won(&first, "2026-05-20");
    let one_open = settle(&stored, &[first.clone(), second.clone()], "2026-05-20");
    assert_eq!((one_open.subscription.disputed_at, one_open.waived.len()), (Some(second.opened_at), 0));
    let both_won = settle(&one_open.subscription, &[first, won(&second, "2026-06-20")], "2026-06-20");
    let waived: Vec<String> = both_won.waived.iter().map(|waived| waived.due_on.to_string()).collect();
    assert_eq!(waived, ["2026-03-10", "2026-04-10", "2026-05-10", "2026-06-10"]);
}

#[test]
fn won_dispute_leaves_each_period_paid_waived_or_owed() {
    let (mut cases, mut cases_with_waived) = (0, 0);
    for opened_on in ["2026-03-05", "2026-03-10", "2026-03-20", "2026-05-01"] {
        for today in date("2026-03-05").iter_days().take(120).map(|day| day.to_string()) {
            for status in [
                SubscriptionStatus::Active,
                SubscriptionStatus::PastDue,
                SubscriptionStatus::Unpaid,
                SubscriptionStatus::Paused,
                SubscriptionStatus::Cancelled,
            ] {
                for (is_open, cancel_from) in
                    [(false, None), (true, None), (false, Some("2026-05")), (true, Some("2026-05"))]
                {
                    for (after_won_dispute, catch_up) in [
                        (AfterWonDispute::Waive, CatchUp::Each),
                        (AfterWonDispute::Charge, CatchUp::Each),
                        (AfterWonDispute::Charge, CatchUp::Latest),
                    ] {
                        let before = disputed_subscription(opened_on);
                        let before = Subscription {
                            status,
                            next_reminder_on: before.next_reminder_on.filter(|_| status == SubscriptionStatus::Active),
                            first_declined_on: (status != SubscriptionStatus::Active).then_some(before.due_on),
                            attempt: is_open.then(|| open_attempt(&before)),
                            cancel_from: cancel_from.map(|from: &str| from.parse::<Period>().unwrap()),
                            ..before
                        };
                        let policy = Policy { after_won_dispute, catch_up, ..Policy::default() };
                        let settlement = settle_won_dispute(&before, &policy, &today);
                        let case = format!(
                            "opened {opened_on}, {today}, {status}, open {is_open}, ends {cancel_from:?}, {policy:?}"
                        );
                        assert_settlement_is_valid(&before, &settlement, date(&today), &case);
                        cases += 1;
                        cases_with_waived += usize::from(!settlement.waived.is_empty());
                    }
                }
            }
        }
    }
    assert!(cases_with_waived > 500 && cases > 20_000, "only {cases_with_waived} of {cases} waived a period");
}

/// Asserts the properties that every settlement of a won dispute must have.
fn assert_settlement_is_valid(before: &Subscription, settlement: &Settlement, today: NaiveDate, case: &str) {
    let (next, waived) = (&settlement.subscription, &settlement.waived);
    assert_eq!(next.disputed_at, None, "{case}");
    assert_eq!(next.attempt, before.attempt, "{case}");
    // The waived periods are exactly the periods between the old and the new due date.
    let skipped: Vec<Period> =
        std::iter::successors(Some(Period::from_day(before.due_on)), |period| Some(period.next()))
            .take_while(|period| *period < Period::from_day(next.due_on))
            .collect();
    assert_eq!(waived.iter().map(|waived| Period::from_day(waived.due_on)).collect::<Vec<_>>(), skipped, "{case}");
    assert!(waived.iter().all(|waived| waived.due_on < today && waived.reason.to_string() == "disputed"), "{case}");
    assert!(before.cancel_from.is_none_or(|end| skipped.iter().all(|period| *period < end)), "{case}");
    if before.attempt.is_some() || !before.status.is_chargeable() {
        assert_eq!((next.due_on, next.status), (before.due_on, before.status), "{case}");
    }
    match next.status.is_chargeable() {
        true => assert!(next.next_payment_on.is_some_and(|on| on >= next.due_on.min(today)), "{case}"),
        false => assert_eq!(next.next_payment_on, before.next_payment_on, "{case}"),
    }
    assert!(next.status == SubscriptionStatus::Active || next.next_reminder_on.is_none(), "{case}");
}

#[test]
fn reversed_amount_is_the_total_of_lost_and_returned_disputes() {
    let gold = new_subscription(10, "2026-03-01");
    let receipt = |amount: Money| billing::Receipt {
        account: gold.account.clone(),
        subscription: gold.id,
        sku: gold.sku.clone(),
        product_name: gold.product_name.clone(),
        email: None,
        due_on: gold.due_on,
        amount,
        payment: "pi_1".parse().unwrap(),
        customer: None,
        card: None,
        processed_at: billing_time("2026-03-10"),
        refunded: Money::new(0, amount.currency()),
        refunded_at: None,
        reversal: None,
    };
    let paid = receipt(gold.price);
    let (euro, half) = (gold.price.currency(), Money::new(gold.price.minor() / 2, gold.price.currency()));
    let dispute_of = |status: DisputeStatus, amount: Money| Dispute { amount, ..dispute(&gold, status, "2026-03-20") };
    let reversed = |disputes: &[Dispute]| paid.reversal_from(disputes).map(|reversal| reversal.amount);
    for status in [DisputeStatus::Inquiry, DisputeStatus::Open, DisputeStatus::Won] {
        assert_eq!(reversed(&[dispute_of(status, gold.price)]), None, "{status}");
    }
    assert_eq!(reversed(&[dispute_of(DisputeStatus::Lost, gold.price)]), Some(gold.price));
    assert_eq!(reversed(&[dispute_of(DisputeStatus::Returned, gold.price)]), Some(gold.price));
    assert_eq!(reversed(&[dispute_of(DisputeStatus::Lost, half)]), Some(half), "only half of the amount was disputed");
    let two_disputes = [dispute_of(DisputeStatus::Lost, gold.price), dispute_of(DisputeStatus::Returned, gold.price)];
    assert_eq!(reversed(&two_disputes), Some(gold.price), "never more than the paid amount");
    let other = "JPY".parse().unwrap();
    assert_ne!(euro, other);
    assert_eq!(reversed(&[dispute_of(DisputeStatus::Lost, Money::new(1, other))]), Some(gold.price));
    let other_payment = Dispute { payment: "pi_2".parse().unwrap(), ..dispute_of(DisputeStatus::Lost, gold.price) };
    assert_eq!(reversed(&[other_payment]), None);
}
