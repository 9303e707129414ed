//! The two batches, as the table knows them: each has an index of what is due and a partition of run records a day.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

/// One of the two batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Batch {
    Reminders,
    Payments,
}

impl Batch {
    /// Both, in the order of a day.
    pub const ALL: [Batch; 2] = [Batch::Reminders, Batch::Payments];
}
