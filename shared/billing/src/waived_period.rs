//! The record of a month that was owed and is waived.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::{AccountId, SubscriptionId};

/// Why a month is waived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`unpaid`: it could not be paid, or the subscription was unpaid when the month fell due. `outage`: it was not charged in\n\
            time, by our fault. `paused`: the subscription was, from the month's due date to the next. `cancelled`: the subscription\n\
            was, when the month was owed. `disputed`: a dispute kept the payment method from being charged, and was won."
    )
)]
pub enum WaivedReason {
    /// It could not be paid, or the subscription was unpaid when it fell due.
    Unpaid,
    /// We have missed it.
    #[serde(alias = "missed")]
    Outage,
    /// The subscription was paused from its due date to the next one.
    Paused,
    /// The subscription was cancelled when it was owed.
    Cancelled,
    /// It fell due while a dispute kept the payment method from being charged, and the dispute was won.
    Disputed,
}

/// A month that was owed and is waived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaivedPeriod {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub reason: WaivedReason,
    pub waived_at: DateTime<Utc>,
}
