//! The record of a waived month: a month that will never be charged.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::{AccountId, SubscriptionId};

/// The reason why a month is waived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The reason why a month is waived. `unpaid`: the payment failed, or the subscription was unpaid \
            when the month fell due. `outage`: the month was not charged in time because of an outage. `paused`: the \
            subscription was paused from the month's due date to the next one. `cancelled`: the subscription was \
            cancelled while the month was owed. `disputed`: the month fell due during a dispute that the merchant \
            won."
    )
)]
pub enum WaivedReason {
    /// The payment failed, or the subscription was unpaid when the month fell due.
    Unpaid,
    /// No run charged the month in time.
    #[serde(alias = "missed")]
    Outage,
    /// The subscription was paused from the month's due date to the next one.
    Paused,
    /// The subscription was cancelled while the month was owed.
    Cancelled,
    /// The month fell due during a dispute of the payment method, and the dispute was won.
    Disputed,
}

/// The record of a month that will never be charged, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaivedPeriod {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub reason: WaivedReason,
    pub waived_at: DateTime<Utc>,
}
