//! Commands for the work of every day.

pub mod audit;
pub mod due;
pub mod endpoint_audit;
pub mod findings;
pub mod forecast;
pub mod reconcile;
pub mod report;
pub mod resolve;
pub mod run;
pub mod runs;
pub mod status;
