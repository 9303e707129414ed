//! Path parameters that several routes share.

use billing::{AccountId, ReceiptReference, SubscriptionId};
use rest::parameters::PathId;
use serde::Deserialize;
use store::Batch;
use utoipa::IntoParams;

/// The path parameters that name a subscription of an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct SubscriptionPath {
    /// The id of the account.
    pub account: AccountId,
    /// The id of the subscription.
    #[serde(rename = "subscription")]
    pub id: SubscriptionId,
}

/// The path parameters that name a receipt of an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ReceiptPath {
    /// The id of the account.
    pub account: AccountId,
    /// The id of the receipt, or its number.
    #[param(inline, value_type = ReceiptReference)]
    pub receipt: PathId<ReceiptReference>,
}

/// The path parameter that names a batch.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct BatchPath {
    /// The batch: `reminders` or `payments`.
    pub batch: Batch,
}
