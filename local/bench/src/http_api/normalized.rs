//! Replaces the parts of responses and items that differ each time, such as new ids and times, so that those of two
//! servers can be compared.

use std::collections::BTreeSet;

use billing::{AccountId, SubscriptionCode, SubscriptionId};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::checks::is_numbered;

/// The length of a ULID.
const ULID_CHARS: usize = 26;
const SECONDS_OF_DAY: i64 = 86_400;

/// The ids that exist before the first request. They are equal for all servers, so they are not replaced.
#[derive(Clone, Debug)]
pub struct KnownIds(pub BTreeSet<String>);

impl KnownIds {
    /// Replaces new ids, times, and the numbers of receipts that are correct, in the JSON body of a response.
    pub fn normalize(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.normalize_text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.normalize(item)).collect(),
            Value::Object(fields) => {
                let has_number = fields.contains_key("number") && is_numbered(&Value::Object(fields.clone()));
                let normalize = |(name, value): (String, Value)| match name.as_str() {
                    "number" if has_number => (name, "NUMBER".into()),
                    _ => (name, self.normalize(value)),
                };
                Value::Object(fields.into_iter().map(normalize).collect())
            }
            other => other,
        }
    }

    /// Replaces new ids, times, correct codes of subscriptions, and expiry times in an item of the table.
    pub fn normalize_item(&self, mut item: Map<String, Value>, now: DateTime<Utc>) -> Value {
        if has_correct_code(&item) {
            item.extend(["PK", "SK"].map(|name| (name.to_owned(), "CODE".into())));
        }
        let value = |name: &str, kind: &str| item.get(name).and_then(|value| value[kind].as_str()).map(str::to_owned);
        let (expires, answer) = (value("TTL", "N").and_then(|text| text.parse::<i64>().ok()), value("Answer", "S"));
        if let Some(expires) = expires {
            // The servers write their items within an hour, so the whole days that are left differ only at noon.
            let days = (expires - now.timestamp() + SECONDS_OF_DAY / 2).div_euclid(SECONDS_OF_DAY);
            item.insert("TTL".to_owned(), format!("{days} days").into());
        }
        if let Some(answer) = answer {
            // The order of fields in a stored response does not matter.
            let answer = serde_json::from_str(&answer).unwrap_or_default();
            item.insert("Answer".to_owned(), answer);
        }
        self.normalize(Value::Object(item))
    }

    /// Replaces a time, and the new ids in a text.
    fn normalize_text(&self, text: String) -> String {
        if DateTime::parse_from_rfc3339(&text).is_ok() {
            return "TIME".to_owned();
        }
        let is_id = |part: &str| part.len() == ULID_CHARS && part.parse::<SubscriptionId>().is_ok();
        let parts = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).map(|part| {
            let id = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_id(id) && !self.0.contains(id) { part.replace(id, "ID") } else { part.to_owned() }
        });
        parts.collect()
    }
}

/// Returns whether `item` has the key that the code of its subscription determines.
fn has_correct_code(item: &Map<String, Value>) -> bool {
    let text = |name: &str| item.get(name).and_then(|value| value["S"].as_str()).unwrap_or_default();
    let code = || {
        let account: AccountId = text("Account").parse().ok()?;
        Some(SubscriptionCode::compute(&account, text("Subscription").parse().ok()?))
    };
    code().is_some_and(|code| text("PK") == format!("CODE#{code}") && text("SK") == text("PK"))
}
