//! Commands that find and explain what is stored.

pub mod accounts;
pub mod duplicates;
pub mod events;
pub mod export;
pub mod log;
pub mod receipts;
pub mod stored_event;
pub mod subscriptions;
pub mod why;
