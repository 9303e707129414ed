//! Publishes events from the change streams of the tables on a bus.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod bus;
mod config;
mod operator_event;
mod publisher;
mod stream_record;
mod unreadable_record;

pub use bus::{BusEntry, EventBus, FailedEntry, StreamEvent};
pub use config::*;
pub use publisher::{PublishOutcome, Publisher, StreamBatchError};
