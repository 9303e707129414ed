//! Dunning: when a declined payment is tried again, and what becomes of one that never succeeds.

use std::str::FromStr;

use strum::EnumString;

/// The gaps between tries must stay within this many days in all, so that retries end before the next period.
pub const MAX_DUNNING_DAYS: u32 = 27;

/// What becomes of a subscription after its last retry or a hard decline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = DunningError, parse_err_fn = unknown)]
pub enum AfterLastRetry {
    /// It waits, out of the index, for a new payment method.
    #[default]
    Unpaid,
    /// It is cancelled.
    Cancelled,
}

fn unknown(text: &str) -> DunningError {
    DunningError::AfterLastRetry { text: text.to_owned() }
}

/// The retry schedule: days from each soft decline to the next try.
///
/// ```
/// let dunning: billing::Dunning = "1,2,2,2".parse()?;
/// assert_eq!(dunning.gap_days(1), Some(1));
/// assert_eq!(dunning.gap_days(5), None, "the fifth decline is the last");
/// assert!("20,20".parse::<billing::Dunning>().is_err());
/// # Ok::<(), billing::DunningError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dunning(Vec<u32>);

impl Dunning {
    /// The gaps, in days.
    pub fn gaps(&self) -> &[u32] {
        &self.0
    }

    /// Days from the first try to the last one.
    pub fn days(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Days to wait after the `failed`th decline in a row (from 1); `None` when there is no further try.
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

impl FromStr for Dunning {
    type Err = DunningError;

    fn from_str(text: &str) -> Result<Self, DunningError> {
        let gaps: Result<Vec<u32>, _> = text.split(',').map(|gap| gap.trim().parse()).collect();
        let wrong = || DunningError::Gaps { text: text.to_owned() };
        let gaps = gaps.map_err(|_| wrong())?;
        let total = gaps.iter().try_fold(0u32, |sum, gap| sum.checked_add(*gap));
        match total {
            Some(1..=MAX_DUNNING_DAYS) if !gaps.contains(&0) => Ok(Self(gaps)),
            _ => Err(wrong()),
        }
    }
}

/// Why a retry schedule was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DunningError {
    #[error("must be gaps in days like 1,2,2,2, each at least 1, together at most {MAX_DUNNING_DAYS}, not {text:?}")]
    Gaps { text: String },
    #[error("must be unpaid or cancelled, not {text:?}")]
    AfterLastRetry { text: String },
}
