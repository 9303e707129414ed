//! Daily ceilings on charges: a guard against a wrong import or a wrong price.

use crate::values::money::Money;
use crate::values::money_sums::MoneySums;

/// The daily limits on the number and the total amount of charges. If any currency has a limit, payments in a currency
/// without a limit must not be charged at all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChargeCeilings {
    /// The maximum number of charges per day; `None` for no limit.
    pub charges: Option<u64>,
    /// The maximum total amount of the charges per day, by currency; empty if the total amount is not limited.
    pub sums: MoneySums,
}

/// The number of charges, and their total amount in each currency.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChargeTotal {
    charges: u64,
    sums: MoneySums,
}

impl ChargeCeilings {
    /// Returns whether neither the number nor the total amount of charges is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the reason why the charges of one day, whose total is `day`, exceed a ceiling; `None` if they do not.
    pub fn reason_exceeded(&self, day: &ChargeTotal) -> Option<String> {
        if let Some(most) = self.charges.filter(|most| day.charges > *most) {
            return Some(format!("{} payments are due or charged; at most {most} may be charged per day", day.charges));
        }
        if self.sums == MoneySums::default() {
            return None;
        }
        day.sums.iter().find_map(|sum| match self.sums.get_sum(sum.currency()) {
            Some(most) if sum.minor() > most.minor() => {
                Some(format!("{sum} are due or charged; at most {most} may be charged per day"))
            }
            Some(_) => None,
            // Other currencies have a ceiling, so this currency was probably forgotten. Do not charge it without limit.
            None => Some(format!("{sum} are due, and there is no ceiling for {}", sum.currency())),
        })
    }
}

impl ChargeTotal {
    /// Creates the total of `charges` charges with the total amounts `sums`.
    pub fn new(charges: u64, sums: MoneySums) -> Self {
        Self { charges, sums }
    }

    /// Returns the number of charges.
    pub fn charges(&self) -> u64 {
        self.charges
    }

    /// Returns the total amounts by currency.
    pub fn sums(&self) -> &MoneySums {
        &self.sums
    }

    /// Adds the charges of `other`.
    pub fn add_all(&mut self, other: &ChargeTotal) {
        self.charges = self.charges.saturating_add(other.charges);
        self.sums.extend(other.sums.iter());
    }

    /// Adds one charge of `amount`.
    pub fn add(&mut self, amount: Money) {
        self.charges = self.charges.saturating_add(1);
        self.sums.add(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_exceeded_names_the_exceeded_ceiling_or_the_currency_without_one() {
        let day = |amounts: &[(i64, &str)]| {
            let mut day = ChargeTotal::default();
            amounts.iter().for_each(|(minor, code)| day.add(Money::new(*minor, code.parse().unwrap())));
            day
        };
        let ceilings_of =
            |charges: Option<u64>, sums: &str| ChargeCeilings { charges, sums: sums.parse().unwrap_or_default() };
        for (ceilings, amounts, expected) in [
            (ceilings_of(None, ""), vec![(9_999_999, "EUR")], None),
            (ceilings_of(Some(1), ""), vec![(1, "EUR")], None),
            (
                ceilings_of(Some(1), ""),
                vec![(1, "EUR"), (1, "EUR")],
                Some("2 payments are due or charged; at most 1 may be charged per day"),
            ),
            (ceilings_of(None, "EUR=1.00"), vec![(100, "EUR")], None),
            (
                ceilings_of(None, "EUR=1.00"),
                vec![(100, "EUR"), (1, "EUR")],
                Some("1.01 EUR are due or charged; at most 1.00 EUR may be charged per day"),
            ),
            (
                ceilings_of(None, "EUR=1.00"),
                vec![(1, "EUR"), (1, "USD")],
                Some("0.01 USD are due, and there is no ceiling for USD"),
            ),
        ] {
            assert_eq!(ceilings.reason_exceeded(&day(&amounts)).as_deref(), expected, "{ceilings:?}");
        }
    }
}
