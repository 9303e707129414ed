//! What must hold, and what was found to violate it.

use std::fmt;

use serde::{Serialize, Serializer};

/// At most this many violations of one invariant are named.
const MAX_NAMED: usize = 10;

/// An invariant of the design.
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
    Repeatable,
}

impl Invariant {
    fn text(self) -> &'static str {
        match self {
            Self::ChargedOnce => "at most one successful charge per subscription and month",
            Self::ReceiptedAndAdvanced => {
                "a receipt exists if and only if the charge succeeded and the subscription advanced"
            }
            Self::ReceiptStatesCharge => "receipt amount = gateway amount, same currency",
            Self::StoppedIsInNoIndex => {
                "a paused, cancelled or unpaid subscription is in no index, but for an open attempt"
            }
            Self::RunsAddUp => "every sweep that came to its end accounts for all it saw",
            Self::NothingStuck => "nothing is stuck: what is owed or open is in the index, and every item can be read",
            Self::NothingSkipped => "no owed period skipped, and every due date is the payment day's",
            Self::RunsEnded => "every sweep came to its end",
            Self::Repeatable => "running a finished day again changes nothing but run records",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Invariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// One invariant and what violates it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub invariant: Invariant,
    pub violations: usize,
    pub examples: Vec<String>,
}

impl Finding {
    /// The finding that `violations` violate `invariant`.
    pub fn new(invariant: Invariant, violations: Vec<String>) -> Self {
        Self { invariant, violations: violations.len(), examples: violations.into_iter().take(MAX_NAMED).collect() }
    }

    /// Whether the invariant holds.
    pub fn holds(&self) -> bool {
        self.violations == 0
    }
}
