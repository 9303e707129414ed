//! What stands in for AWS on one machine and in the tests: the embedded DynamoDB engine with the real SDK speaking to
//! it, the sandbox gateway's server, and a Lambda Runtime API. Everything listens on loopback unless told otherwise.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod connector;
mod deployment;
mod engine;
mod function;
mod gateway_server;
mod runtime_api;
pub mod sample;

pub use connector::{Fault, Wire};
pub use deployment::{Deployment, EnrolError};
pub use engine::{Engine, EngineError, Served};
pub use function::Function;
pub use gateway_server::gateway_router;
pub use runtime_api::{Answer, RuntimeApi};
