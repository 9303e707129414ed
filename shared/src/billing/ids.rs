//! Typed identifiers. The character that separates the parts of a table key cannot occur in any of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::card_number::{NO_CARD_NUMBER, contains_card_number, token_contains_card_number};

/// Identifiers are at most this many characters.
pub const MAX_ID_CHARS: usize = 64;
/// Identifiers of an earlier system are at most this many characters.
pub const MAX_EXTERNAL_ID_CHARS: usize = 255;
/// Gateway tokens are at most this many characters.
pub const MAX_TOKEN_CHARS: usize = 255;

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $max:expr, $refused:expr) => {
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
                if !(1..=$max).contains(&text.len()) || !text.bytes().all(is_id_byte) {
                    return Err(IdError::Text { max: $max });
                }
                if $refused(text.as_str()) {
                    return Err(IdError::CardNumber);
                }
                Ok(Self(text))
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

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

checked_text!(
    /// The merchant's own identifier of an account: 1 to 64 of letters, digits, `.`, `_`, `-`.
    AccountId,
    MAX_ID_CHARS,
    |_: &str| false
);
checked_text!(
    /// The merchant's own identifier of a product: 1 to 64 of letters, digits, `.`, `_`, `-`.
    Sku,
    MAX_ID_CHARS,
    |_: &str| false
);
checked_text!(
    /// A payment processor's token of a customer or a payment method, never a card number: 1 to 255 characters.
    GatewayToken,
    MAX_TOKEN_CHARS,
    token_contains_card_number
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
    /// use shared::billing::{AccountId, ExternalId};
    /// let (acme, order): (AccountId, ExternalId) = ("acme".parse()?, "order 4711".parse()?);
    /// assert_eq!(order.subscription_of(&acme).to_string(), "0000000000193P2Q7174098SXD");
    /// # Ok::<(), shared::billing::IdError>(())
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
        if !fits || text.trim() != text || text.chars().any(char::is_control) {
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
    #[error("must be 1 to {max} of letters, digits, '.', '_', '-'")]
    Text { max: usize },
    #[error("{NO_CARD_NUMBER}")]
    CardNumber,
    #[error("must be 1 to {MAX_EXTERNAL_ID_CHARS} characters without control characters or space at the ends")]
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
    fn the_key_separator_and_anything_unusual_is_impossible() {
        for text in ["", "a#b", "a b", "é", "a/b", "a\n", &"x".repeat(65)] {
            assert_eq!(text.parse::<AccountId>(), Err(IdError::Text { max: 64 }), "{text:?}");
        }
        assert!("a.B_9-".parse::<Sku>().is_ok() && "x".repeat(64).parse::<AccountId>().is_ok());
    }

    #[test]
    fn a_card_number_is_no_token() {
        assert_eq!("4242424242424242".parse::<GatewayToken>(), Err(IdError::CardNumber));
        assert_eq!("4242-4242-4242-4242".parse::<ExternalId>(), Err(IdError::CardNumber));
        assert!("4242424242424241".parse::<GatewayToken>().is_ok(), "its check digit is wrong");
        assert!("cus_4242424242424242".parse::<GatewayToken>().is_ok() && "4242".parse::<GatewayToken>().is_ok());
        assert!("4242424242424242".parse::<AccountId>().is_ok(), "an account's number is the merchant's affair");
    }

    #[test]
    fn a_subscription_id_has_one_spelling() {
        let id = "01JZXCVBNM0123456789ABCDEF";
        assert_eq!(id.parse::<SubscriptionId>().unwrap().to_string(), id);
        for text in ["", &id.to_lowercase(), "01JZXCVBNM0123456789ABCDEFG", "01JZXCVBNMO123456789ABCDEF"] {
            assert_eq!(text.parse::<SubscriptionId>(), Err(IdError::Ulid), "{text}");
        }
    }
}
