//! Commands to try Dueday, and to develop with it.

pub mod completions;
pub mod demo;
pub mod demo_company;
pub mod demo_mails;
pub mod listen;
pub mod simulate;
pub mod token;
