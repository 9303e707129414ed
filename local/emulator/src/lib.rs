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
mod examples;
mod faults;
mod faulty;
mod function;
mod gateway_server;
mod guard;
mod http_server;
mod in_memory;
mod letterbox;
mod operations;
mod runtime_api;
pub mod sample;
mod script;
mod ses_server;
mod stream;
mod stripe_server;
mod timetable;
mod unread_queue;
mod wire;

pub use config::{Config, config, variables};
pub use deployment::{Deployment, EnrolError};
pub use engine::{Engine, EngineError, Served};
pub use examples::answer_examples;
pub use faults::{Call, Fault, Faults, Injector, Operation, Turn};
pub use faulty::Faulty;
pub use function::Function;
pub use gateway_server::gateway_router;
pub use http_server::{Limits, serve};
pub use in_memory::InMemory;
pub use letterbox::Letterbox;
pub use runtime_api::{Answer, RuntimeApi};
pub use script::{Script, first, nth};
pub use ses_server::{SesFault, SesMail, SesServer};
pub use stream::{Stream, StreamError};
pub use stripe_server::{
    InProcess, Intent, STRIPE_KEY, STRIPE_RESTRICTED_KEY, STRIPE_VERSION, StripeFault, StripeRequest, StripeResponse,
    StripeServer,
};
pub use timetable::{next_run, runs_on};
pub use unread_queue::UnreadQueue;
pub use wire::{Permission, Wire, Witness};
