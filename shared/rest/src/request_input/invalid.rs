//! [`InvalidInput`]: the error for an invalid value in a request.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

/// The largest number of characters of an unknown field name that an error message repeats.
const MAX_SHOWN_CHARS: usize = 64;

/// The error for an invalid value in a request: the field, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidInput {
    /// The name of the invalid field, followed by the names of the objects that contain the field, the outermost object
    /// last. Empty if the whole input is invalid.
    path: Vec<String>,
    /// The reason, and the allowed values.
    pub detail: String,
}

impl InvalidInput {
    /// Returns the path of the invalid field, such as `payment_method.customer`; `None` if the whole input is invalid.
    pub fn field(&self) -> Option<String> {
        let names: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join("."))
    }

    /// Adds `name`, the field that contains the invalid value, to the path.
    pub(super) fn in_field(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }
}

impl fmt::Display for InvalidInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field() {
            Some(field) => write!(f, "{field} {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for InvalidInput {}

/// Maps each kind of serde error to a text that callers of the API understand.
impl Error for InvalidInput {
    fn custom<T: fmt::Display>(detail: T) -> Self {
        Self { path: Vec::new(), detail: detail.to_string() }
    }

    fn invalid_type(unexpected: Unexpected, _: &dyn Expected) -> Self {
        let kind = match unexpected {
            Unexpected::Unit | Unexpected::Option => "null",
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Seq => "a list",
            Unexpected::Map => "an object",
            _ => "text",
        };
        Self::custom(format_args!("must not be {kind}"))
    }

    fn invalid_value(unexpected: Unexpected, _: &dyn Expected) -> Self {
        match unexpected {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => Self::custom("is too large or too small a number"),
            _ => Self::custom("is not one of the allowed values"),
        }
    }

    fn invalid_length(length: usize, _: &dyn Expected) -> Self {
        Self::custom(format_args!("must not have {length} items"))
    }

    fn unknown_variant(_: &str, allowed: &'static [&'static str]) -> Self {
        Self::custom(format_args!("must be {}", join_names(allowed, "or")))
    }

    fn unknown_field(name: &str, allowed: &'static [&'static str]) -> Self {
        let allowed = if allowed.is_empty() { "none".to_owned() } else { join_names(allowed, "and") };
        Self::custom(format_args!("is unknown; allowed names: {allowed}")).in_field(&shorten_name(name))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom("is required").in_field(name)
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::custom("must not be repeated").in_field(name)
    }
}

/// Joins `names` with commas, and with `conjunction` before the last.
fn join_names(names: &[&str], conjunction: &str) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} {conjunction} {last}", all.join(", ")),
        names => names.concat(),
    }
}

/// Cuts `name` after [`MAX_SHOWN_CHARS`] characters.
fn shorten_name(name: &str) -> String {
    match name.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
