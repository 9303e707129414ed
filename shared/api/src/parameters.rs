//! What paths name.

use billing::{AccountId, ReceiptId, SubscriptionId};
use rest::parameters::PathId;
use serde::Deserialize;
use store::Batch;
use utoipa::IntoParams;

/// A subscription of an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct SubscriptionPath {
    /// The account.
    pub account: AccountId,
    /// The subscription.
    #[serde(rename = "subscription")]
    pub id: SubscriptionId,
}

/// A receipt of an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ReceiptPath {
    /// The account.
    pub account: AccountId,
    /// The receipt.
    #[serde(rename = "receipt")]
    #[param(value_type = ReceiptId)]
    pub id: PathId<ReceiptId>,
}

/// A batch.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct BatchPath {
    /// Which of the two batches.
    pub batch: Batch,
}
