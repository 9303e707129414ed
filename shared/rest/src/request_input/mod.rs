//! Reads the input of a request into typed values. An error contains the name of the invalid field, and a text that
//! callers of the API understand.
//!
//! serde's own messages name Rust types (`expected i64`), so this module has its own text for each kind of error. If a
//! domain type rejects a value, the error contains the text of the domain type.

mod invalid;
mod read;

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

pub use invalid::InvalidInput;

/// A value from a request that is not validated yet.
#[derive(Clone, PartialEq, Debug)]
pub enum RequestInput {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<RequestInput>),
    /// The fields in the order of the request. A name may occur twice.
    Object(Vec<(String, RequestInput)>),
}

impl RequestInput {
    /// Parses `bytes` as JSON.
    ///
    /// # Errors
    /// [`InvalidInput`] if `bytes` are not JSON.
    pub fn parse_json(bytes: &[u8]) -> Result<Self, InvalidInput> {
        serde_json::from_slice(bytes).map_err(|error| match error.is_eof() {
            true => InvalidInput::custom("is not JSON: it ends before it is complete"),
            false => InvalidInput::custom(format_args!(
                "is not JSON: error at character {} of line {}",
                error.column(),
                error.line()
            )),
        })
    }

    /// Creates an object whose values are texts: the parameters of a query or of a path.
    pub fn from_text_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        RequestInput::Object(pairs.into_iter().map(|(name, text)| (name, RequestInput::Text(text))).collect())
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// [`InvalidInput`] if the value, or a field in it, is not valid for `T`.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, InvalidInput> {
        T::deserialize(self)
    }

    /// Returns the description of this value for an error text: a number as its digits, but a text, list or object only
    /// as its kind.
    fn description(&self) -> String {
        match self {
            RequestInput::Null => "null".to_owned(),
            RequestInput::Bool(value) => value.to_string(),
            RequestInput::Number(number) => number.to_string(),
            RequestInput::Text(_) => "text".to_owned(),
            RequestInput::List(_) => "a list".to_owned(),
            RequestInput::Object(_) => "an object".to_owned(),
        }
    }

    /// Returns the error for this value if it does not have the `expected` type, such as `a whole number`.
    fn wrong_type_error(&self, expected: &str) -> InvalidInput {
        InvalidInput::custom(format_args!("must be {expected}, not {}", self.description()))
    }
}

impl<'de> Deserialize<'de> for RequestInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InputVisitor;

        impl<'de> Visitor<'de> for InputVisitor {
            type Value = RequestInput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<RequestInput, E> {
                Ok(RequestInput::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<RequestInput, E> {
                Ok(RequestInput::Bool(value))
            }

            fn visit_i64<E>(self, number: i64) -> Result<RequestInput, E> {
                Ok(RequestInput::Number(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<RequestInput, E> {
                Ok(RequestInput::Number(number.into()))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<RequestInput, E> {
                Number::from_f64(number).map(RequestInput::Number).ok_or_else(|| E::custom("is not a number"))
            }

            fn visit_str<E>(self, text: &str) -> Result<RequestInput, E> {
                Ok(RequestInput::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RequestInput, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(RequestInput::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RequestInput, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RequestInput::Object(fields))
            }
        }

        deserializer.deserialize_any(InputVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "the tests read only the errors")]
    struct SampleOrder {
        sku: String,
        amount: i64,
        day: u8,
        #[serde(default)]
        express: bool,
        kind: Option<SampleOrderKind>,
        to: Option<SampleAddress>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum SampleOrderKind {
        Gift,
        Own,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "the tests read only the errors")]
    struct SampleAddress {
        city: String,
    }

    /// Returns the text of the error when `json` is read as a [`SampleOrder`].
    fn input_error_text(json: &str) -> String {
        RequestInput::parse_json(json.as_bytes()).and_then(RequestInput::read::<SampleOrder>).unwrap_err().to_string()
    }

    #[test]
    fn read_error_names_the_field_and_the_allowed_values() {
        let error_with = |fields: &str| input_error_text(&format!(r#"{{"sku":"a","amount":1,"day":1,{fields}}}"#));
        for (fields, expected) in [
            (r#""kind":"loan""#, "kind must be gift or own"),
            (r#""kind":7"#, "kind must be text, not 7"),
            (r#""express":"yes""#, "express must be true or false, not text"),
            (r#""to":"Graz""#, "to must be an object, not text"),
            (r#""to":["Graz"]"#, "to must be an object, not a list"),
            (r#""to":{}"#, "to.city is required"),
            (r#""to":{"city":null}"#, "to.city must be text, not null"),
            (r#""sku":"b""#, "sku must not be repeated"),
            (r#""price":1"#, "price is unknown; allowed names: sku, amount, day, express, kind and to"),
        ] {
            assert_eq!(error_with(fields), expected, "{fields}");
        }
        for (amount, expected) in [
            ("12.99", "amount must be a whole number, not 12.99"),
            ("1299.0", "amount must be a whole number, not 1299.0"),
            (r#""1299""#, "amount must be a whole number, not text"),
            ("null", "amount must be a whole number, not null"),
            ("[1]", "amount must be a whole number, not a list"),
            ("99999999999999999999", "amount must be a whole number of at most 18 digits"),
            ("-1e30", "amount must be a whole number of at most 18 digits"),
        ] {
            assert_eq!(input_error_text(&format!(r#"{{"sku":"a","amount":{amount}}}"#)), expected, "{amount}");
        }
        assert_eq!(input_error_text(r#"{"sku":"a","amount":1,"day":256}"#), "day is too large or too small a number");
        assert_eq!(input_error_text(r#"{"sku":"a","amount":1}"#), "day is required");
        assert_eq!(input_error_text("[]"), "must be an object, not a list");
        assert_eq!(input_error_text("7"), "must be an object, not 7");
        assert!(
            input_error_text(&format!(r#"{{"{}":1}}"#, "x".repeat(70_000))).len() < 150,
            "a long field name is shortened"
        );
    }

    #[test]
    fn json_error_names_the_line_and_the_character() {
        for (text, expected) in [
            ("", "is not JSON: it ends before it is complete"),
            (r#"{"a":"#, "is not JSON: it ends before it is complete"),
            ("nonsense", "is not JSON: error at character 2 of line 1"),
            ("{\n\"a\": 1,}", "is not JSON: error at character 8 of line 2"),
            ("{} x", "is not JSON: error at character 4 of line 1"),
        ] {
            assert_eq!(RequestInput::parse_json(text.as_bytes()).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(
            RequestInput::parse_json(&b"[".repeat(100_000)).is_err() && RequestInput::parse_json(b"\"\xff\"").is_err()
        );
    }
}
