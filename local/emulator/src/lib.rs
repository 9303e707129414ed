//! Stand-ins for AWS and Stripe, for running on one machine and for tests: the embedded DynamoDB engine, called by the
//! real SDK; the server of the stand-in for Stripe; the timetable of the daily runs; and fault injection. Each server
//! listens on loopback unless another address is given.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod dynamodb_operations;
mod dynamodb_server;
mod engine;
mod engine_connection;
mod error_response;
mod es256;
mod faults;
mod gateway_claims;
mod guard;
mod http_server;
mod in_process_client;
mod permission;
mod stream;
mod stripe_server;
mod table_description;
mod timetable;
mod token_issuer;

pub use engine::{Engine, EngineError, RunningEngine};
pub use engine_connection::{EngineConnection, RequestObserver};
pub use faults::{CallTurn, ExternalCall, ExternalOperation, Fault, FaultDecider, FaultInjector};
pub use gateway_claims::gateway_claims;
pub use http_server::{ServerLimits, serve_http};
pub use permission::Permission;
pub use stream::{TableStream, TableStreamError};
pub use stripe_server::{
    InProcessTransport, MisleadingView, STRIPE_KEY, STRIPE_RESTRICTED_KEY, STRIPE_VERSION, StandInPaymentIntent,
    StripeFault, StripeRequest, StripeResponse, StripeServer, stripe_currencies,
};
pub use timetable::{RUN_HOURS, batch_run_times_on, next_run_time};
pub use token_issuer::{InvalidKey, LOCAL_AUDIENCE, LOCAL_ISSUER, TokenError, TokenIssuer};
