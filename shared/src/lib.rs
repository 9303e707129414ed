//! Dueday's domain: the rules of billing, the table, the gateways, the mail and the daily sweep.
//!
//! The functions under `functions/` and the `dueday` command are wiring around what is here.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod ambient;
pub mod batch;
pub mod billing;
pub mod config;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "mail")]
pub mod mail;
pub mod table;
