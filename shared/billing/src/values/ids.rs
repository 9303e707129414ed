//! The types of identifiers. An identifier that is part of a table key cannot contain `#`, which separates the parts of
//! a key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ulid::Ulid;

use crate::values::character_checks::{changes_text_direction, is_control_character};

/// The maximum number of characters of an identifier that the merchant chooses.
pub const MAX_ID_CHARS: usize = 64;
/// The maximum number of characters of the identifier that a subscription had in the merchant's earlier system.
pub const MAX_EXTERNAL_ID_CHARS: usize = 255;
/// The maximum number of characters of a gateway token.
pub const MAX_GATEWAY_TOKEN_CHARS: usize = 255;

/// Declares the type `$name` of texts that the function `$check` accepts. The calling module must import `fmt`,
/// `FromStr`, the derive macros of serde and [`IdError`].
#[macro_export]
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                $check(text.as_str()).map(|()| Self(text))
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// Declares the type of an identifier that the merchant chooses: a text that passes [`check_id`].
#[macro_export]
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $crate::checked_text!($(#[$doc])* $name, $crate::check_id);
        $crate::openapi_schema!($name, "Id", $crate::openapi::build_id_schema());
    };
}

/// Returns whether `text` has 1 to `max` characters, which are all letters, digits, `.`, `_` or `-` in ASCII.
fn has_allowed_characters(text: &str, max: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=max).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Checks an identifier that the merchant chooses. The identifier must start with a letter or a digit, because
/// identifiers are used in URL paths, file names and command lines, where a leading `.` or `-` has a special meaning.
pub fn check_id(text: &str) -> Result<(), IdError> {
    let starts_with_alphanumeric = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if has_allowed_characters(text, MAX_ID_CHARS) && starts_with_alphanumeric { Ok(()) } else { Err(IdError::Text) }
}

/// Checks a gateway token: its length and its characters. Some gateways use tokens that look like card numbers on purpose,
/// so a token is not checked for card numbers.
fn check_gateway_token(text: &str) -> Result<(), IdError> {
    if has_allowed_characters(text, MAX_GATEWAY_TOKEN_CHARS) { Ok(()) } else { Err(IdError::Token) }
}

crate::identifier!(
    /// The identifier of an account, chosen by the merchant: 1 to 64 letters, digits, `.`, `_` or `-`. The first
    /// character is a letter or a digit.
    AccountId
);
crate::identifier!(
    /// The identifier of a product, chosen by the merchant. It has the same form as an [`AccountId`].
    Sku
);
checked_text!(
    /// A token with which the payment gateway identifies an object, such as a customer, a payment method or a payment:
    /// 1 to 255 letters, digits, `.`, `_` or `-`. A token may look like a card number.
    GatewayToken,
    check_gateway_token
);

impl GatewayToken {
    /// Returns `...` and the last four characters of the token, for people who must recognize the token but must not
    /// use it. Returns only `...` for a token of less than 12 characters.
    ///
    /// ```
    /// use billing::GatewayToken;
    ///
    /// let masked = |text: &str| text.parse::<GatewayToken>().map(|token| token.masked().to_string());
    /// assert_eq!(masked("pm_1QhWcLkdIwHu7ixT").as_deref(), Ok("...7ixT"));
    /// assert_eq!(masked("pm_1").as_deref(), Ok("..."));
    /// ```
    #[must_use]
    pub fn masked(&self) -> Self {
        let end = self.0.len().checked_sub(4).filter(|_| self.0.len() >= 12).and_then(|from| self.0.get(from..));
        Self(format!("...{}", end.unwrap_or_default()))
    }
}

crate::openapi_schema!(
    GatewayToken,
    "GatewayToken",
    crate::openapi::build_pattern_schema(
        "A token of the payment gateway, which identifies a customer, a payment method or a payment, for example.",
        "^[A-Za-z0-9._-]{1,255}$"
    )
    .min_length(Some(1))
    .max_length(Some(255))
);

/// The identifier of a subscription in the merchant's earlier system: 1 to 255 characters, without control characters,
/// and without white space at the start or end.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExternalId(String);
crate::openapi_schema!(ExternalId, "ExternalId", crate::openapi::build_external_id_schema());

impl ExternalId {
    /// Returns the identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the identifier of the subscription that an import creates for `account` with this external identifier.
    /// The result is always the same for the same account and external identifier, so a repeated import finds the
    /// subscription.
    ///
    /// ```
    /// use billing::{AccountId, ExternalId};
    /// let (acme, order): (AccountId, ExternalId) = ("acme".parse()?, "order 4711".parse()?);
    /// assert_eq!(order.subscription_id(&acme).to_string(), "0000000000193P2Q7174098SXD");
    /// # Ok::<(), billing::IdError>(())
    /// ```
    pub fn subscription_id(&self, account: &AccountId) -> SubscriptionId {
        let digest = Sha256::digest(format!("{account}\n{}", self.0));
        let random = digest.iter().take(10).fold(0u128, |bits, byte| (bits << 8) | u128::from(*byte));
        // The time in the ULID is zero, because the start of the subscription in the earlier system is unknown.
        SubscriptionId(Ulid::from_parts(0, random))
    }
}

impl TryFrom<String> for ExternalId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<ExternalId> for String {
    fn from(id: ExternalId) -> String {
        id.0
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ExternalId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = (1..=MAX_EXTERNAL_ID_CHARS).contains(&text.chars().count());
        let is_refused = |c: char| is_control_character(c) || changes_text_direction(c);
        if !fits || text.trim() != text || text.chars().any(is_refused) {
            return Err(IdError::ExternalId);
        }
        Ok(Self(text.to_owned()))
    }
}

/// The identifier of a subscription, a ULID that this system generates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubscriptionId(Ulid);
crate::openapi_schema!(
    SubscriptionId,
    "SubscriptionId",
    crate::openapi::build_ulid_schema("The id of a subscription, a ULID.")
);

impl SubscriptionId {
    /// Creates the identifier from `ulid`.
    pub fn new(ulid: Ulid) -> Self {
        Self(ulid)
    }
}

impl TryFrom<String> for SubscriptionId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl FromStr for SubscriptionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // The ULID parser also accepts small letters, and letters that look like digits. Only the canonical spelling is
        // valid here.
        match Ulid::from_string(text) {
            Ok(ulid) if ulid.to_string() == text => Ok(Self(ulid)),
            _ => Err(IdError::Ulid),
        }
    }
}

impl From<SubscriptionId> for String {
    fn from(id: SubscriptionId) -> String {
        id.to_string()
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reason why an identifier is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must be 1 to {MAX_ID_CHARS} letters, digits, '.', '_' or '-', and must begin with a letter or a digit")]
    Text,
    #[error("must be 1 to {MAX_GATEWAY_TOKEN_CHARS} letters, digits, '.', '_' or '-'")]
    Token,
    #[error(
        "must be 1 to {MAX_EXTERNAL_ID_CHARS} characters without control characters, line breaks, characters that change the \
         direction of the text, or space at the start or end"
    )]
    ExternalId,
    #[error("must be the id of a receipt, such as 2026-03-31.01JZXCVBNM0123456789ABCDEF.gold")]
    Receipt,
    #[error("must be the number of a receipt, such as 202603-7KQ29M-4T3XWA")]
    ReceiptNumber,
    #[error(
        "must be the number of a receipt, such as 202603-7KQ29M-4T3XWA, or its id, such as \
         2026-03-31.01JZXCVBNM0123456789ABCDEF.gold"
    )]
    ReceiptReference,
    #[error("must be a ULID: 26 digits and capital letters, such as 01JZXCVBNM0123456789ABCDEF")]
    Ulid,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_id_and_sku_with_other_characters_are_refused() {
        for text in
            ["", "a#b", "a b", "é", "a/b", "a\n", ".", "..", "../x", "-rf", "--help", "_x", ".env", &"x".repeat(65)]
        {
            assert_eq!(text.parse::<AccountId>(), Err(IdError::Text), "{text:?}");
            assert_eq!(text.parse::<Sku>(), Err(IdError::Text), "{text:?}");
        }
        assert!("a.B_9-".parse::<Sku>().is_ok() && "x".repeat(64).parse::<AccountId>().is_ok());
        assert!("9..".parse::<AccountId>().is_ok() && "_tok-".parse::<GatewayToken>().is_ok());
    }

    #[test]
    fn ids_and_tokens_may_look_like_card_numbers() {
        for text in ["4242424242424242", "4242-4242-4242-4242", "8313147988756817"] {
            assert!(text.parse::<GatewayToken>().is_ok(), "{text}");
            assert!(text.parse::<ExternalId>().is_ok(), "{text}");
            assert!(text.parse::<AccountId>().is_ok(), "{text}");
        }
    }

    #[test]
    fn external_id_with_invisible_or_deceptive_characters_is_refused() {
        for text in ["", " x", "x\t1", "a\u{2028}b", "a\u{202e}b", &"x".repeat(256)] {
            assert_eq!(text.parse::<ExternalId>(), Err(IdError::ExternalId), "{text:?}");
        }
        assert!("Bestellung 4711/ä".parse::<ExternalId>().is_ok());
    }

    #[test]
    fn subscription_id_in_another_spelling_is_refused() {
        let id = "01JZXCVBNM0123456789ABCDEF";
        assert_eq!(id.parse::<SubscriptionId>().unwrap().to_string(), id);
        for text in ["", &id.to_lowercase(), "01JZXCVBNM0123456789ABCDEFG", "01JZXCVBNMO123456789ABCDEF"] {
            assert_eq!(text.parse::<SubscriptionId>(), Err(IdError::Ulid), "{text}");
        }
    }
}
