//! The two batches. Each batch has an index of the subscriptions that are due for it, and a partition of run records
//! for each day.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

/// One of the two batches, each of which processes the due subscriptions of a day: `reminders` or `payments`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Batch {
    Reminders,
    Payments,
}

impl Batch {
    /// Both batches, in the order in which they run on a day.
    pub const ALL: [Batch; 2] = [Batch::Reminders, Batch::Payments];
}
