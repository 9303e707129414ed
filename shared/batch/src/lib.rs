//! The two batches: what a sweep does with a due payment and with a due reminder.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod payments;
mod reminders;

pub use payments::*;
pub use reminders::{REMINDER_LEASE, RemindDue, ReminderOutcome};
