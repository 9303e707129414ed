//! Publishes events from the change streams of the tables on a bus, delivers the events to the merchant's webhook
//! endpoints, and mails notices to customers.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod bus;
mod config;
mod notice_content;
mod notices;
mod operator_event;
pub mod outbound;
mod publisher;
mod stream_record;
mod unreadable_record;

pub use bus::{Bus, BusEntry, FailedEntry, StreamEvent};
pub use config::*;
pub use notice_content::TYPES_WITH_NOTICE;
pub use notices::{NOTICE_MESSAGE_FAILED, NOTICE_REJECTED, NoticeError, NoticeOutcome, Notices};
pub use operator_event::OperatorEvent;
pub use outbound::*;
pub use publisher::{PublishOutcome, Publisher, StreamBatchError};
