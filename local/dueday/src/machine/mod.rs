//! The one machine: its data folder, and where its servers listen.

pub mod data;
pub mod listen;
