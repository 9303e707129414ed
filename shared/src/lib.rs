//! Dueday's domain: the rules of billing, the table, the gateways, the mail, and the daily batches.
//!
//! The functions under `functions/` and the `dueday` command are wiring around what is here.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod audit;
pub mod billing;
pub mod clock;
pub mod config;
pub mod disputes;
pub mod events;
pub mod gateway;
pub mod input;
pub mod logs;
pub mod mail;
pub mod notices;
pub mod orders;
pub mod payments;
pub mod refunds;
pub mod reminders;
pub mod setups;
pub mod sharding;
pub mod sweep;
pub mod table;
pub mod webhooks;
