//! Ceilings: how much one day may charge, as a guard against an import or a price gone wrong.

use super::{Money, Sums};

/// How much one day may charge at most. Where sums are named, a currency without one may not be charged at all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ceilings {
    pub charges: Option<u64>,
    pub sums: Sums,
}

/// What a day charges: what it has charged, or would.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Day {
    charges: u64,
    sums: Sums,
}

impl Ceilings {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// Why `day` must not be charged; `None` if it stays under every ceiling.
    pub fn exceeded_by(&self, day: &Day) -> Option<String> {
        if let Some(most) = self.charges.filter(|most| day.charges > *most) {
            return Some(format!(
                "{} payments are due or charged, and at most {most} may be charged in a day",
                day.charges
            ));
        }
        if self.sums == Sums::default() {
            return None;
        }
        day.sums.iter().find_map(|sum| match self.sums.of(sum.currency()) {
            Some(most) if sum.minor() > most.minor() => {
                Some(format!("{sum} are due or charged, and at most {most} may be charged in a day"))
            }
            Some(_) => None,
            // Unlimited without a word, the currency that nobody thought of would be the one that goes wrong.
            None => Some(format!("{sum} are due, and no ceiling is named for {}", sum.currency())),
        })
    }
}

impl Day {
    /// As many payments, of these sums.
    pub fn of(charges: u64, sums: Sums) -> Self {
        Self { charges, sums }
    }

    /// How many payments there are.
    pub fn charges(&self) -> u64 {
        self.charges
    }

    /// What they come to.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Counts those of `other` too.
    pub fn add_all(&mut self, other: &Day) {
        self.charges = self.charges.saturating_add(other.charges);
        self.sums.extend(other.sums.iter());
    }

    /// Counts one payment more.
    pub fn add(&mut self, amount: Money) {
        self.charges = self.charges.saturating_add(1);
        self.sums.add(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeded_by_names_what_is_over_and_a_currency_without_a_ceiling() {
        let day = |amounts: &[(i64, &str)]| {
            let mut day = Day::default();
            amounts.iter().for_each(|(minor, code)| day.add(Money::new(*minor, code.parse().unwrap())));
            day
        };
        let of = |charges: Option<u64>, sums: &str| Ceilings { charges, sums: sums.parse().unwrap_or_default() };
        for (ceilings, amounts, expected) in [
            (of(None, ""), vec![(9_999_999, "EUR")], None),
            (of(Some(1), ""), vec![(1, "EUR")], None),
            (
                of(Some(1), ""),
                vec![(1, "EUR"), (1, "EUR")],
                Some("2 payments are due or charged, and at most 1 may be charged in a day"),
            ),
            (of(None, "EUR=1.00"), vec![(100, "EUR")], None),
            (
                of(None, "EUR=1.00"),
                vec![(100, "EUR"), (1, "EUR")],
                Some("1.01 EUR are due or charged, and at most 1.00 EUR may be charged in a day"),
            ),
            (
                of(None, "EUR=1.00"),
                vec![(1, "EUR"), (1, "USD")],
                Some("0.01 USD are due, and no ceiling is named for USD"),
            ),
        ] {
            assert_eq!(ceilings.exceeded_by(&day(&amounts)).as_deref(), expected, "{ceilings:?}");
        }
    }
}
