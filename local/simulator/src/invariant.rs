//! The invariants of the design that the checker validates, and the results of this check.

use std::fmt;

use serde::{Serialize, Serializer};

/// The maximum number of violations that the result of one invariant lists.
const MAX_EXAMPLES: usize = 10;

/// An invariant of the design. `description` returns the invariant as a full sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invariant {
    ChargedOnce,
    ReceiptedAndAdvanced,
    ReceiptStatesCharge,
    StoppedIsInNoIndex,
    RunsAddUp,
    NothingStuck,
    NothingSkipped,
    RunsEnded,
    Announced,
    Repeatable,
}

impl Invariant {
    fn description(self) -> &'static str {
        match self {
            Self::ChargedOnce => "at most one successful charge per subscription and month",
            Self::ReceiptedAndAdvanced => {
                "a receipt exists if and only if the charge succeeded and the subscription advanced"
            }
            Self::ReceiptStatesCharge => "a receipt and its charge at the gateway have the same amount and currency",
            Self::StoppedIsInNoIndex => {
                "a paused, cancelled or unpaid subscription is in no index, unless it has an open attempt"
            }
            Self::RunsAddUp => "the counts of every completed run add up to its number of due rows",
            Self::NothingStuck => {
                "every owed payment and every open attempt is in the index, and every item can be read"
            }
            Self::NothingSkipped => "no owed month is skipped, and every due date is on the payment day",
            Self::RunsEnded => "every run reached the end of the index",
            Self::Announced => "what mails and lists say about the next three payments is what is charged",
            Self::Repeatable => "running a finished day again changes only run records",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

impl Serialize for Invariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.description())
    }
}

/// The result of the check of one invariant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InvariantResult {
    pub invariant: Invariant,
    /// The number of all violations.
    pub violations: usize,
    /// Descriptions of the first `MAX_EXAMPLES` violations.
    pub examples: Vec<String>,
}

impl InvariantResult {
    /// Creates the result of the check of `invariant`. The invariant holds if `violations` is empty.
    pub fn new(invariant: Invariant, violations: Vec<String>) -> Self {
        Self { invariant, violations: violations.len(), examples: violations.into_iter().take(MAX_EXAMPLES).collect() }
    }

    /// Returns whether the invariant holds.
    pub fn holds(&self) -> bool {
        self.violations == 0
    }
}
