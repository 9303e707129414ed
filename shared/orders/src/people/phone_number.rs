//! Phone numbers of recipients, which carriers call before a delivery.

use std::fmt;
use std::str::FromStr;

use billing::{NO_CARD_NUMBER, contains_card_number};
use serde::{Deserialize, Serialize};

/// The maximum number of characters of a phone number.
const MAX_CHARS: usize = 30;
/// The minimum number of digits of a phone number.
const MIN_DIGITS: usize = 4;
/// The maximum number of digits of a phone number (ITU-T E.164).
const MAX_DIGITS: usize = 15;
/// The characters that a phone number may contain in addition to digits.
const SEPARATORS: &str = " +-()./";

/// A phone number as people write it, such as `+44 113 496 0000`. Its `Debug` output hides the number, because phone
/// numbers must not be logged.
///
/// ```
/// use orders::PhoneNumber;
/// let phone: PhoneNumber = "+44 (0)113 496-0000".parse()?;
/// assert_eq!(phone.as_str(), "+44 (0)113 496-0000");
/// assert_eq!(format!("{phone:?}"), "PhoneNumber(..)");
/// # Ok::<(), orders::PhoneNumberError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PhoneNumber(String);

billing::openapi_schema!(
    PhoneNumber,
    "PhoneNumber",
    billing::openapi::build_pattern_schema(
        "A phone number: from 4 to 15 digits, and spaces, `+`, `-`, `(`, `)`, `.` and `/`. Not allowed: a space at the \
            start or end, and card numbers.",
        "^(?=([^0-9]*[0-9]){4,15}[^0-9]*$)[0-9+()./-]([0-9 +()./-]*[0-9+()./-])?$"
    )
    .min_length(Some(MIN_DIGITS))
    .max_length(Some(MAX_CHARS))
);

/// The reason why a phone number is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PhoneNumberError {
    #[error(
        "must be a phone number such as +44 113 496 0000: from {MIN_DIGITS} to {MAX_DIGITS} digits, and at most {MAX_CHARS} \
         characters; allowed are digits, spaces, + - ( ) . and /, but no space at the start or end"
    )]
    Format,
    #[error("{NO_CARD_NUMBER}; a phone number with its country code begins with +")]
    CardNumber,
}

impl PhoneNumber {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PhoneNumber {
    type Error = PhoneNumberError;

    fn try_from(text: String) -> Result<Self, PhoneNumberError> {
        let digits = text.chars().filter(char::is_ascii_digit).count();
        let is_allowed = |c: char| c.is_ascii_digit() || SEPARATORS.contains(c);
        if !(MIN_DIGITS..=MAX_DIGITS).contains(&digits)
            || text.len() > MAX_CHARS
            || text.trim() != text
            || !text.chars().all(is_allowed)
        {
            return Err(PhoneNumberError::Format);
        }
        // Some international numbers have the digits of a card number with 13 to 15 digits by chance. A card number never
        // begins with `+`.
        if !text.starts_with('+') && contains_card_number(&text) {
            return Err(PhoneNumberError::CardNumber);
        }
        Ok(Self(text))
    }
}

impl FromStr for PhoneNumber {
    type Err = PhoneNumberError;

    fn from_str(text: &str) -> Result<Self, PhoneNumberError> {
        text.to_owned().try_into()
    }
}

impl From<PhoneNumber> for String {
    fn from(phone: PhoneNumber) -> String {
        phone.0
    }
}

impl fmt::Debug for PhoneNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PhoneNumber(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phone_number_has_4_to_15_digits_and_usual_separators() {
        for text in ["1234", "+44 113 496 0000", "(0113) 496-0000", "030/123.45.67", "+123456789012345"] {
            assert_eq!(text.parse::<PhoneNumber>().map(String::from), Ok(text.to_owned()));
        }
        for text in [
            "",
            "123",
            "+1234567890123456",
            " 01134960000",
            "01134960000 ",
            "0113\n4960000",
            "0113\t4960000",
            "0113 4960000 ext. 7",
            "٠١١٣٤٩٦",
            "0113 4960000\u{200b}",
            "1 2 3 4 5 6 7 8 9 0 1 2 3 4 -- 5",
        ] {
            assert_eq!(text.parse::<PhoneNumber>(), Err(PhoneNumberError::Format), "{text:?}");
        }
    }

    #[test]
    fn phone_number_is_not_a_card_number() {
        for text in ["378282246310005", "3782 822463 10005"] {
            assert_eq!(text.parse::<PhoneNumber>(), Err(PhoneNumberError::CardNumber), "{text}");
        }
        // The digits of this German number have the check digit of a card number.
        let text = "+49 151 12345678";
        assert!(contains_card_number(&text[1..]) && text.parse::<PhoneNumber>().is_ok());
    }
}
