//! The one machine: its data folder, its gateway, its servers, and its timetable.

pub mod daily;
pub mod data;
pub mod deliveries;
pub mod follower;
pub mod gateway;
pub mod journal;
pub mod kept_lines;
pub mod listen;
pub mod opened;
mod outlet;
pub mod post;
pub mod set_aside;
