//! Explains why an item cannot be read. The explanation contains the name of the wrong attribute, and its required type
//! or format.

use serde_path_to_error::Error;

/// Returns the part of the error message with the name of the wrong attribute and its required type or format. This
/// text does not contain the attribute's value, which may be confidential.
pub fn reason_unreadable(error: &Error<serde_dynamo::Error>) -> String {
    let (path, text) = (error.path().to_string(), error.inner().to_string());
    if let Some(missing) = text.strip_prefix("missing field ") {
        return format!("its attribute {} is missing", missing.trim_matches('`'));
    }
    let requirement = match text.as_str() {
        "Expected num" => "must be a number (N)".to_owned(),
        "Expected string" => "must be a string (S)".to_owned(),
        "Expected bool" => "must be true or false (BOOL)".to_owned(),
        "Expected map" => "must be a map (M)".to_owned(),
        "Expected seq" => "must be a list (L)".to_owned(),
        text if text.starts_with("must ") => text.to_owned(),
        text if text.starts_with("Failed to parse") => "must be a whole number".to_owned(),
        text => match text.split_once(", expected ") {
            Some((_, expected)) => format!("must be {}", expected.replace('`', "")),
            // All other errors come from the library for dates and times.
            None => "must be a valid date or time, such as 2027-01-31".to_owned(),
        },
    };
    format!("its attribute {path} {requirement}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aws_sdk_dynamodb::types::AttributeValue;
    use chrono::NaiveDate;
    use serde::Deserialize;

    use super::super::from_item;
    use billing::{Currency, SubscriptionStatus};

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    #[allow(dead_code)]
    struct SampleItem {
        amount: i64,
        due_date: NaiveDate,
        status: SubscriptionStatus,
        currency: Currency,
    }

    #[test]
    fn from_item_error_names_the_attribute_and_its_required_type() {
        let (n, s) = (|text: &str| AttributeValue::N(text.to_owned()), |text: &str| AttributeValue::S(text.to_owned()));
        // The columns are: the attribute, its wrong value (`None` if the attribute is missing), and a part of the
        // expected message.
        for (name, value, expected) in [
            ("Amount", Some(s("lots")), "its attribute Amount must be a number (N)"),
            ("Amount", Some(n("12.99")), "its attribute Amount must be a whole number"),
            ("Amount", None, "its attribute Amount is missing"),
            ("DueDate", Some(s("2026-02-30")), "its attribute DueDate must be a valid date or time"),
            ("DueDate", Some(n("1")), "its attribute DueDate must be a string (S)"),
            ("Status", Some(s("asleep")), "its attribute Status must be one of active, past_due"),
            ("Currency", Some(s("euros")), "its attribute Currency must be"),
        ] {
            let mut item = HashMap::from([
                ("PK".to_owned(), s("ACC#acme")),
                ("SK".to_owned(), s("SUB#1")),
                ("Amount".to_owned(), n("1299")),
                ("DueDate".to_owned(), s("2026-03-31")),
                ("Status".to_owned(), s("active")),
                ("Currency".to_owned(), s("EUR")),
            ]);
            assert!(from_item::<SampleItem>(&item).is_ok());
            item.remove(name);
            item.extend(value.map(|value| (name.to_owned(), value)));
            let message = from_item::<SampleItem>(&item).unwrap_err().to_string();
            assert!(message.starts_with("the item ACC#acme SUB#1 cannot be read: "), "{message}");
            assert!(message.contains(expected), "{name}: {message}");
        }
    }
}
