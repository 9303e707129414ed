//! The sandbox: a gateway that moves no money and otherwise behaves like a real gateway. It remembers idempotency keys
//! for a day, and has test payment methods with the names of Stripe's test payment methods.
//!
//! The rules are pure functions ([`rules`]). A [`SandboxStore`] applies them to stored payments: [`Sandbox`] stores
//! payments in a file or in memory, on one machine; the Lambda function `sandbox` stores them in DynamoDB. The HTTP
//! routes ([`gateway_router`]) are the same for both stores.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod card_page;
mod config;
mod ledger;
mod ledger_sandbox;
mod records;
pub mod rules;
mod server;
mod store;
mod test_payment_methods;

pub use config::*;
pub use ledger::{Ledger, LedgerEntry, LedgerError};
pub use ledger_sandbox::Sandbox;
pub use records::{EnteredPaymentMethod, LedgerPayment, OpenedCheckoutPage};
pub use server::{gateway_router, signed_gateway_router};
pub use store::{CheckoutPageAddress, SandboxStore, StoreError};
