//! What stands in for AWS on one machine and in the tests: the embedded DynamoDB engine with the real SDK speaking to
//! it, the sandbox gateway's server, the daily timetable and a Lambda Runtime API; whole deployments on them, and the
//! faults that tests inject. Everything listens on loopback unless told otherwise.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod card_page;
mod config;
mod connector;
mod deployment;
mod dynamodb_server;
mod engine;
mod faults;
mod gateway_server;
mod guard;
mod http_server;
mod operations;
mod stream;
mod stripe_server;
mod timetable;
mod wire;

pub use config::{Config, variables};
pub use deployment::{Deployment, EnrolError};
pub use engine::{Engine, EngineError, Served};
pub use faults::{Call, Fault, Faults, Injector, Operation, Turn};
pub use gateway_server::gateway_router;
pub use http_server::{Limits, serve};
pub use stream::{Stream, StreamError};
pub use stripe_server::{
    InProcess, Intent, STRIPE_KEY, STRIPE_RESTRICTED_KEY, STRIPE_VERSION, StripeFault, StripeRequest, StripeResponse,
    StripeServer,
};
pub use timetable::{next_run, runs_on};
pub use wire::{Permission, Wire, Witness};
