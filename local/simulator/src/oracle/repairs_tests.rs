//! Payments that are made hours after an error: which later ones are wrong, and which could not be prevented.

use billing::{Decline, Money, Payment, PaymentStatus};
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::tests::{claimed, date, item, morning, rules, who};
use super::*;

const NO: &str = "01JZXCVBNM0123456789ABCDEF";

/// The payment `id` of attempt 1.
fn payment(id: &str, status: PaymentStatus, at: DateTime<Utc>) -> Payment {
    Payment {
        id: id.parse().unwrap(),
        table: None,
        account: who().0.parse().unwrap(),
        subscription: who().1.parse().unwrap(),
        due_on: date("2028-01-31"),
        attempt_no: 1,
        amount: Money::new(1299, "EUR".parse().unwrap()),
        status,
        card: None,
        created_at: at,
    }
}

fn key() -> ItemKey {
    ("ACC#acme".to_owned(), format!("SUB#{NO}#SKU#gold"))
}

fn with_attempt() -> Value {
    let mut open = item();
    claimed(1299).into_iter().for_each(|(name, value)| open[name] = value);
    open
}

/// An oracle that has seen attempt 1 claimed by actor 1 on its day.
fn claimed_by_one() -> Oracle {
    let mut oracle = Oracle::new(rules(), Tz::UTC);
    oracle.saw(0, morning("2028-01-02"), &[Change { key: key(), before: None, after: Some(item()) }]);
    let today = date("2028-01-31");
    let actor = Actor { role: Role::Payments, skew: TimeDelta::zero(), today, ceiling: None };
    oracle.begins(1, morning("2028-01-31"), actor);
    oracle.saw(1, morning("2028-01-31"), &[Change { key: key(), before: Some(item()), after: Some(with_attempt()) }]);
    oracle
}

fn request() -> gateways::ChargeRequest {
    let Payment { account, subscription, due_on, attempt_no, amount, .. } =
        payment("pi_0", PaymentStatus::Processing, morning("2028-01-31"));
    let payment_method =
        serde_json::from_value(json!({"customer": "cus_1", "payment_method": "pm_card_visa"})).unwrap();
    gateways::ChargeRequest {
        idempotency_key: "key-1".to_owned(),
        table: None,
        account,
        subscription,
        sku: "gold".parse().unwrap(),
        due_on,
        attempt_no,
        amount,
        payment_method,
    }
}

#[test]
fn charge_after_a_repaired_payment_is_wrong_once_a_look_up_has_shown_that() {
    let now = morning("2028-01-31") + TimeDelta::minutes(4);
    for (minutes, status, wrong, too_late) in [
        (30, PaymentStatus::Succeeded, 1, 0),
        (30, PaymentStatus::Processing, 1, 0),
        (30, PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true }), 0, 0),
        // It was made between the look-up and the charge.
        (2, PaymentStatus::Succeeded, 0, 1),
    ] {
        let mut oracle = claimed_by_one();
        let at = now - TimeDelta::minutes(minutes);
        oracle.repaired(at, &payment("pi_1", status.clone(), at), "pm_card_visa");
        oracle.made(1, now, &payment("pi_2", PaymentStatus::Succeeded, now), "pm_card_visa");
        assert_eq!(oracle.wrong.len(), wrong, "{minutes} {status:?}: {:?}", oracle.wrong);
        assert!(oracle.wrong.iter().all(|wrong| wrong.contains("was charged again by pi_2, after pi_1")));
        assert_eq!(oracle.judged.too_late, too_late, "{minutes} {status:?}");
    }
}

#[test]
fn payment_that_is_repaired_after_the_charge_could_not_be_prevented() {
    let mut oracle = claimed_by_one();
    let now = morning("2028-01-31") + TimeDelta::minutes(4);
    oracle.made(1, now, &payment("pi_2", PaymentStatus::Succeeded, now), "pm_card_visa");
    let later = now + TimeDelta::hours(8);
    oracle.repaired(later, &payment("pi_1", PaymentStatus::Succeeded, now), "pm_card_visa");
    assert_eq!((oracle.wrong.len(), oracle.judged.repaired, oracle.judged.too_late), (0, 1, 1), "{:?}", oracle.wrong);
}

#[test]
fn rejection_is_right_only_if_the_gateway_has_received_the_request_and_made_nothing() {
    let now = morning("2028-01-31") + TimeDelta::minutes(4);
    let mut rejected = item();
    rejected["NextPaymentDate"] = json!({"S": "2028-02-01"});
    rejected["AttemptSeq"] = json!({"N": "1"});
    let record = json!({"Outcome": {"S": "rejected"}, "Hard": {"BOOL": false}, "Amount": {"N": "1299"}});
    let record_key = ("ACC#acme".to_owned(), format!("ATT#2028-01-31#SUB#{NO}#1"));
    for (is_received, is_made, said) in [
        (true, false, None),
        (false, false, Some("which is not so")),
        (true, true, Some("was recorded as rejected, and there is pi_1")),
    ] {
        let mut oracle = claimed_by_one();
        oracle.asked(now, &request());
        if is_received {
            oracle.received("key-1");
        }
        if is_made {
            oracle.made(1, now, &payment("pi_1", PaymentStatus::Succeeded, now), "pm_card_visa");
        }
        let settled = [
            Change { key: key(), before: Some(with_attempt()), after: Some(rejected.clone()) },
            Change { key: record_key.clone(), before: None, after: Some(record.clone()) },
        ];
        oracle.saw(1, now, &settled);
        match said {
            None => assert_eq!(oracle.wrong, [""; 0]),
            Some(said) => assert!(oracle.wrong.iter().any(|wrong| wrong.contains(said)), "{:?}", oracle.wrong),
        }
    }
}

#[test]
fn finding_is_right_only_about_a_success_whose_month_is_not_due() {
    let now = morning("2028-02-02");
    let finding = |reason: &str| Change {
        key: ("ACC#acme".to_owned(), format!("FND#2028-01-31#SUB#{NO}#pi_1")),
        before: None,
        after: Some(json!({"GatewayPaymentId": {"S": "pi_1"}, "Reason": {"S": reason}})),
    };
    let declined = PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true });
    for (status, is_paid, reason, is_right) in [
        (PaymentStatus::Succeeded, true, "paid_twice", true),
        (PaymentStatus::Succeeded, true, "not_due", false),
        (PaymentStatus::Succeeded, false, "not_due", false),
        (declined, true, "paid_twice", false),
    ] {
        let mut oracle = claimed_by_one();
        oracle.repaired(now, &payment("pi_1", status.clone(), now), "pm_card_visa");
        if is_paid {
            let agreement = oracle.agreements.get_mut(&who()).unwrap();
            agreement.paid.insert((2028, 1), "pi_2".to_owned());
            (agreement.due, agreement.open) = (date("2028-02-29"), None);
        }
        oracle.saw(1, now, &[finding(reason)]);
        assert_eq!(oracle.wrong.is_empty(), is_right, "{status:?} {is_paid} {reason}: {:?}", oracle.wrong);
        assert_eq!(oracle.ledger.found.contains("pi_1"), is_right);
    }
}
