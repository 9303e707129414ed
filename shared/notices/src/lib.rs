//! Notices: mails to customers about the outcome of a payment, a change of a subscription or the shipment of an order.
//! A notice is sent when an event arrives, separately from the payment batch, so an unavailable mail server delays
//! mails but never a payment.
//!
//! An event arrives at least once, in any order, and possibly late. A worker claims a notice, sends it and marks it as
//! sent. If the worker is killed before it sets the mark, the notice may be sent twice, but is never lost. A notice is
//! not sent if it is no longer true: for example, the notice about a declined payment is not sent if the customer has
//! paid in the meantime.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod notice_content;
mod notices;

pub use notice_content::TYPES_WITH_NOTICE;
pub use notices::{CustomerNotifier, NOTICE_DELAYED, NOTICE_MESSAGE_FAILED, NoticeError, NoticeOutcome};
