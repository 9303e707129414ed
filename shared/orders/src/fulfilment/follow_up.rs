//! Follow-up orders: further orders of a month that is paid already. A follow-up order is the remainder of an order that is
//! shipped in parts, or the replacement of products that were lost or broken. It is filled and shipped like any other order,
//! but its amount is 0.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use crate::ids::OrderId;

/// The reason why a follow-up order exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The reason why a follow-up order exists. `remainder`: it contains the products that another order \
            did not keep when it was split. `replacement`: it replaces products of another order, for example because the \
            parcel was lost."
    )
)]
pub enum FollowUpReason {
    /// The follow-up order contains the products that the other order did not keep when it was split.
    Remainder,
    /// The follow-up order replaces products of the other order.
    Replacement,
}

/// Why a follow-up order exists, and the order whose remainder or replacement it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FollowUp {
    /// The order that was split or is replaced. It can be a follow-up order itself.
    pub follows: OrderId,
    pub reason: FollowUpReason,
}
