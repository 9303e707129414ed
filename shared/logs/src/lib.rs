//! What the functions log.
//!
//! Lambda says at which level (`AWS_LAMBDA_LOG_LEVEL`, else `RUST_LOG`) and in which format. That level is for our own code: below
//! `info`, libraries log requests and answers whole, with addresses and keys in them.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::env;
use std::io::stdout;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The crates that log no address, token or body at any level: all of this workspace that a function is made of.
const OURS: [&str; 33] = [
    "api",
    "audit",
    "billing",
    "clock",
    "config",
    "days",
    "deliver",
    "deliver_function",
    "delivery",
    "dynamo",
    "events",
    "events_function",
    "gateways",
    "inbound",
    "mail",
    "mail_feedback",
    "notices",
    "notices_function",
    "orders",
    "orders_api",
    "orders_function",
    "payments",
    "payments_function",
    "reminders",
    "reminders_function",
    "rest",
    "secrets",
    "ses",
    "settling",
    "sqs",
    "store",
    "sweep",
    "webhooks",
];

/// Logs to standard output from now on, as the process's environment says.
///
/// # Panics
/// If it was done before.
pub fn init() {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| env::var("RUST_LOG"));
    let level = level.ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::INFO);
    let of_libraries = Targets::new().with_default(level.min(LevelFilter::INFO));
    let filter = of_libraries.with_targets(OURS.map(|name| (name, level)));
    let registry = tracing_subscriber::registry().with(filter);
    let is_json = env::var("AWS_LAMBDA_LOG_FORMAT").is_ok_and(|format| format.eq_ignore_ascii_case("json"));
    registry.with(lines(is_json, stdout)).init();
}

/// Writes each event as a line of JSON or of text, as the functions do, to `writer`.
pub fn lines<S, W>(is_json: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Lambda itself adds the time.
    let lines = tracing_subscriber::fmt::layer().with_target(false).without_time().with_writer(writer);
    if is_json { lines.json().boxed() } else { lines.boxed() }
}
