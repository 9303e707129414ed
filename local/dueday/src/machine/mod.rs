//! The local system on one machine: its data folder, its gateway, its servers its daily runs and its daily checks.

pub mod daily;
pub mod daily_checks;
pub mod data_folder;
pub mod deliveries;
pub mod encryption_keys;
pub mod event_file;
mod file_owner;
pub mod follower;
pub mod gateway;
pub mod inspection;
pub mod journal;
pub mod listen;
mod local_bus;
pub mod local_machine;
pub mod mailer;
pub mod notice_sender;
mod old_mails;
pub mod open_table;
pub mod order_filler;
pub mod private_folder;
pub mod queues;
pub mod reminder_priority;
mod secret_file;
pub mod stored_lines;
pub mod tokens;
