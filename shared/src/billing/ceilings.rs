//! Ceilings: how much one day may charge, as a guard against an import or a price gone wrong.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::{Currency, Money};

/// How much one day may charge at most. What is not named has no ceiling.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ceilings {
    pub charges: Option<u64>,
    pub sums: Sums,
}

/// Amounts by currency.
///
/// ```
/// use shared::billing::Sums;
/// let sums: Sums = "EUR=100000.00, JPY=5000000".parse()?;
/// assert_eq!(sums.to_string(), "100000.00 EUR, 5000000 JPY");
/// assert!("EUR".parse::<Sums>().is_err());
/// # Ok::<(), shared::billing::CeilingError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sums(BTreeMap<Currency, Money>);

/// What a day would charge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Day {
    charges: u64,
    sums: Sums,
}

/// Why a ceiling was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be amounts by currency like EUR=100000.00,JPY=5000000")]
pub struct CeilingError;

impl Ceilings {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Why `day` must not be charged; `None` if it stays under every ceiling.
    pub fn exceeded_by(&self, day: &Day) -> Option<String> {
        if let Some(most) = self.charges.filter(|most| day.charges > *most) {
            return Some(format!("{} payments are due, and at most {most} may be charged in a day", day.charges));
        }
        let over = |sum: &&Money| self.sums.0.get(&sum.currency()).is_some_and(|most| sum.minor() > most.minor());
        let sum = day.sums.0.values().find(over)?;
        let most = self.sums.0.get(&sum.currency())?;
        Some(format!("{sum} are due, and at most {most} may be charged in a day"))
    }
}

impl Day {
    /// Counts one payment more. A sum too large to hold is left at the largest amount.
    pub fn add(&mut self, amount: Money) {
        self.charges = self.charges.saturating_add(1);
        let currency = amount.currency();
        let sum = self.sums.0.entry(currency).or_insert_with(|| Money::new(0, currency));
        *sum = sum.checked_add(amount).unwrap_or(Money::new(i64::MAX, currency));
    }
}

impl FromStr for Sums {
    type Err = CeilingError;

    fn from_str(text: &str) -> Result<Self, CeilingError> {
        let amount = |part: &str| {
            let (currency, amount) = part.trim().split_once('=')?;
            let currency: Currency = currency.parse().ok()?;
            Some((currency, Money::parse(amount, currency).ok()?))
        };
        text.split(',').map(|part| amount(part).ok_or(CeilingError)).collect::<Result<_, _>>().map(Self)
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sums: Vec<String> = self.0.values().map(Money::to_string).collect();
        f.write_str(&sums.join(", "))
    }
}
