//! Ceilings: how much one day may charge, as a guard against an import or a price gone wrong.

use super::{Money, Sums};

/// How much one day may charge at most. What is not named has no ceiling.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ceilings {
    pub charges: Option<u64>,
    pub sums: Sums,
}

/// What a day would charge.
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
            return Some(format!("{} payments are due, and at most {most} may be charged in a day", day.charges));
        }
        let most = |sum: Money| self.sums.of(sum.currency()).filter(|most| sum.minor() > most.minor());
        let (sum, most) = day.sums.iter().find_map(|sum| Some((sum, most(sum)?)))?;
        Some(format!("{sum} are due, and at most {most} may be charged in a day"))
    }
}

impl Day {
    /// Counts one payment more.
    pub fn add(&mut self, amount: Money) {
        self.charges = self.charges.saturating_add(1);
        self.sums.add(amount);
    }
}
