use std::fmt;

use serde::de::{Error, Expected, Unexpected};

/// A name that nobody knows is repeated up to this many characters.
const MAX_SHOWN_CHARS: usize = 64;

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// The names that lead to the value, outermost last; none if it is the whole.
    path: Vec<String>,
    /// What is wrong with it, and what is allowed.
    pub detail: String,
}

impl Invalid {
    /// The field it is about, such as `payment_method.customer`; `None` if it is the whole.
    pub fn field(&self) -> Option<String> {
        let names: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join("."))
    }

    pub(super) fn within(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field() {
            Some(field) => write!(f, "{field} {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for Invalid {}

/// The one place that words serde's kinds of errors.
impl Error for Invalid {
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
            _ => Self::custom("is not one of the values that are allowed"),
        }
    }

    fn invalid_length(length: usize, _: &dyn Expected) -> Self {
        Self::custom(format_args!("must not have {length} parts"))
    }

    fn unknown_variant(_: &str, allowed: &'static [&'static str]) -> Self {
        Self::custom(format_args!("must be {}", listed(allowed, "or")))
    }

    fn unknown_field(name: &str, allowed: &'static [&'static str]) -> Self {
        let takes = if allowed.is_empty() { "none".to_owned() } else { listed(allowed, "and") };
        Self::custom(format_args!("is not known; this takes {takes}")).within(&shortened(name))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom("is required").within(name)
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::custom("must be given once").within(name)
    }
}

fn listed(names: &[&str], last: &str) -> String {
    match names {
        [all @ .., end] if !all.is_empty() => format!("{} {last} {end}", all.join(", ")),
        names => names.concat(),
    }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
