//! Stores the reports of a gateway: outcomes of attempts, successful payments without a receipt, refunds, disputes, and
//! payment methods that customers entered on checkout pages.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod disputes;
mod findings;
mod gateway_account_check;
mod lookup;
mod payment_method_setups;
mod refunds;
mod resolve;
mod settle;
mod uncounted_charges;

pub use disputes::Disputes;
pub use findings::{
    FindingDecision, FindingError, Findings, LatePaymentOutcome, PAYMENT_WITHOUT_RECEIPT_MESSAGE, unresolved_findings,
};
pub use gateway_account_check::GatewayAccountCheck;
pub use lookup::{describe_double_payment, payments_since};
pub use payment_method_setups::{PaymentMethodSetups, SetupError};
pub use refunds::*;
pub use resolve::{AttemptResolver, ResolveOutcome, StatedOutcome};
pub use settle::{SettleError, SettleOutcome, Settling};
pub use uncounted_charges::UncountedCharges;
