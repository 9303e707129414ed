//! The oracle's rules, by examples of the design; and what it says when something else was written.

use billing::Policy;
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::*;
use crate::stored::StoredStatus;

pub(super) fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

pub(super) fn morning(day: &str) -> DateTime<Utc> {
    format!("{day}T06:00:00Z").parse().unwrap()
}

pub(super) fn who() -> Who {
    ("acme".to_owned(), "01JZXCVBNM0123456789ABCDEF".to_owned())
}

/// A subscription of 12.99 on the 31st, due on 31 January 2028.
pub(super) fn item() -> Value {
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

fn begun() -> Agreement {
    Agreement::begun(&who(), &item()).unwrap()
}

pub(super) fn rules() -> Rules {
    Rules::of(&Policy::default())
}

fn after(agreement: &Agreement, act: Act, day: &str) -> Option<Agreement> {
    agreement.after(&act, date(day), &rules())
}

#[test]
fn pause_is_refused_while_anything_is_owed_and_waives_what_it_outlasts() {
    assert!(after(&begun(), Act::Pause, "2028-01-31").is_none(), "due today");
    let paused = after(&begun(), Act::Pause, "2028-01-30").unwrap();
    assert_eq!((paused.status, paused.next, paused.remind), (StoredStatus::Paused, None, None));
    assert!(after(&paused, Act::Day(5), "2028-02-01").is_none());
    assert!(after(&paused, Act::Day(31), "2028-02-01").is_some(), "as it is");
    let later = after(&after(&begun(), Act::Day(5), "2028-01-10").unwrap(), Act::Pause, "2028-01-11").unwrap();
    assert!(after(&later, Act::Day(31), "2028-01-12").is_none(), "the 5th was to count from February on");
    let resumed = after(&paused, Act::Resume, "2028-04-02").unwrap();
    assert_eq!((resumed.due, resumed.next), (date("2028-03-31"), Some(date("2028-04-02"))));
    assert_eq!(resumed.waives, [(date("2028-01-31"), "paused"), (date("2028-02-29"), "paused")]);
}

#[test]
fn price_and_day_count_from_the_first_month_that_lies_ahead() {
    let dearer = after(&begun(), Act::Price(1599), "2028-01-31").unwrap();
    assert_eq!((dearer.price_in((2028, 1)), dearer.price_in((2028, 2))), (1299, 1599));
    let moved = after(&begun(), Act::Day(20), "2028-01-10").unwrap();
    assert_eq!((moved.due, moved.remind), (date("2028-01-20"), Some(date("2028-01-13"))));
    let later = after(&begun(), Act::Day(5), "2028-01-10").unwrap();
    assert_eq!((later.due, later.due_in((2028, 2))), (date("2028-01-31"), date("2028-02-05")));
}

#[test]
fn cancel_waives_what_is_owed() {
    let cancelled = after(&begun(), Act::Cancel, "2028-02-29").unwrap();
    assert_eq!(cancelled.waives, [(date("2028-01-31"), "cancelled"), (date("2028-02-29"), "cancelled")]);
    assert_eq!((cancelled.due, cancelled.ends), (date("2028-03-31"), Some((2028, 3))));
    assert!(after(&cancelled, Act::Keep, "2028-03-01").is_none());
    let ending = after(&begun(), Act::End, "2028-01-10").unwrap();
    assert_eq!((ending.ends, ending.remind), (Some((2028, 1)), None));
    assert!(after(&ending, Act::Keep, "2028-01-31").is_none(), "the day has come");
}

/// What the oracle says when `role` writes `changed` on top of the item on that morning.
fn said(role: Role, day: &str, changed: &[(&str, Value)]) -> Vec<String> {
    let mut oracle = Oracle::new(rules(), Tz::UTC);
    let change = |before: Option<Value>, after: Value| Change {
        key: ("ACC#acme".to_owned(), format!("SUB#{}#SKU#gold", who().1)),
        before,
        after: Some(after),
    };
    oracle.saw(0, morning("2028-01-02"), &[change(None, item())]);
    oracle.begins(1, morning(day), Actor { role, skew: TimeDelta::zero(), today: date(day), ceiling: None });
    let mut written = item();
    changed.iter().for_each(|(name, value)| written[*name] = value.clone());
    oracle.saw(1, morning(day), &[change(Some(item()), written)]);
    oracle.wrong
}

pub(super) fn claimed(amount: i64) -> Vec<(&'static str, Value)> {
    let text = |text: &str| json!({"S": text});
    vec![
        ("AttemptSeq", json!({"N": "1"})),
        ("AttemptNo", json!({"N": "1"})),
        ("AttemptDue", text("2028-01-31")),
        ("AttemptAmount", json!({"N": amount.to_string()})),
        ("AttemptPayment", item()["PaymentDetails"].clone()),
        ("AttemptAt", text("2028-01-31T06:00:00.000Z")),
        ("AttemptLease", text("2028-01-31T06:20:00.000Z")),
        ("AttemptBy", text("01JZXCVBNM0123456789ABCDEF")),
    ]
}

#[test]
fn saw_judges_a_claim_by_its_day_and_by_what_it_freezes() {
    assert_eq!(said(Role::Payments, "2028-01-31", &claimed(1299)), [""; 0]);
    assert!(said(Role::Payments, "2028-01-31", &claimed(1300))[0].contains("what is frozen should be"));
    assert!(said(Role::Payments, "2028-01-30", &claimed(1299))[0].contains("a payment was begun on 2028-01-30"));
    assert!(said(Role::Reminders, "2028-01-31", &claimed(1299))[0].contains("no business"));
}

#[test]
fn saw_judges_a_request_by_what_was_asked_for() {
    let request = |act: Act| Role::Request { who: who(), act };
    let paused =
        [("Status", json!({"S": "paused"})), ("NextPaymentDate", Value::Null), ("NextReminderDate", Value::Null)];
    assert_eq!(said(request(Act::Pause), "2028-01-30", &paused), [""; 0]);
    assert!(said(request(Act::Pause), "2028-01-31", &paused)[0].contains("had to be refused"));
    assert!(said(request(Act::Pause), "2028-01-30", &paused[..1])[0].contains("the next payment date should be None"));
    assert!(said(request(Act::Resume), "2028-01-30", &paused)[0].contains("the status should be"));
}

#[test]
fn answered_is_held_against_what_was_read_and_not_against_what_came_after() {
    let now = morning("2028-01-10");
    let key = |sk: String| ("ACC#acme".to_owned(), sk);
    let change = |before: Option<Value>, after: Value| Change {
        key: key(format!("SUB#{}#SKU#gold", who().1)),
        before,
        after: Some(after),
    };
    let asks = |act: Act| Actor {
        role: Role::Request { who: who(), act },
        skew: TimeDelta::zero(),
        today: date("2028-01-10"),
        ceiling: None,
    };
    let mut cancelled = item();
    cancelled["Status"] = json!({"S": "cancelled"});
    cancelled["CancelPeriod"] = json!({"S": "2028-01"});
    (cancelled["NextPaymentDate"], cancelled["NextReminderDate"]) = (Value::Null, Value::Null);
    let answer = Change { key: ("IDEM#1".to_owned(), "IDEM#1".to_owned()), before: None, after: Some(json!({})) };
    for (reads_before, expected) in [(true, 0), (false, 1)] {
        let mut oracle = Oracle::new(rules(), Tz::UTC);
        oracle.saw(0, morning("2028-01-02"), &[change(None, item())]);
        oracle.begins(1, now, asks(Act::Resume));
        oracle.begins(2, now, asks(Act::Cancel));
        let reads = |oracle: &mut Oracle| oracle.saw(1, now, &[]);
        if reads_before {
            reads(&mut oracle);
        }
        oracle.saw(2, now, &[change(Some(item()), cancelled.clone())]);
        if !reads_before {
            reads(&mut oracle);
        }
        oracle.saw(1, now, std::slice::from_ref(&answer));
        oracle.answered(1, now, Answered::Done);
        assert_eq!(oracle.wrong.len(), expected, "{:?}", oracle.wrong);
    }
}

#[test]
fn ceiling_is_held_against_what_will_be_charged() {
    let is_over = |ends: Option<&str>, id: &str| {
        let mut oracle = Oracle::new(rules(), Tz::UTC);
        let mut other = item();
        ends.into_iter().for_each(|month| other["CancelPeriod"] = json!({"S": month}));
        for (id, item) in [(who().1.as_str(), item()), (id, other)] {
            let key = ("ACC#acme".to_owned(), format!("SUB#{id}#SKU#gold"));
            oracle.saw(0, morning("2028-01-02"), &[Change { key, before: None, after: Some(item) }]);
        }
        let ceiling = Some((1, date("2028-01-31")));
        let actor = Actor { role: Role::Payments, skew: TimeDelta::zero(), today: date("2028-01-31"), ceiling };
        oracle.begins(1, morning("2028-01-31"), actor);
        oracle.is_over(&oracle.present[&1])
    };
    let another = "01JZXCVBNM0123456789ABCDEG";
    assert!(!is_over(None, &who().1), "one is due");
    assert!(is_over(None, another), "two are due");
    assert!(is_over(Some("2028-02"), another), "the other ends next month");
    assert!(!is_over(Some("2028-01"), another), "the other ends this month, and is not charged");
}
