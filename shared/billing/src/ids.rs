//! Typed identifiers. The character that separates the parts of a table key cannot occur in any of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::card_number::{NO_CARD_NUMBER, contains_card_number, token_contains_card_number};
use super::characters::{changes_direction, is_control};

/// Identifiers are at most this many characters.
pub const MAX_ID_CHARS: usize = 64;
/// Identifiers of an earlier system are at most this many characters.
pub const MAX_EXTERNAL_ID_CHARS: usize = 255;
/// Gateway tokens are at most this many characters.
pub const MAX_TOKEN_CHARS: usize = 255;

/// A text that `$check` allows, as a type of its own. Whoever uses it imports `fmt`, `FromStr`, serde's derives and
/// [`IdError`].
#[macro_export]
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as text.
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

/// A merchant's own identifier, as a type of its own: a text that [`check_id`] allows.
#[macro_export]
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $crate::checked_text!($(#[$doc])* $name, $crate::check_id);
        $crate::openapi_schema!($name, "Id", $crate::openapi::id());
    };
}

fn is_text(text: &str, max: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=max).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// A merchant's identifier stands in paths, file names and command lines: it begins with neither `.` nor `-`.
pub fn check_id(text: &str) -> Result<(), IdError> {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_text(text, MAX_ID_CHARS) && begins_well { Ok(()) } else { Err(IdError::Text) }
}

fn check_token(text: &str) -> Result<(), IdError> {
    match is_text(text, MAX_TOKEN_CHARS) {
        false => Err(IdError::Token),
        true if token_contains_card_number(text) => Err(IdError::CardNumber),
        true => Ok(()),
    }
}

crate::identifier!(
    /// The merchant's own identifier of an account: 1 to 64 of letters, digits, `.`, `_`, `-`, first a letter or a digit.
    AccountId
);
crate::identifier!(
    /// The merchant's own identifier of a product, written as an account's.
    Sku
);
checked_text!(
    /// A payment processor's token of a customer or a payment method, never a card number: 1 to 255 of letters, digits,
    /// `.`, `_`, `-`.
    GatewayToken,
    check_token
);
crate::openapi_schema!(
    GatewayToken,
    "GatewayToken",
    crate::openapi::pattern("A token that the payment gateway gave.", "^[A-Za-z0-9._-]{1,255}$")
        .min_length(Some(1))
        .max_length(Some(255))
);

/// What the merchant's earlier system calls a subscription: 1 to 255 characters, no control characters, no space at its
/// ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExternalId(String);

impl ExternalId {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The identifier of the subscription of `account` that is imported under this one: always the same, so that
    /// importing it again finds it.
    ///
    /// ```
    /// use billing::{AccountId, ExternalId};
    /// let (acme, order): (AccountId, ExternalId) = ("acme".parse()?, "order 4711".parse()?);
    /// assert_eq!(order.subscription_of(&acme).to_string(), "0000000000193P2Q7174098SXD");
    /// # Ok::<(), billing::IdError>(())
    /// ```
    pub fn subscription_of(&self, account: &AccountId) -> SubscriptionId {
        let digest = Sha256::digest(format!("{account}\n{}", self.0));
        let random = digest.iter().take(10).fold(0u128, |bits, byte| (bits << 8) | u128::from(*byte));
        // Eighty bits of randomness, and no time: nothing is known of when it began elsewhere.
        SubscriptionId(Ulid::from_parts(0, random))
    }
}

impl FromStr for ExternalId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = (1..=MAX_EXTERNAL_ID_CHARS).contains(&text.chars().count());
        let is_refused = |c: char| is_control(c) || changes_direction(c);
        if !fits || text.trim() != text || text.chars().any(is_refused) {
            return Err(IdError::ExternalId);
        }
        if contains_card_number(text) {
            return Err(IdError::CardNumber);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Our identifier of a subscription, a ULID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubscriptionId(Ulid);
crate::openapi_schema!(
    SubscriptionId,
    "SubscriptionId",
    crate::openapi::pattern("A ULID.", "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")
);

impl SubscriptionId {
    /// The identifier made of `ulid`.
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
        // Crockford's base 32 reads lower case and look-alikes too; one subscription has one spelling.
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

/// Why an identifier was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must be 1 to {MAX_ID_CHARS} of letters, digits, '.', '_', '-', and begin with a letter or a digit")]
    Text,
    #[error("must be 1 to {MAX_TOKEN_CHARS} of letters, digits, '.', '_', '-'")]
    Token,
    #[error("{NO_CARD_NUMBER}")]
    CardNumber,
    #[error(
        "must be 1 to {MAX_EXTERNAL_ID_CHARS} characters without control characters, line breaks, characters that change the \
         direction of the text, or space at the ends"
    )]
    ExternalId,
    #[error("must be a receipt's id, like 2026-03-31.01JZXCVBNM0123456789ABCDEF.gold")]
    Receipt,
    #[error("must be a ULID: 26 of digits and capital letters, like 01JZXCVBNM0123456789ABCDEF")]
    Ulid,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_id_and_sku_refuse_the_key_separator_and_anything_unusual() {
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
    fn gateway_token_and_external_id_refuse_a_card_number() {
        assert_eq!("4242424242424242".parse::<GatewayToken>(), Err(IdError::CardNumber));
        assert_eq!("4242-4242-4242-4242".parse::<ExternalId>(), Err(IdError::CardNumber));
        assert!("4242424242424241".parse::<GatewayToken>().is_ok(), "its check digit is wrong");
        assert!("cus_4242424242424242".parse::<GatewayToken>().is_ok() && "4242".parse::<GatewayToken>().is_ok());
        assert!("4242424242424242".parse::<AccountId>().is_ok(), "an account's number is the merchant's affair");
    }

    #[test]
    fn external_id_refuses_what_cannot_be_shown_as_it_is() {
        for text in ["", " x", "x\t1", "a\u{2028}b", "a\u{202e}b", &"x".repeat(256)] {
            assert_eq!(text.parse::<ExternalId>(), Err(IdError::ExternalId), "{text:?}");
        }
        assert!("Bestellung 4711/ä".parse::<ExternalId>().is_ok());
    }

    #[test]
    fn subscription_id_has_one_spelling() {
        let id = "01JZXCVBNM0123456789ABCDEF";
        assert_eq!(id.parse::<SubscriptionId>().unwrap().to_string(), id);
        for text in ["", &id.to_lowercase(), "01JZXCVBNM0123456789ABCDEFG", "01JZXCVBNMO123456789ABCDEF"] {
            assert_eq!(text.parse::<SubscriptionId>(), Err(IdError::Ulid), "{text}");
        }
    }
}
