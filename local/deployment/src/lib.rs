//! A deployment on one machine, for the command and for tests: the settings of all Lambda functions, and the batches on
//! one table, in a file or in memory, optionally with injected faults.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
mod deployment;
mod faulty;
mod in_memory;

pub use config::{DeploymentConfig, EXAMPLE_MERCHANT, environment_variables};
pub use deployment::{CreateSubscriptionError, Deployment};
pub use faulty::FaultyService;
pub use in_memory::InMemoryDeployment;
