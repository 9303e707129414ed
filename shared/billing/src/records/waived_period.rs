//! The record of a waived month: a month that will never be charged.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::values::calendar::Period;
use crate::values::ids::{AccountId, SubscriptionId};

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
            won. `merchant`: the merchant waived the month. `paid_elsewhere`: the customer paid the month in another way, \
            for example in cash."
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
    /// The merchant waived the month, for example because its price was wrong.
    Merchant,
    /// The customer paid the month in another way, for example in cash or by a transfer.
    PaidElsewhere,
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

impl WaivedPeriod {
    /// Returns the period (the month) that is waived.
    pub fn period(&self) -> Period {
        Period::from_day(self.due_on)
    }

    /// Returns the time from which the retention of this record counts: the due date of a month that was waived in
    /// advance, otherwise the time of the waiver. So the record is kept as long as that of a paid month.
    pub fn recorded_from(&self) -> DateTime<Utc> {
        self.waived_at.max(self.due_on.and_time(NaiveTime::MIN).and_utc())
    }
}
