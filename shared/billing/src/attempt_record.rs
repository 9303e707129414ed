//! The record of an attempt that did not succeed.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::{AccountId, GatewayToken, Money, SubscriptionId};

/// How an attempt ended that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`declined`: by the bank. `rejected`: the gateway refused the request. `dropped`: given up without a charge."
    )
)]
pub enum AttemptEnd {
    /// It can no longer succeed.
    Declined,
    /// The gateway refused the request and made nothing.
    Rejected,
    /// The subscription was stopped before the gateway knew anything of it.
    Dropped,
}

/// What was tried, when, and what the gateway said, of an attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRecord {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    pub amount: Money,
    /// The gateway's customer whom the attempt was to charge; absent of records of earlier versions.
    pub customer: Option<GatewayToken>,
    pub outcome: AttemptEnd,
    /// The gateway's code; of one that was dropped, the status it was stopped by.
    pub code: String,
    pub hard: bool,
    pub processed_at: DateTime<Utc>,
}
