//! Tests of late payments, which the gateway makes hours after an error response: which later charges and writes the
//! oracle reports as violations, and which duplicate charges it only counts, because no look-up could have prevented
//! them.

use billing::{Decline, Money, Payment, PaymentStatus};
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::tests::{
    claim_attributes, default_billing_rules, parse_date, six_o_clock_on, subscription_item, subscription_name,
};
use super::*;

/// The id of the subscription that `subscription_name` returns.
const SUBSCRIPTION_ID: &str = "01JZXCVBNM0123456789ABCDEF";

/// Returns a payment of attempt 1 with this id.
fn payment_of_first_attempt(id: &str, status: PaymentStatus, at: DateTime<Utc>) -> Payment {
    Payment {
        id: id.parse().unwrap(),
        table: None,
        account: subscription_name().0.parse().unwrap(),
        subscription: subscription_name().1.parse().unwrap(),
        due_on: parse_date("2028-01-31"),
        attempt_no: 1,
        amount: Money::new(1299, "EUR".parse().unwrap()),
        status,
        card: None,
        created_at: at,
    }
}

/// Returns the key of the subscription that these tests use.
fn subscription_key() -> ItemKey {
    ("ACC#acme".to_owned(), format!("SUB#{SUBSCRIPTION_ID}#SKU#gold"))
}

/// Returns the item of the subscription after the claim of attempt 1.
fn item_with_open_attempt() -> Value {
    let mut open = subscription_item();
    claim_attributes(1299).into_iter().for_each(|(name, value)| open[name] = value);
    open
}

/// Returns an oracle for which actor 1 has claimed attempt 1 on its due date.
fn oracle_with_open_attempt() -> Oracle {
    let mut oracle = Oracle::new(default_billing_rules(), Tz::UTC);
    oracle.record_table_request(
        0,
        six_o_clock_on("2028-01-02"),
        &[ItemChange { key: subscription_key(), before: None, after: Some(subscription_item()) }],
    );
    let today = parse_date("2028-01-31");
    let actor = SimulatedActor { role: ActorRole::Payments, skew: TimeDelta::zero(), today, date: None };
    oracle.record_actor_start(1, six_o_clock_on("2028-01-31"), actor);
    oracle.record_table_request(
        1,
        six_o_clock_on("2028-01-31"),
        &[ItemChange {
            key: subscription_key(),
            before: Some(subscription_item()),
            after: Some(item_with_open_attempt()),
        }],
    );
    oracle
}

/// Returns the charge request of attempt 1, with the idempotency key `key-1`.
fn sample_charge_request() -> gateways::ChargeRequest {
    let Payment { account, subscription, due_on, attempt_no, amount, .. } =
        payment_of_first_attempt("pi_0", PaymentStatus::Processing, six_o_clock_on("2028-01-31"));
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
fn charge_after_a_late_payment_is_a_violation_if_a_look_up_could_have_found_it() {
    let now = six_o_clock_on("2028-01-31") + TimeDelta::minutes(4);
    // The columns are: minutes from the late payment to the charge; status of the late payment; expected number of
    // violations; expected number of duplicates that no look-up could have prevented.
    for (minutes, status, violations, late_duplicates) in [
        (30, PaymentStatus::Succeeded, 1, 0),
        (30, PaymentStatus::Processing, 1, 0),
        (30, PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true }), 0, 0),
        // The late payment was made between the look-up and the charge.
        (2, PaymentStatus::Succeeded, 0, 1),
    ] {
        let mut oracle = oracle_with_open_attempt();
        let at = now - TimeDelta::minutes(minutes);
        oracle.record_late_payment(at, &payment_of_first_attempt("pi_1", status.clone(), at), "pm_card_visa");
        oracle.record_payment(1, now, &payment_of_first_attempt("pi_2", PaymentStatus::Succeeded, now), "pm_card_visa");
        assert_eq!(oracle.violations.len(), violations, "{minutes} {status:?}: {:?}", oracle.violations);
        assert!(oracle.violations.iter().all(|violation| violation.contains("was charged again by pi_2, after pi_1")));
        assert_eq!(oracle.counts.late_duplicates, late_duplicates, "{minutes} {status:?}");
    }
}

#[test]
fn late_payment_after_the_charge_is_counted_as_a_late_duplicate() {
    let mut oracle = oracle_with_open_attempt();
    let now = six_o_clock_on("2028-01-31") + TimeDelta::minutes(4);
    oracle.record_payment(1, now, &payment_of_first_attempt("pi_2", PaymentStatus::Succeeded, now), "pm_card_visa");
    let later = now + TimeDelta::hours(8);
    oracle.record_late_payment(later, &payment_of_first_attempt("pi_1", PaymentStatus::Succeeded, now), "pm_card_visa");
    assert_eq!(
        (oracle.violations.len(), oracle.counts.late_payments, oracle.counts.late_duplicates),
        (0, 1, 1),
        "{:?}",
        oracle.violations
    );
}

#[test]
fn rejection_is_valid_only_if_the_gateway_received_the_request_and_made_no_payment() {
    let now = six_o_clock_on("2028-01-31") + TimeDelta::minutes(4);
    let mut rejected = subscription_item();
    rejected["NextPaymentDate"] = json!({"S": "2028-02-01"});
    rejected["AttemptSeq"] = json!({"N": "1"});
    let record = json!({"Outcome": {"S": "rejected"}, "Hard": {"BOOL": false}, "Amount": {"N": "1299"}});
    let record_key = ("ACC#acme".to_owned(), format!("ATT#2028-01-31#SUB#{SUBSCRIPTION_ID}#1"));
    // The columns are: whether the gateway received the request; whether the gateway made a payment; expected
    // violation.
    for (is_received, is_made, expected_violation) in [
        (true, false, None),
        (false, false, Some("was recorded, but is wrong")),
        (true, true, Some("was recorded as rejected, but the gateway has the payment pi_1")),
    ] {
        let mut oracle = oracle_with_open_attempt();
        oracle.record_charge_request(now, &sample_charge_request());
        if is_received {
            oracle.record_received_charge("key-1");
        }
        if is_made {
            oracle.record_payment(
                1,
                now,
                &payment_of_first_attempt("pi_1", PaymentStatus::Succeeded, now),
                "pm_card_visa",
            );
        }
        let settled = [
            ItemChange {
                key: subscription_key(),
                before: Some(item_with_open_attempt()),
                after: Some(rejected.clone()),
            },
            ItemChange { key: record_key.clone(), before: None, after: Some(record.clone()) },
        ];
        oracle.record_table_request(1, now, &settled);
        match expected_violation {
            None => assert_eq!(oracle.violations, [""; 0]),
            Some(expected_violation) => assert!(
                oracle.violations.iter().any(|violation| violation.contains(expected_violation)),
                "{:?}",
                oracle.violations
            ),
        }
    }
}

#[test]
fn finding_is_valid_only_for_a_successful_payment_of_a_month_that_is_not_due() {
    let now = six_o_clock_on("2028-02-02");
    let finding = |reason: &str| ItemChange {
        key: ("ACC#acme".to_owned(), format!("FND#2028-01-31#SUB#{SUBSCRIPTION_ID}#pi_1")),
        before: None,
        after: Some(json!({"GatewayPaymentId": {"S": "pi_1"}, "Reason": {"S": reason}})),
    };
    let declined = PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true });
    // The columns are: status of the payment in the finding; whether another payment has paid the month; reason of the
    // finding; whether the finding is valid.
    for (status, is_paid, reason, is_valid) in [
        (PaymentStatus::Succeeded, true, "paid_twice", true),
        (PaymentStatus::Succeeded, true, "not_due", false),
        (PaymentStatus::Succeeded, false, "not_due", false),
        (declined, true, "paid_twice", false),
    ] {
        let mut oracle = oracle_with_open_attempt();
        oracle.record_late_payment(now, &payment_of_first_attempt("pi_1", status.clone(), now), "pm_card_visa");
        if is_paid {
            let expected = oracle.expected_subscriptions.get_mut(&subscription_name()).unwrap();
            expected.paid.insert((2028, 1), "pi_2".to_owned());
            (expected.due, expected.open) = (parse_date("2028-02-29"), None);
        }
        oracle.record_table_request(1, now, &[finding(reason)]);
        assert_eq!(oracle.violations.is_empty(), is_valid, "{status:?} {is_paid} {reason}: {:?}", oracle.violations);
        assert_eq!(oracle.ledger.findings.contains("pi_1"), is_valid);
    }
}
