//! Contact data: e-mail address, locale, and labels (the names that appear in mails).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::values::card_number::{NO_CARD_NUMBER, contains_card_number};
use crate::values::character_checks::{changes_text_direction, is_control_character, is_invisible_character};

/// The maximum length of an e-mail address (RFC 5321, section 4.5.3.1.3: a path has at most 256 characters with its
/// brackets).
pub const MAX_ADDRESS_CHARS: usize = 254;
/// The maximum number of characters of a label.
pub const MAX_LABEL_CHARS: usize = 200;
/// The start of an encoded word in a mail header (RFC 2047). It is forbidden in addresses and labels: a mail program
/// would decode the encoded word, and show a text that was not checked.
const ENCODED_WORD: &str = "=?";

/// An e-mail address (RFC 5321). Its `Debug` output hides the address, because addresses must not be logged.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(description = "An e-mail address.", format = Email, max_length = 254))]
pub struct EmailAddress(String);

/// A BCP 47 language tag such as `en` or `de-AT`: the language of a customer's mails.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "A language tag such as `en` or `de-AT`.",
        max_length = 35,
        pattern = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"
    )
)]
pub struct Locale(String);

/// The name of a person or a product as it appears in mails: 1 to 200 characters, at least one of them visible. Not
/// allowed: control characters, white space at the start or end, characters that change the direction of the text,
/// `=?`, and card numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Label(String);
crate::openapi_schema!(Label, "Label", crate::openapi::build_label_schema());

impl TryFrom<String> for EmailAddress {
    type Error = ContactError;

    fn try_from(text: String) -> Result<Self, ContactError> {
        if text.len() > MAX_ADDRESS_CHARS || text.chars().any(is_invisible_character) {
            return Err(ContactError::EmailAddress);
        }
        if text.contains(ENCODED_WORD) {
            return Err(ContactError::EncodedWord);
        }
        if contains_card_number(&text) {
            return Err(ContactError::CardNumber);
        }
        let options = email_address::Options::default().without_display_text().without_domain_literal();
        match email_address::EmailAddress::parse_with_options(&text, options) {
            Ok(address) if address.domain().contains('.') && !address.local_part().starts_with('"') => Ok(Self(text)),
            _ => Err(ContactError::EmailAddress),
        }
    }
}

impl TryFrom<String> for Locale {
    type Error = ContactError;

    fn try_from(text: String) -> Result<Self, ContactError> {
        let mut subtags = text.split('-');
        let language =
            subtags.next().is_some_and(|s| matches!(s.len(), 2..=3) && s.bytes().all(|b| b.is_ascii_alphabetic()));
        let rest = subtags.all(|s| matches!(s.len(), 2..=8) && s.bytes().all(|b| b.is_ascii_alphanumeric()));
        if !language || !rest || text.len() > 35 {
            return Err(ContactError::Locale);
        }
        if contains_card_number(&text) { Err(ContactError::CardNumber) } else { Ok(Self(text)) }
    }
}

impl Default for Locale {
    fn default() -> Self {
        Self("en".to_owned())
    }
}

impl TryFrom<String> for Label {
    type Error = ContactError;

    fn try_from(text: String) -> Result<Self, ContactError> {
        let fits = (1..=MAX_LABEL_CHARS).contains(&text.chars().count());
        if !fits || text.trim() != text || text.chars().any(is_control_character) {
            return Err(ContactError::Label);
        }
        if text.chars().any(changes_text_direction) {
            return Err(ContactError::Direction);
        }
        if text.chars().all(is_invisible_character) {
            return Err(ContactError::Invisible);
        }
        if text.contains(ENCODED_WORD) {
            return Err(ContactError::EncodedWord);
        }
        if contains_card_number(&text) { Err(ContactError::CardNumber) } else { Ok(Self(text)) }
    }
}

/// Implements the conversions from and to text for a type that wraps a checked `String`.
macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ContactError;

            fn from_str(text: &str) -> Result<Self, ContactError> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0
            }
        }
    };
}

text!(EmailAddress);
text!(Locale);
text!(Label);

impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmailAddress(..)")
    }
}

/// The reason why an address, locale or label is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContactError {
    #[error("must be an e-mail address like name@example.com, at most {MAX_ADDRESS_CHARS} characters")]
    EmailAddress,
    #[error("must be a language tag like en or de-AT")]
    Locale,
    #[error(
        "must be 1 to {MAX_LABEL_CHARS} characters without control characters, line breaks, or space at the start or end"
    )]
    Label,
    #[error(
        "must not contain characters that change the direction of the text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to \
         U+2069); letters that are written from right to left are allowed"
    )]
    Direction,
    #[error("must contain a visible character, not only white space and characters without width")]
    Invisible,
    #[error("must not contain \"=?\", the start of an encoded word in a mail; write the characters unencoded")]
    EncodedWord,
    #[error("{NO_CARD_NUMBER}")]
    CardNumber,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_email_addresses_locales_and_labels_are_refused() {
        for text in [
            "",
            "a",
            "a@b",
            "a b@example.com",
            "A <a@example.com>",
            "a@[127.0.0.1]",
            "a@example.com\r\nBcc: x@example.com",
            "4242424242424242@example.com",
            "a\u{202e}b@example.com",
            "a\u{200b}@example.com",
            "=?utf-8?q?a?=@example.com",
            &format!("a@{}.example.com", ["x".repeat(60), "x".repeat(60), "x".repeat(60), "x".repeat(60)].join(".")),
        ] {
            assert!(text.parse::<EmailAddress>().is_err(), "{text:?}");
        }
        assert!("name+tag@mail.example.com".parse::<EmailAddress>().is_ok());
        for text in ["", "e", "english", "de_AT", "de-", "12", "en-4242-4242-4242-4242"] {
            assert!(text.parse::<Locale>().is_err(), "{text:?}");
        }
        assert!("zh-Hant-TW".parse::<Locale>().is_ok());
        for text in ["", " x", "x\n", &"x".repeat(201), "Visa 4242 4242 4242 4242"] {
            assert!(text.parse::<Label>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn label_with_deceptive_characters_is_refused() {
        for (text, error) in [
            ("Gold\u{2028}plan", ContactError::Label),
            ("Gold\u{202e}nalp", ContactError::Direction),
            ("Gold\u{2066}plan\u{2069}", ContactError::Direction),
            ("Gold\u{200f}plan", ContactError::Direction),
            ("\u{61c}Gold", ContactError::Direction),
            ("\u{200b}", ContactError::Invisible),
            ("\u{3164}\u{115f} \u{2800}", ContactError::Invisible),
            ("\u{feff}\u{2060}", ContactError::Invisible),
            ("=?utf-8?q?Gold?=", ContactError::EncodedWord),
            ("Visa ４２４２４２４２４２４２４２４２", ContactError::CardNumber),
            ("٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢", ContactError::CardNumber),
        ] {
            assert_eq!(text.parse::<Label>(), Err(error), "{text:?}");
        }
        for text in ["חשבון זהב", "ذهب ١٢", "گل\u{200c}ها", "👩\u{200d}🔧 Repairs", "a=b?", "Gold (12 €)"]
        {
            assert!(text.parse::<Label>().is_ok(), "{text:?}");
        }
    }

    #[test]
    fn email_address_with_a_card_number_in_any_script_is_refused() {
        for text in ["४२४२४२४२४२४२४२४२@example.com", "x.４２４２４２４２４２４２４２４２@example.com"]
        {
            assert_eq!(text.parse::<EmailAddress>(), Err(ContactError::CardNumber), "{text}");
        }
    }

    #[test]
    fn debug_output_hides_the_email_address() {
        let address: EmailAddress = "name@example.com".parse().unwrap();
        assert_eq!(format!("{address:?}"), "EmailAddress(..)");
    }
}
