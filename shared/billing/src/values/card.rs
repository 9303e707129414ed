//! The description of a card on a receipt: brand and last four digits. This system never receives the full card number.

use serde::{Deserialize, Deserializer, Serialize};

use crate::values::character_checks::is_control_character;

/// The maximum number of characters of a card brand.
const MAX_BRAND_CHARS: usize = 32;

/// The description of a charged card: its brand and the last four digits of its number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "UncheckedCard")]
pub struct Card {
    /// The brand as the gateway names it, such as `visa`.
    brand: String,
    last4: String,
}

/// The error for a card whose brand is invalid, or whose last digits are not four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the description of the card is invalid: it needs a brand of 1 to {MAX_BRAND_CHARS} characters and the last four digits of the number"
)]
pub struct CardError;

/// The serialized description of a card before its check.
#[derive(Deserialize)]
struct UncheckedCard {
    brand: String,
    last4: String,
}

impl TryFrom<UncheckedCard> for Card {
    type Error = CardError;

    fn try_from(UncheckedCard { brand, last4 }: UncheckedCard) -> Result<Self, CardError> {
        Self::new(&brand, &last4)
    }
}

impl Card {
    /// Creates the description of a card of `brand` whose number ends with `last4`.
    pub fn new(brand: &str, last4: &str) -> Result<Self, CardError> {
        let is_brand =
            (1..=MAX_BRAND_CHARS).contains(&brand.chars().count()) && !brand.chars().any(is_control_character);
        let are_digits = last4.len() == 4 && last4.bytes().all(|digit| digit.is_ascii_digit());
        match is_brand && are_digits {
            true => Ok(Self { brand: brand.to_owned(), last4: last4.to_owned() }),
            false => Err(CardError),
        }
    }

    /// Returns the brand as the gateway names it.
    pub fn brand(&self) -> &str {
        &self.brand
    }

    /// Returns the last four digits of the card number.
    pub fn last4(&self) -> &str {
        &self.last4
    }

    /// Returns the description of the card that customers see, such as `Visa •••• 4242`.
    pub fn label(&self) -> String {
        let brand = match self.brand.as_str() {
            "visa" => "Visa",
            "mastercard" => "Mastercard",
            "amex" => "American Express",
            "discover" => "Discover",
            "diners" => "Diners Club",
            "jcb" => "JCB",
            "unionpay" => "UnionPay",
            other => other,
        };
        format!("{brand} •••• {}", self.last4)
    }
}

/// Deserializes the card of a payment. If the description of the card is invalid, returns `None` instead of an error,
/// so that the payment can still be read.
pub(crate) fn readable_card<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Card>>, D::Error> {
    /// A valid description of a card, or any other value.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ReadableCard {
        Card(Box<Card>),
        Other(serde::de::IgnoredAny),
    }
    Ok(match ReadableCard::deserialize(deserializer)? {
        ReadableCard::Card(card) => Some(card),
        ReadableCard::Other(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_card_requires_a_brand_and_four_digits() {
        assert_eq!(Card::new("visa", "4242").unwrap().label(), "Visa •••• 4242");
        let long = "x".repeat(33);
        for (brand, last4) in
            [("", "4242"), ("visa\n", "4242"), (&long, "4242"), ("visa", "42"), ("visa", "424a"), ("visa", "42424")]
        {
            assert_eq!(Card::new(brand, last4), Err(CardError), "{brand} {last4}");
        }
    }
}
