//! Replaces the values in responses and items that differ in each run, such as new ids and times, by placeholders. Then
//! the responses and items of two servers can be compared.

use std::collections::BTreeSet;

use billing::{AccountId, SubscriptionCode, SubscriptionId};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::checks::has_correct_number;

/// The length of a ULID, in characters.
const ULID_CHARS: usize = 26;
const SECONDS_OF_DAY: i64 = 86_400;

/// The ids that exist before the first request. These ids are equal for all servers, so they are not replaced.
#[derive(Clone, Debug)]
pub struct KnownIds(pub BTreeSet<String>);

impl KnownIds {
    /// Replaces new ids, times, and correct receipt numbers in the JSON body of a response by placeholders.
    pub fn normalize(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.normalize_text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.normalize(item)).collect(),
            Value::Object(fields) => {
                let has_number = fields.contains_key("number") && has_correct_number(&Value::Object(fields.clone()));
                let normalize = |(name, value): (String, Value)| match name.as_str() {
                    "number" if has_number => (name, "NUMBER".into()),
                    _ => (name, self.normalize(value)),
                };
                Value::Object(fields.into_iter().map(normalize).collect())
            }
            other => other,
        }
    }

    /// Replaces new ids, times, correct subscription codes, and expiry times in an item of the table by placeholders.
    /// `now` is the current time.
    pub fn normalize_item(&self, mut item: Map<String, Value>, now: DateTime<Utc>) -> Value {
        // DynamoDB gives each table another id.
        if item.contains_key("DynamodbId") {
            item.insert("DynamodbId".to_owned(), "ID OF THE TABLE".into());
        }
        if has_correct_code(&item) {
            item.extend(["PK", "SK"].map(|name| (name.to_owned(), "CODE".into())));
        }
        let value = |name: &str, kind: &str| item.get(name).and_then(|value| value[kind].as_str()).map(str::to_owned);
        let (expires, answer) = (value("TTL", "N").and_then(|text| text.parse::<i64>().ok()), value("Answer", "S"));
        if let Some(expires) = expires {
            // Rounds the time until the expiry to whole days. The servers write their items within an hour, so rounding
            // gives the same number of days for all servers, except around noon.
            let days = (expires - now.timestamp() + SECONDS_OF_DAY / 2).div_euclid(SECONDS_OF_DAY);
            item.insert("TTL".to_owned(), format!("{days} days").into());
        }
        if let Some(answer) = answer {
            // Parses the stored response, because the order of its fields may differ between the servers.
            let answer = serde_json::from_str(&answer).unwrap_or_default();
            item.insert("Answer".to_owned(), answer);
        }
        self.normalize(Value::Object(item))
    }

    /// Replaces `text` by a placeholder if it is a time, and otherwise replaces the new ids in `text`.
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

/// Returns whether the key of `item` contains the correct code of the subscription that `item` names.
fn has_correct_code(item: &Map<String, Value>) -> bool {
    let text = |name: &str| item.get(name).and_then(|value| value["S"].as_str()).unwrap_or_default();
    let code = || {
        let account: AccountId = text("Account").parse().ok()?;
        Some(SubscriptionCode::compute(&account, text("Subscription").parse().ok()?))
    };
    code().is_some_and(|code| text("PK") == format!("CODE#{code}") && text("SK") == text("PK"))
}

#[cfg(test)]
mod tests {
    use billing::ReceiptNumber;
    use serde_json::json;

    use super::*;

    /// An id that exists before the first request.
    const KNOWN_ID: &str = "01JZXCVBNM0123456789ABCDEF";
    /// An id that a server has created.
    const NEW_ID: &str = "01JNA80W00TQ2XNPH2HZ8S6CKN";

    fn known_ids() -> KnownIds {
        KnownIds(BTreeSet::from([KNOWN_ID.to_owned()]))
    }

    #[test]
    fn new_ids_and_times_are_replaced_and_all_other_values_stay() {
        let body =
            json!({ "id": NEW_ID, "account": KNOWN_ID, "at": "2026-01-31T06:00:00.123Z", "due_date": "2026-01-31" });
        let expected = json!({ "id": "ID", "account": KNOWN_ID, "at": "TIME", "due_date": "2026-01-31" });
        assert_eq!(known_ids().normalize(body), expected);
        assert_eq!(known_ids().normalize(json!([format!("2026-01-31.{NEW_ID}.gold")])), json!(["2026-01-31.ID.gold"]));
    }

    #[test]
    fn a_wrong_number_of_a_receipt_stays_different() {
        let number =
            ReceiptNumber::new(&"acme".parse().unwrap(), NEW_ID.parse().unwrap(), "2026-01-31".parse().unwrap());
        let receipt = |number: &str| json!({ "account": "acme", "subscription": NEW_ID, "due_date": "2026-01-31", "number": number });
        assert_eq!(known_ids().normalize(receipt(&number.to_string()))["number"], "NUMBER");
        assert_eq!(known_ids().normalize(receipt("202601-AAAAAA-AAAAAA"))["number"], "202601-AAAAAA-AAAAAA");
    }

    #[test]
    fn an_expiry_time_becomes_days_and_a_wrong_code_stays_different() {
        let (now, normalize) =
            (Utc::now(), |item: Value| known_ids().normalize_item(item.as_object().unwrap().clone(), Utc::now()));
        let expires = (now.timestamp() + 190 * SECONDS_OF_DAY).to_string();
        assert_eq!(normalize(json!({ "TTL": { "N": expires } }))["TTL"], "190 days");
        let code = SubscriptionCode::compute(&"acme".parse().unwrap(), NEW_ID.parse().unwrap()).to_string();
        let item = |code: &str| {
            let key = json!({ "S": format!("CODE#{code}") });
            json!({ "PK": key, "SK": key, "Account": { "S": "acme" }, "Subscription": { "S": NEW_ID } })
        };
        assert_eq!(normalize(item(&code))["PK"], "CODE");
        assert_eq!(normalize(item("AAAAAAAAAAAA"))["PK"]["S"], "CODE#AAAAAAAAAAAA");
    }
}
