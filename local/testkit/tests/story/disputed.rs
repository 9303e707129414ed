//! Won disputes: each period since the first due date stays exactly one of paid, waived and owed, whatever the subscription was
//! when the dispute came.

use billing::{
    AfterWonDispute, Attempt, CatchUp, Dispute, DisputeStatus, GatewayToken, Money, Period, Policy, ReceiptId,
    Settlement, Status, Subscription, Token,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use ulid::Ulid;

use crate::world::{date, morning, new_subscription};

fn day_of(at: DateTime<Utc>) -> NaiveDate {
    at.date_naive()
}

fn dispute(of: &Subscription, status: DisputeStatus, opened_on: &str) -> Dispute {
    Dispute {
        id: "dp_1".parse().unwrap(),
        account: of.account.clone(),
        receipt: ReceiptId { due_on: of.first_due_on, subscription: of.id, sku: of.sku.clone() },
        payment: "pi_1".parse::<GatewayToken>().unwrap(),
        payment_method: of.payment_method.payment_method.clone(),
        amount: of.price,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: morning(opened_on),
        closed_at: None,
        version: 1,
    }
}

fn attempt(of: &Subscription) -> Attempt {
    Attempt {
        table: None,
        no: 1,
        due_on: of.due_on,
        amount: of.price,
        payment_method: of.payment_method.clone(),
        claimed_at: morning("2026-03-10"),
        leased_until: morning("2026-03-10") + TimeDelta::minutes(20),
        held_by: Token(Ulid::from_parts(1, 1)),
    }
}

/// Due on 10 March 2026 next, and disputed since `opened_on`.
fn disputed(opened_on: &str) -> Subscription {
    let subscription = new_subscription(10, "2026-03-01");
    subscription.disputed_by(&[dispute(&subscription, DisputeStatus::Open, opened_on)])
}

fn won(disputed: &Subscription, policy: &Policy, today: &str) -> Settlement {
    let over = [dispute(disputed, DisputeStatus::Won, "2026-03-05")];
    disputed.settle_disputes(&over, policy, day_of, morning(today))
}

#[test]
fn won_dispute_waives_what_fell_due_before_that_day_and_nothing_else() {
    let policy = Policy::default();
    for (today, due_on, payable_on, waived) in [
        ("2026-03-09", "2026-03-10", "2026-03-10", &[][..]),
        ("2026-03-10", "2026-03-10", "2026-03-10", &[]),
        ("2026-03-11", "2026-04-10", "2026-04-10", &["2026-03-10"]),
        ("2026-04-10", "2026-04-10", "2026-04-10", &["2026-03-10"]),
        ("2026-06-01", "2026-06-10", "2026-06-10", &["2026-03-10", "2026-04-10", "2026-05-10"]),
    ] {
        let settlement = won(&disputed("2026-03-05"), &policy, today);
        let next = &settlement.subscription;
        assert_eq!((next.due_on, next.next_payment_on), (date(due_on), Some(date(payable_on))), "{today}");
        let found: Vec<String> = settlement.waived.iter().map(|waived| waived.due_on.to_string()).collect();
        assert_eq!(found, waived, "{today}");
        assert_eq!(next.disputed_at, None);
        assert_eq!(won(next, &policy, today).subscription, *next, "twice is once");
    }
}

#[test]
fn disputes_that_follow_each_other_count_as_one() {
    let gold = new_subscription(10, "2026-03-01");
    let first = dispute(&gold, DisputeStatus::Open, "2026-03-05");
    let second = Dispute { id: "dp_2".parse().unwrap(), ..dispute(&gold, DisputeStatus::Open, "2026-05-01") };
    let won = |dispute: &Dispute, on: &str| Dispute {
        status: DisputeStatus::Won,
        closed_at: Some(morning(on)),
        ..dispute.clone()
    };
    let settle = |stored: &Subscription, disputes: &[Dispute], today: &str| {
        stored.settle_disputes(disputes, &Policy::default(), day_of, morning(today))
    };
    let stored = gold.disputed_by(&[first.clone(), second.clone()]);
    let first = won(&first, "2026-05-20");
    let still = settle(&stored, &[first.clone(), second.clone()], "2026-05-20");
    assert_eq!((still.subscription.disputed_at, still.waived.len()), (Some(second.opened_at), 0));
    let over = settle(&still.subscription, &[first, won(&second, "2026-06-20")], "2026-06-20");
    let waived: Vec<String> = over.waived.iter().map(|waived| waived.due_on.to_string()).collect();
    assert_eq!(waived, ["2026-03-10", "2026-04-10", "2026-05-10", "2026-06-10"]);
}

#[test]
fn won_dispute_leaves_each_period_paid_waived_or_owed() {
    let (mut cases, mut waiving) = (0, 0);
    for opened_on in ["2026-03-05", "2026-03-10", "2026-03-20", "2026-05-01"] {
        for today in date("2026-03-05").iter_days().take(120).map(|day| day.to_string()) {
            for status in [Status::Active, Status::PastDue, Status::Unpaid, Status::Paused, Status::Cancelled] {
                for (is_open, cancel_from) in
                    [(false, None), (true, None), (false, Some("2026-05")), (true, Some("2026-05"))]
                {
                    for (after_won_dispute, catch_up) in [
                        (AfterWonDispute::Waive, CatchUp::Each),
                        (AfterWonDispute::Charge, CatchUp::Each),
                        (AfterWonDispute::Charge, CatchUp::Latest),
                    ] {
                        let before = disputed(opened_on);
                        let before = Subscription {
                            status,
                            next_reminder_on: before.next_reminder_on.filter(|_| status == Status::Active),
                            first_declined_on: (status != Status::Active).then_some(before.due_on),
                            attempt: is_open.then(|| attempt(&before)),
                            cancel_from: cancel_from.map(|from: &str| from.parse::<Period>().unwrap()),
                            ..before
                        };
                        let policy = Policy { after_won_dispute, catch_up, ..Policy::default() };
                        let settlement = won(&before, &policy, &today);
                        let story = format!("{opened_on} {today} {status} {is_open} {cancel_from:?} {policy:?}");
                        holds(&before, &settlement, date(&today), &story);
                        cases += 1;
                        waiving += usize::from(!settlement.waived.is_empty());
                    }
                }
            }
        }
    }
    assert!(waiving > 500 && cases > 20_000, "{waiving} of {cases}");
}

/// What holds of every settlement of a won dispute.
fn holds(before: &Subscription, settlement: &Settlement, today: NaiveDate, story: &str) {
    let (next, waived) = (&settlement.subscription, &settlement.waived);
    assert_eq!(next.disputed_at, None, "{story}");
    assert_eq!(next.attempt, before.attempt, "{story}");
    // The waived periods are exactly those that the due date passed over.
    let passed: Vec<Period> = std::iter::successors(Some(Period::of(before.due_on)), |period| Some(period.next()))
        .take_while(|period| *period < Period::of(next.due_on))
        .collect();
    assert_eq!(waived.iter().map(|one| Period::of(one.due_on)).collect::<Vec<_>>(), passed, "{story}");
    assert!(waived.iter().all(|one| one.due_on < today && one.reason.to_string() == "disputed"), "{story}");
    assert!(before.cancel_from.is_none_or(|end| passed.iter().all(|period| *period < end)), "{story}");
    if before.attempt.is_some() || !before.status.is_chargeable() {
        assert_eq!((next.due_on, next.status), (before.due_on, before.status), "{story}");
    }
    match next.status.is_chargeable() {
        true => assert!(next.next_payment_on.is_some_and(|on| on >= next.due_on.min(today)), "{story}"),
        false => assert_eq!(next.next_payment_on, before.next_payment_on, "{story}"),
    }
    assert!(next.status == Status::Active || next.next_reminder_on.is_none(), "{story}");
}

#[test]
fn reversal_of_a_receipt_is_computed_from_its_disputes() {
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
        processed_at: morning("2026-03-10"),
        refunded: Money::new(0, amount.currency()),
        reversal: None,
    };
    let paid = receipt(gold.price);
    let (euro, half) = (gold.price.currency(), Money::new(gold.price.minor() / 2, gold.price.currency()));
    let one = |status: DisputeStatus, amount: Money| Dispute { amount, ..dispute(&gold, status, "2026-03-20") };
    let reversed = |disputes: &[Dispute]| paid.reversed_by(disputes).map(|reversal| reversal.amount);
    for status in [DisputeStatus::Inquiry, DisputeStatus::Open, DisputeStatus::Won] {
        assert_eq!(reversed(&[one(status, gold.price)]), None, "{status}");
    }
    assert_eq!(reversed(&[one(DisputeStatus::Lost, gold.price)]), Some(gold.price));
    assert_eq!(reversed(&[one(DisputeStatus::Returned, gold.price)]), Some(gold.price));
    assert_eq!(reversed(&[one(DisputeStatus::Lost, half)]), Some(half), "only a part was disputed");
    let twice = [one(DisputeStatus::Lost, gold.price), one(DisputeStatus::Returned, gold.price)];
    assert_eq!(reversed(&twice), Some(gold.price), "never more than was paid");
    let other = "JPY".parse().unwrap();
    assert_ne!(euro, other);
    assert_eq!(reversed(&[one(DisputeStatus::Lost, Money::new(1, other))]), Some(gold.price));
    let elsewhere = Dispute { payment: "pi_2".parse().unwrap(), ..one(DisputeStatus::Lost, gold.price) };
    assert_eq!(reversed(&[elsewhere]), None);
}
