//! The one machine: its data folder, its gateway, its servers, and its timetable.

pub mod daily;
pub mod data;
pub mod gateway;
pub mod listen;
pub mod opened;
