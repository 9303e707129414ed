//! Sums of money in several currencies.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::values::money::{Currency, Money};

/// The total amounts of several payments, one for each currency.
///
/// ```
/// use billing::{Money, MoneySums};
/// let mut sums: MoneySums = "EUR=100000.00, JPY=5000000".parse()?;
/// assert_eq!(sums.to_string(), "100000.00 EUR, 5000000 JPY");
/// sums.add(Money::parse("0.99", "EUR".parse()?)?);
/// assert_eq!(sums.to_string(), "100000.99 EUR, 5000000 JPY");
/// assert!("EUR".parse::<MoneySums>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MoneySums(BTreeMap<Currency, Money>);

/// The error for a text that is not a list of amounts by currency, or that contains a currency twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be amounts by currency like EUR=100000.00,JPY=5000000")]
pub struct MoneySumsError;

impl MoneySums {
    /// Adds `amount`, which may be negative, to the sum of its currency. A sum that overflows stays at the largest or
    /// the smallest amount.
    pub fn add(&mut self, amount: Money) {
        let currency = amount.currency();
        let sum = self.0.entry(currency).or_insert_with(|| Money::new(0, currency));
        *sum = Money::new(sum.minor().saturating_add(amount.minor()), currency);
    }

    /// Returns the sum in `currency`; `None` if no amount in this currency was added.
    pub fn get_sum(&self, currency: Currency) -> Option<Money> {
        self.0.get(&currency).copied()
    }

    /// Returns the sum of each currency, ordered by currency code.
    pub fn iter(&self) -> impl Iterator<Item = Money> {
        self.0.values().copied()
    }
}

impl Extend<Money> for MoneySums {
    fn extend<T: IntoIterator<Item = Money>>(&mut self, amounts: T) {
        amounts.into_iter().for_each(|amount| self.add(amount));
    }
}

impl FromIterator<Money> for MoneySums {
    fn from_iter<T: IntoIterator<Item = Money>>(amounts: T) -> Self {
        let mut sums = Self::default();
        sums.extend(amounts);
        sums
    }
}

impl FromStr for MoneySums {
    type Err = MoneySumsError;

    fn from_str(text: &str) -> Result<Self, MoneySumsError> {
        let amount = |part: &str| {
            let (currency, amount) = part.trim().split_once('=')?;
            Money::parse(amount, currency.parse().ok()?).ok()
        };
        let amounts: Option<Vec<Money>> = text.split(',').map(amount).collect();
        // A currency that appears twice is ambiguous, so it is refused.
        let amounts = amounts.ok_or(MoneySumsError)?;
        let sums: MoneySums = amounts.iter().copied().collect();
        if sums.0.len() == amounts.len() { Ok(sums) } else { Err(MoneySumsError) }
    }
}

impl fmt::Display for MoneySums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums: Vec<String> = self.iter().map(|sum| sum.to_string()).collect();
        f.write_str(&sums.join(", "))
    }
}

impl Serialize for MoneySums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
