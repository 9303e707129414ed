//! Corruptions of stored items, with which the audit is tested. Each corruption removes a single attribute or changes
//! its value, and the audit must find the corruption. A list names the attributes whose corruption the audit may miss,
//! each with the reason.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};

/// The attributes whose corruption the audit does not find in every item: (kind of the item, attribute, reason why this
/// is accepted).
pub const CORRUPTIONS_THE_AUDIT_MAY_MISS: [(&str, &str, &str); 63] = [
    ("SUB", "PaymentDay", "in a short month, several payment days give the same due date"),
    ("SUB", "ReminderLease", "a reminder that is claimed twice is sent twice"),
    ("DSP", "Amount", "`dueday audit --gateway-list` finds it"),
    ("DSP", "CreatedDate", "it only decides which months a won dispute waives"),
    ("DSP", "PaymentMethod", "nothing else in the table determines it"),
    ("DSP", "ProcessedDate", "it only decides when collection stops after a lost dispute"),
    ("DSP", "Reason", "it is only shown"),
    ("DSP", "Version", "a version only counts writes"),
    ("FND", "Amount", "it is only shown"),
    ("FND", "Blocks", "a resolved finding blocks nothing"),
    ("FND", "CreatedDate", "it is only shown"),
    ("FND", "ProcessedDate", "it is only shown"),
    ("FND", "Resolution", "it is only shown"),
    ("FND", "SKU", "it is only shown"),
    ("FND", "Version", "a version only counts writes"),
    ("REC", "RefundedDate", "it is only shown"),
    ("RFD", "CreatedDate", "it is only shown"),
    ("RFD", "GatewayRefundId", "`dueday audit --gateway-list` finds it"),
    ("RFD", "Lease", "a settled refund is not leased again"),
    ("RFD", "ProcessedDate", "it is only shown"),
    ("RFD", "RequestedAmount", "it only recognizes a repeated request"),
    ("RFD", "TTL", "the refund expires a second earlier or later"),
    ("RFD", "Version", "a version only counts writes"),
    ("ACC", "CreatedDate", "it is only shown"),
    ("ACC", "Creations", "the number only has to change with each new subscription"),
    ("ACC", "Email", "nothing else in the table determines it"),
    ("ACC", "Name", "nothing else in the table determines it"),
    ("ACC", "Version", "a version only counts writes"),
    ("ATT", "Code", "it is only shown"),
    ("ATT", "Counted", "it only explains the date of the next try"),
    ("ATT", "GatewayCustomerId", "it only names a customer whose payments a look-up lists"),
    ("ATT", "Hard", "it is only shown"),
    ("ATT", "PaymentAmount", "it is only shown"),
    ("ATT", "TTL", "the record expires a second earlier or later"),
    ("REC", "Card", "it is only shown"),
    ("REC", "GatewayCustomerId", "`dueday audit --gateway-list` finds it"),
    ("REC", "GatewayPaymentId", "`dueday audit --gateway-list` finds it"),
    ("REC", "ProcessedAmount", "`dueday audit --gateway-list` finds it"),
    ("REC", "ProductName", "it is only shown"),
    ("REC", "TTL", "the record expires a second earlier or later"),
    ("WAV", "ProcessedDate", "it is only shown"),
    ("WAV", "TTL", "the record expires a second earlier or later"),
    (
        "SUB",
        "AttemptSeq",
        "a number that is too high is not used again; a number that is too low after records have expired finds the earlier payment at the gateway",
    ),
    ("SUB", "AttemptAt", "an earlier time only makes the look-up list more payments"),
    ("SUB", "AttemptLease", "a take-over that is too early repeats the same idempotency key"),
    ("SUB", "ChargeableFrom", "a subscription whose last payment was made by an earlier version has none"),
    ("SUB", "CreatedDate", "it is only shown"),
    ("SUB", "FailedAttempts", "the retry schedule begins at another gap"),
    ("SUB", "FirstDeclinedDate", "it only limits the time of the retries"),
    ("SUB", "FirstDueDate", "it only limits the months that are audited"),
    ("SUB", "LastReminderDate", "it is only shown"),
    ("SUB", "NextReminderDate", "the reminder is sent earlier"),
    ("SUB", "NextPaymentDate", "the retry or the take-over is on another day"),
    ("SUB", "PaymentAmount", "nothing else in the table determines it"),
    ("SUB", "PaymentDetailsDate", "it only orders two changes of the payment method"),
    ("SUB", "ProductName", "nothing else in the table determines it"),
    ("SUB", "RejectedCustomer", "it only names a customer whose payments a look-up lists"),
    ("SUB", "Rejections", "the next rejection counts as a decline earlier or later"),
    ("SUB", "RemindedFor", "a reminder is sent again, or was not needed"),
    ("SUB", "Shard", "a run processes every shard"),
    ("SUB", "UnpaidSince", "only its presence has an effect"),
    ("SUB", "Version", "a version only counts writes"),
    ("SUB", "WaitingTerms", "nothing else in the table determines it"),
];

/// A change of one attribute of an item.
#[derive(Clone, PartialEq, Debug)]
pub struct AttributeCorruption {
    /// Describes the corruption: the name of the attribute, and how the value was changed.
    pub description: String,
    /// The item after the change, in DynamoDB's JSON format.
    pub item: Value,
}

/// Returns the kind of an item of an account: the prefix of its sort key, and for a subscription also its status.
/// Returns `None` for an item that belongs to no account, and for an entry of the action log. An audit cannot find a
/// wrong entry of the action log, because no other item determines what the entry must contain.
pub fn kind_of_account_item(item: &Value) -> Option<String> {
    let sk = item["SK"]["S"].as_str()?;
    let prefix = sk.split('#').next()?;
    item["PK"]["S"].as_str()?.strip_prefix("ACC#").filter(|_| prefix != "ACTION")?;
    Some(match (prefix, item["Status"]["S"].as_str()) {
        ("SUB", Some(_)) if item.get("AttemptNo").is_some() => "SUB with open attempt".to_owned(),
        ("SUB", Some(status)) => format!("SUB {status}"),
        _ => prefix.to_owned(),
    })
}

/// Returns the reason why the audit may miss a corruption of the attribute `name` in an item of this kind; `None` if
/// the audit must find every such corruption.
pub fn reason_audit_may_miss(kind: &str, name: &str) -> Option<&'static str> {
    let prefix = kind.split(' ').next()?;
    CORRUPTIONS_THE_AUDIT_MAY_MISS
        .iter()
        .find(|(of, attribute, _)| *of == prefix && *attribute == name)
        .map(|found| found.2)
}

/// Returns all corruptions of the attribute `name` of `item`: one that removes the attribute, and one for each way to
/// corrupt a value of this type.
pub fn corruptions_of_attribute(item: &Value, name: &str) -> Vec<AttributeCorruption> {
    let Some((descriptor, value)) = item[name].as_object().and_then(|typed| typed.iter().next()) else {
        return Vec::new();
    };
    let mut all = vec![("removed".to_owned(), None)];
    let mut add = |what: &str, value: Value| all.push((what.to_owned(), Some(value)));
    match (descriptor.as_str(), value.as_str()) {
        ("N", Some(number)) => {
            if let Ok(number) = number.parse::<i64>() {
                add("increased", json!({"N": (number + 1).to_string()}));
                add("decreased", json!({"N": (number - 1).to_string()}));
            }
        }
        ("S", Some(text)) => {
            if let Ok(date) = text.parse::<NaiveDate>() {
                for days in [1, 40] {
                    add(&format!("{days} days later"), json!({"S": date.checked_add_days(Days::new(days))}));
                    add(&format!("{days} days earlier"), json!({"S": date.checked_sub_days(Days::new(days))}));
                }
            } else if let Ok(at) = text.parse::<DateTime<Utc>>() {
                let shift =
                    |days| json!({"S": (at + TimeDelta::days(days)).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()});
                add("400 days later", shift(400));
                add("400 days earlier", shift(-400));
            } else {
                add("with another text", json!({"S": format!("{text}-x")}));
            }
            add("of another type", json!({"N": "1"}));
        }
        ("BOOL", _) => add("inverted", json!({"BOOL": value != &json!(true)})),
        ("M", _) => add("without content", json!({"M": {}})),
        ("L", _) => add("with a wrong element", json!({"L": [{"M": {}}]})),
        _ => {}
    }
    let corrupted = |value: Option<Value>| {
        let mut corrupted = item.clone();
        match (value, corrupted.as_object_mut()) {
            (Some(value), _) => corrupted[name] = value,
            (None, attributes) => drop(attributes.and_then(|attributes| attributes.remove(name))),
        }
        corrupted
    };
    all.into_iter()
        .map(|(what, value)| AttributeCorruption { description: format!("{name} {what}"), item: corrupted(value) })
        .collect()
}
