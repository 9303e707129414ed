//! Dunning: the retry schedule of a declined payment, and the status of the subscription after the last retry.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use strum::EnumString;

/// The maximum number of days from the first try of a payment to its last retry, so that the retries end before the
/// next period.
pub const MAX_DUNNING_DAYS: u32 = 27;

/// The status of a subscription after its last retry was declined, or after a hard decline (a decline after which a
/// retry is useless).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, strum::Display, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum AfterLastRetry {
    /// The subscription is unpaid: it is not charged until the customer gives a new payment method.
    #[default]
    Unpaid,
    /// The subscription is cancelled.
    Cancelled,
}

/// The retry schedule: the number of days from each soft decline (a decline that is retried) to the next try.
///
/// ```
/// let dunning: billing::Dunning = "1,2,2,2".parse()?;
/// assert_eq!(dunning.gap_days(1), Some(1));
/// assert_eq!(dunning.gap_days(5), None, "no try follows the fifth decline");
/// assert!("20,20".parse::<billing::Dunning>().is_err());
/// # Ok::<(), billing::DunningError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dunning(Vec<u32>);

impl Dunning {
    /// Returns the gaps between the tries of a declined payment, in days.
    pub fn gaps(&self) -> &[u32] {
        &self.0
    }

    /// Returns the longest gap between two tries of a declined payment, in days.
    pub fn longest_gap(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// Returns the number of days from a soft decline to the next try; `None` if no retry follows. `failed` is the
    /// number of consecutive declines, including this decline.
    pub fn gap_days(&self, failed: u32) -> Option<u32> {
        let index = usize::try_from(failed.checked_sub(1)?).ok()?;
        self.0.get(index).copied()
    }
}

impl Default for Dunning {
    fn default() -> Self {
        Self(vec![1, 2, 2, 2])
    }
}

impl Display for Dunning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let gaps: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&gaps.join(","))
    }
}

impl FromStr for Dunning {
    type Err = DunningError;

    fn from_str(text: &str) -> Result<Self, DunningError> {
        let gaps: Result<Vec<u32>, _> = text.split(',').map(|gap| gap.trim().parse()).collect();
        let wrong = || DunningError { text: text.to_owned() };
        let gaps = gaps.map_err(|_| wrong())?;
        let total = gaps.iter().try_fold(0u32, |sum, gap| sum.checked_add(*gap));
        match total {
            Some(1..=MAX_DUNNING_DAYS) if !gaps.contains(&0) => Ok(Self(gaps)),
            _ => Err(wrong()),
        }
    }
}

/// The error for a text that is not a retry schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be gaps in days such as 1,2,2,2, each at least 1, in total at most {MAX_DUNNING_DAYS}, not {text:?}")]
pub struct DunningError {
    text: String,
}
