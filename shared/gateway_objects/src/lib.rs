//! Stores what a gateway has besides charges: refunds, disputes, and payment methods that customers entered on checkout
//! pages.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod disputes;
mod gateway_account_check;
mod payment_method_setups;
mod refunds;

pub use disputes::DisputeRecorder;
pub use gateway_account_check::GatewayAccountCheck;
pub use payment_method_setups::{PaymentMethodSetups, SetupError};
pub use refunds::*;
