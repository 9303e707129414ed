//! What is printed of a card. Its number never reaches us.

use serde::{Deserialize, Deserializer, Serialize};

use super::characters::is_control;

/// A brand is at most this many characters.
const MAX_BRAND_CHARS: usize = 32;

/// What a receipt says of the card that was charged.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Printed")]
pub struct Card {
    /// As the gateway calls it, such as `visa`.
    brand: String,
    last4: String,
}

/// What is no brand or no last four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a brand of at most {MAX_BRAND_CHARS} characters, and four digits")]
pub struct CardError;

#[derive(Deserialize)]
struct Printed {
    brand: String,
    last4: String,
}

impl TryFrom<Printed> for Card {
    type Error = CardError;

    fn try_from(Printed { brand, last4 }: Printed) -> Result<Self, CardError> {
        Self::new(&brand, &last4)
    }
}

impl Card {
    /// The card of `brand` whose number ends with `last4`.
    ///
    /// # Errors
    /// [`CardError`].
    pub fn new(brand: &str, last4: &str) -> Result<Self, CardError> {
        let is_brand = (1..=MAX_BRAND_CHARS).contains(&brand.chars().count()) && !brand.chars().any(is_control);
        let are_digits = last4.len() == 4 && last4.bytes().all(|digit| digit.is_ascii_digit());
        match is_brand && are_digits {
            true => Ok(Self { brand: brand.to_owned(), last4: last4.to_owned() }),
            false => Err(CardError),
        }
    }

    /// Its brand, as the gateway calls it.
    pub fn brand(&self) -> &str {
        &self.brand
    }

    /// The last four digits of its number.
    pub fn last4(&self) -> &str {
        &self.last4
    }
}

/// What is readable of a card: what is not makes no payment unknown.
///
/// # Errors
/// None.
pub(super) fn if_readable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Card>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Readable {
        Card(Box<Card>),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Readable::deserialize(deserializer)? {
        Readable::Card(card) => Some(card),
        Readable::Other(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_takes_a_brand_and_four_digits() {
        assert_eq!(Card::new("visa", "4242").unwrap().last4(), "4242");
        let long = "x".repeat(33);
        for (brand, last4) in
            [("", "4242"), ("visa\n", "4242"), (&long, "4242"), ("visa", "42"), ("visa", "424a"), ("visa", "42424")]
        {
            assert_eq!(Card::new(brand, last4), Err(CardError), "{brand} {last4}");
        }
    }
}
