//! The two batches, as the table knows them: each has an index of what is due and a partition of run records a day.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::schema::{Projection, SCHEMA};

/// A batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batch {
    Reminders,
    Payments,
}

/// A batch of another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be reminders or payments")]
pub struct UnknownBatch;

impl Batch {
    /// Both, in the order of a day.
    pub const ALL: [Batch; 2] = [Batch::Reminders, Batch::Payments];

    /// The word used in the table and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Batch::Reminders => "reminders",
            Batch::Payments => "payments",
        }
    }

    /// The index of what is due.
    pub(super) fn index(self) -> &'static Projection {
        match self {
            Batch::Reminders => &SCHEMA.indexes[0],
            Batch::Payments => &SCHEMA.indexes[1],
        }
    }
}

impl FromStr for Batch {
    type Err = UnknownBatch;

    fn from_str(text: &str) -> Result<Self, UnknownBatch> {
        Self::ALL.into_iter().find(|batch| batch.as_str() == text).ok_or(UnknownBatch)
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
