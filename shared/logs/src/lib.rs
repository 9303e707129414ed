//! The log configuration of the Lambda functions, and the log filter that the command `dueday` shares with them.
//!
//! Environment variables select the level (`AWS_LAMBDA_LOG_LEVEL` of Lambda, otherwise `RUST_LOG`) and the format
//! (`AWS_LAMBDA_LOG_FORMAT`). The levels `debug` and `trace` apply only to the crates of this workspace, because
//! libraries log complete requests and responses at these levels, including addresses and keys.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::env;
use std::io::stdout;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::layer::{Identity, Layered};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

/// A registry of log events that keeps only the events whose level is enabled.
pub type FilteredRegistry = Layered<Targets, Registry>;

/// The crates of this workspace that the Lambda functions and the command contain. These crates log no names, e-mail
/// addresses, secrets, tokens or bodies at any level.
const WORKSPACE_CRATES: [&str; 55] = [
    "api",
    "api_gateway",
    "audit",
    "audit_function",
    "aws_errors",
    "billing",
    "charging",
    "clock",
    "config",
    "days",
    "deliver",
    "deliver_function",
    "deployment",
    "dueday",
    "dynamo",
    "embedded_metrics",
    "emulator",
    "encryption",
    "erase",
    "erase_function",
    "erasing",
    "events",
    "events_function",
    "gateway_objects",
    "gateway_secrets",
    "gateways",
    "inbound",
    "mail",
    "mail_feedback",
    "notices",
    "notices_function",
    "orders",
    "orders_api",
    "orders_desk",
    "orders_function",
    "orders_table",
    "outbound",
    "payments",
    "payments_function",
    "publishing",
    "reconcile",
    "reconcile_function",
    "reconciling",
    "reminders",
    "reminders_function",
    "rest",
    "sandbox",
    "sandbox_function",
    "secrets",
    "ses",
    "simulator",
    "sqs",
    "store",
    "sweep",
    "webhooks",
];

/// Starts logging to standard output, with the level and the format from the environment of the process.
///
/// # Panics
/// If logging was already started.
pub fn start_logging() {
    start_logging_with_layer(Identity::new());
}

/// Starts logging to standard output like [`start_logging`]. Each log event that is written is also passed to `layer`.
///
/// # Panics
/// If logging was already started.
pub fn start_logging_with_layer<L: Layer<FilteredRegistry> + Send + Sync>(layer: L) {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| env::var("RUST_LOG"));
    let level = level.ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::INFO);
    let filter = limit_library_levels(&Targets::new().with_default(level));
    let registry = tracing_subscriber::registry().with(filter).with(layer);
    let is_json = env::var("AWS_LAMBDA_LOG_FORMAT").is_ok_and(|format| format.eq_ignore_ascii_case("json"));
    registry.with(create_line_layer(is_json, stdout)).init();
}

/// Returns the filter that enables the levels in `requested`, but the levels `debug` and `trace` only for the crates of this
/// workspace, whatever is requested for libraries.
pub fn limit_library_levels(requested: &Targets) -> Targets {
    let default = requested.default_level().unwrap_or(LevelFilter::OFF);
    let is_workspace_crate =
        |target: &str| target.split("::").next().is_some_and(|name| WORKSPACE_CRATES.contains(&name));
    let limited_level = |(target, level): (&str, LevelFilter)| {
        let level = if is_workspace_crate(target) { level } else { level.min(LevelFilter::INFO) };
        (target.to_owned(), level)
    };
    Targets::new()
        .with_default(default.min(LevelFilter::INFO))
        .with_targets(WORKSPACE_CRATES.map(|name| (name, default)))
        .with_targets(requested.iter().map(limited_level))
}

/// Returns the layer that writes each log event to `writer` as one line of JSON or text, in the format of the Lambda
/// functions.
pub fn create_line_layer<S, W>(is_json: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_writer(writer);
    // Lambda adds the time to each line of text, so text lines contain no time. JSON lines contain a timestamp, because
    // Lambda reads the level of a JSON line only if the line has a timestamp; otherwise Lambda assumes the level INFO.
    // A JSON line contains the list of all spans, among them the span of the invocation with the id of the request. So
    // the line does not need the current span in a field of its own.
    if is_json { lines.json().with_current_span(false).boxed() } else { lines.without_time().boxed() }
}
