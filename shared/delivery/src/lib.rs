//! Events on their way: from the table's stream to a bus, to programs of the merchant's, and to customers by mail.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod bus;
mod config;
mod notices;
pub mod outbound;
mod publisher;
mod stream_record;

pub use bus::{Bus, Entry, Refused, StreamEvent, UnreadableRecord};
pub use config::*;
pub use notices::{NOTICE_COMES_AGAIN, NOTICE_REFUSED, NoticeError, NoticeOutcome, Notices};
pub use outbound::*;
pub use publisher::{BatchError, Published, Publisher};
