//! Tests of the oracle: which states it predicts after customer actions, and which writes, claims and API responses it
//! reports as violations.

use billing::Policy;
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::*;
use crate::stored_items::StoredStatus;

pub(super) fn parse_date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Returns 06:00 UTC on `day`.
pub(super) fn six_o_clock_on(day: &str) -> DateTime<Utc> {
    format!("{day}T06:00:00Z").parse().unwrap()
}

/// Returns the name of the subscription that these tests use.
pub(super) fn subscription_name() -> SubscriptionName {
    ("acme".to_owned(), "01JZXCVBNM0123456789ABCDEF".to_owned())
}

/// Returns the item of a subscription with a price of 12.99, payment day 31 and due date 31 January 2028.
pub(super) fn subscription_item() -> Value {
    let text = |text: &str| json!({"S": text});
    let number = |number: i64| json!({"N": number.to_string()});
    json!({
        "Status": text("active"), "ProductName": text("Gold"), "Currency": text("EUR"),
        "PaymentDay": number(31), "PaymentAmount": number(1299), "FailedAttempts": number(0), "AttemptSeq": number(0),
        "PaymentDetails": {"M": {"customer": text("cus_1"), "payment_method": text("pm_card_visa")}},
        "FirstDueDate": text("2028-01-31"), "DueDate": text("2028-01-31"), "NextPaymentDate": text("2028-01-31"),
        "NextReminderDate": text("2028-01-24"), "CreatedDate": text("2028-01-02T06:00:00.000Z"),
    })
}

/// Returns the expected state of the subscription of [`subscription_item`].
fn new_subscription() -> ExpectedSubscription {
    ExpectedSubscription::from_item(&subscription_name(), &subscription_item()).unwrap()
}

/// Returns the oracle's rules for the default billing settings.
pub(super) fn default_billing_rules() -> BillingRules {
    BillingRules::from_policy(&Policy::default())
}

/// Returns the expected subscription after `action` on `day`; `None` if the action must be refused.
fn after_action_on(expected: &ExpectedSubscription, action: CustomerAction, day: &str) -> Option<ExpectedSubscription> {
    expected.predict_after_action(&action, parse_date(day), &default_billing_rules())
}

#[test]
fn pause_is_refused_while_a_month_is_owed_and_resume_waives_the_paused_months() {
    assert!(after_action_on(&new_subscription(), CustomerAction::Pause, "2028-01-31").is_none(), "due today");
    let paused = after_action_on(&new_subscription(), CustomerAction::Pause, "2028-01-30").unwrap();
    assert_eq!((paused.status, paused.next_payment, paused.next_reminder), (StoredStatus::Paused, None, None));
    assert!(after_action_on(&paused, CustomerAction::ChangePaymentDay(5), "2028-02-01").is_none());
    assert!(
        after_action_on(&paused, CustomerAction::ChangePaymentDay(31), "2028-02-01").is_some(),
        "unchanged payment day"
    );
    let later = after_action_on(
        &after_action_on(&new_subscription(), CustomerAction::ChangePaymentDay(5), "2028-01-10").unwrap(),
        CustomerAction::Pause,
        "2028-01-11",
    )
    .unwrap();
    assert!(
        after_action_on(&later, CustomerAction::ChangePaymentDay(31), "2028-01-12").is_none(),
        "the 5th applies from February on"
    );
    let resumed = after_action_on(&paused, CustomerAction::Resume, "2028-04-02").unwrap();
    assert_eq!((resumed.due, resumed.next_payment), (parse_date("2028-03-31"), Some(parse_date("2028-04-02"))));
    assert_eq!(resumed.new_waivers, [(parse_date("2028-01-31"), "paused"), (parse_date("2028-02-29"), "paused")]);
}

#[test]
fn new_price_and_new_payment_day_apply_from_the_first_future_month() {
    let more_expensive = after_action_on(&new_subscription(), CustomerAction::ChangePrice(1599), "2028-01-31").unwrap();
    assert_eq!((more_expensive.price_in((2028, 1)), more_expensive.price_in((2028, 2))), (1299, 1599));
    let moved = after_action_on(&new_subscription(), CustomerAction::ChangePaymentDay(20), "2028-01-10").unwrap();
    assert_eq!((moved.due, moved.next_reminder), (parse_date("2028-01-20"), Some(parse_date("2028-01-13"))));
    let later = after_action_on(&new_subscription(), CustomerAction::ChangePaymentDay(5), "2028-01-10").unwrap();
    assert_eq!((later.due, later.due_date_in((2028, 2))), (parse_date("2028-01-31"), parse_date("2028-02-05")));
}

#[test]
fn cancel_waives_the_owed_months() {
    let cancelled = after_action_on(&new_subscription(), CustomerAction::Cancel, "2028-02-29").unwrap();
    assert_eq!(
        cancelled.new_waivers,
        [(parse_date("2028-01-31"), "cancelled"), (parse_date("2028-02-29"), "cancelled")]
    );
    assert_eq!((cancelled.due, cancelled.ends), (parse_date("2028-03-31"), Some((2028, 3))));
    assert!(after_action_on(&cancelled, CustomerAction::Uncancel, "2028-03-01").is_none());
    let ending = after_action_on(&new_subscription(), CustomerAction::CancelAtPeriodEnd, "2028-01-10").unwrap();
    assert_eq!((ending.ends, ending.next_reminder), (Some((2028, 1)), None));
    assert!(
        after_action_on(&ending, CustomerAction::Uncancel, "2028-01-31").is_none(),
        "the end date has been reached"
    );
}

/// Returns the violations after an actor in `role` writes the changed attributes to the item on the morning of `day`.
fn violations_after_write(role: ActorRole, day: &str, changed: &[(&str, Value)]) -> Vec<String> {
    let mut oracle = Oracle::new(default_billing_rules(), Tz::UTC);
    let change = |before: Option<Value>, after: Value| ItemChange {
        key: ("ACC#acme".to_owned(), format!("SUB#{}#SKU#gold", subscription_name().1)),
        before,
        after: Some(after),
    };
    oracle.record_table_request(0, six_o_clock_on("2028-01-02"), &[change(None, subscription_item())]);
    oracle.record_actor_start(
        1,
        six_o_clock_on(day),
        SimulatedActor { role, skew: TimeDelta::zero(), today: parse_date(day), date: None },
    );
    let mut written = subscription_item();
    changed.iter().for_each(|(name, value)| written[*name] = value.clone());
    oracle.record_table_request(1, six_o_clock_on(day), &[change(Some(subscription_item()), written)]);
    oracle.violations
}

/// Returns the attributes that the claim of attempt 1 with this amount writes.
pub(super) fn claim_attributes(amount: i64) -> Vec<(&'static str, Value)> {
    let text = |text: &str| json!({"S": text});
    vec![
        ("AttemptSeq", json!({"N": "1"})),
        ("AttemptNo", json!({"N": "1"})),
        ("AttemptDue", text("2028-01-31")),
        ("AttemptAmount", json!({"N": amount.to_string()})),
        ("AttemptPayment", subscription_item()["PaymentDetails"].clone()),
        ("AttemptAt", text("2028-01-31T06:00:00.000Z")),
        ("AttemptLease", text("2028-01-31T06:20:00.000Z")),
        ("AttemptBy", text("01JZXCVBNM0123456789ABCDEF")),
    ]
}

#[test]
fn oracle_reports_claims_with_a_wrong_date_amount_or_role() {
    assert_eq!(violations_after_write(ActorRole::Payments, "2028-01-31", &claim_attributes(1299)), [""; 0]);
    assert!(
        violations_after_write(ActorRole::Payments, "2028-01-31", &claim_attributes(1300))[0]
            .contains("the due date, amount and card of the attempt should be")
    );
    assert!(
        violations_after_write(ActorRole::Payments, "2028-01-30", &claim_attributes(1299))[0]
            .contains("an attempt was claimed on 2028-01-30")
    );
    assert!(
        violations_after_write(ActorRole::Reminders, "2028-01-31", &claim_attributes(1299))[0]
            .contains("the reminder batch wrote an unexpected change")
    );
}

#[test]
fn oracle_reports_a_request_whose_write_does_not_match_its_action() {
    let request = |action: CustomerAction| ActorRole::Request { subscription: subscription_name(), action };
    let paused =
        [("Status", json!({"S": "paused"})), ("NextPaymentDate", Value::Null), ("NextReminderDate", Value::Null)];
    assert_eq!(violations_after_write(request(CustomerAction::Pause), "2028-01-30", &paused), [""; 0]);
    assert!(
        violations_after_write(request(CustomerAction::Pause), "2028-01-31", &paused)[0].contains("had to be refused")
    );
    assert!(
        violations_after_write(request(CustomerAction::Pause), "2028-01-30", &paused[..1])[0]
            .contains("the next payment date should be None")
    );
    assert!(
        violations_after_write(request(CustomerAction::Resume), "2028-01-30", &paused)[0]
            .contains("the status should be")
    );
}

#[test]
fn oracle_reports_a_response_that_does_not_match_the_state_that_the_request_read() {
    let now = six_o_clock_on("2028-01-10");
    let key = |sk: String| ("ACC#acme".to_owned(), sk);
    let change = |before: Option<Value>, after: Value| ItemChange {
        key: key(format!("SUB#{}#SKU#gold", subscription_name().1)),
        before,
        after: Some(after),
    };
    let actor_with = |action: CustomerAction| SimulatedActor {
        role: ActorRole::Request { subscription: subscription_name(), action },
        skew: TimeDelta::zero(),
        today: parse_date("2028-01-10"),
        date: None,
    };
    let mut cancelled = subscription_item();
    cancelled["Status"] = json!({"S": "cancelled"});
    cancelled["CancelPeriod"] = json!({"S": "2028-01"});
    (cancelled["NextPaymentDate"], cancelled["NextReminderDate"]) = (Value::Null, Value::Null);
    let idempotency_record =
        ItemChange { key: ("IDEM#1".to_owned(), "IDEM#1".to_owned()), before: None, after: Some(json!({})) };
    // The columns are: whether the request to resume reads the subscription before the cancellation is written (true)
    // or after it (false); expected number of violations.
    for (reads_before, expected) in [(true, 0), (false, 1)] {
        let mut oracle = Oracle::new(default_billing_rules(), Tz::UTC);
        oracle.record_table_request(0, six_o_clock_on("2028-01-02"), &[change(None, subscription_item())]);
        oracle.record_actor_start(1, now, actor_with(CustomerAction::Resume));
        oracle.record_actor_start(2, now, actor_with(CustomerAction::Cancel));
        let reads = |oracle: &mut Oracle| oracle.record_table_request(1, now, &[]);
        if reads_before {
            reads(&mut oracle);
        }
        oracle.record_table_request(2, now, &[change(Some(subscription_item()), cancelled.clone())]);
        if !reads_before {
            reads(&mut oracle);
        }
        oracle.record_table_request(1, now, std::slice::from_ref(&idempotency_record));
        oracle.record_api_response(1, now, RequestOutcome::Done);
        assert_eq!(oracle.violations.len(), expected, "{:?}", oracle.violations);
    }
}

#[test]
fn payments_that_will_not_be_charged_do_not_count_for_the_ceiling() {
    let exceeds_ceiling = |ends: Option<&str>, id: &str| {
        let mut oracle = Oracle::new(default_billing_rules(), Tz::UTC);
        let mut other = subscription_item();
        ends.into_iter().for_each(|month| other["CancelPeriod"] = json!({"S": month}));
        for (id, item) in [(subscription_name().1.as_str(), subscription_item()), (id, other)] {
            let key = ("ACC#acme".to_owned(), format!("SUB#{id}#SKU#gold"));
            oracle.record_table_request(
                0,
                six_o_clock_on("2028-01-02"),
                &[ItemChange { key, before: None, after: Some(item) }],
            );
        }
        let today = parse_date("2028-01-31");
        let actor = SimulatedActor { role: ActorRole::Payments, skew: TimeDelta::zero(), today, date: Some(today) };
        oracle.record_actor_start(1, six_o_clock_on("2028-01-31"), actor);
        oracle.record_settings_read_by_actor(1, true, Some(1));
        oracle.exceeds_ceiling(&oracle.active_actors[&1])
    };
    let another = "01JZXCVBNM0123456789ABCDEG";
    assert!(!exceeds_ceiling(None, &subscription_name().1), "one payment is due");
    assert!(exceeds_ceiling(None, another), "two payments are due");
    assert!(exceeds_ceiling(Some("2028-02"), another), "the other subscription ends next month");
    assert!(!exceeds_ceiling(Some("2028-01"), another), "the other subscription ends this month and is not charged");
}
