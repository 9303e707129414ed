//! Years in seconds: months in a private table in memory, as fast as they can pass, calm or in trouble; and those who
//! judge what came of them.
//!
//! The checker and the oracle share no code with what they judge: they read the stored items attribute by attribute and
//! have a calendar of their own.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod books;
mod check;
mod customers;
mod oracle;
mod play;
mod simulation;
mod storm;
mod timetable;
mod trouble;

pub use check::{Finding, check};
pub use play::Play;
pub use simulation::{Enrolment, Progress, Simulation, SimulationError, Troubles, population, simulate};
pub use timetable::{next_run, runs_on};
pub use trouble::Odds;
