//! `bench start`: measures the size of each Lambda function's binary, and the time from its start to the response to
//! its first event. This is a cold start without the time that Lambda itself needs.

use std::sync::Arc;
use std::time::Instant;

use chrono::{TimeDelta, Utc};
use clap::Args;
use clock::SystemClock;
use emulator::{Engine, STRIPE_KEY};
use orders_table::OrdersTable;
use sandbox_function::SandboxTable;
use store::{Settings, Table};
use testkit::{InvocationResult, LambdaFunction, sample_account};

use crate::Failure;
use crate::contestant::duration_in_milliseconds;
use crate::engine::create_numbered_ulid;
use crate::first_events::{STRIPE_SIGNING_SECRET, check_function_succeeded, create_first_event, start_event_bridge};
use crate::process::path_of_built_program;
use crate::report::median_of_numbers;

/// The text before the name of a function's binary in `template.yaml`.
const BINARY_LINE_PREFIX: &str = "Binary: ";

#[derive(Debug, Args)]
pub struct StartArgs {
    /// Number of starts of each function; the results are medians
    #[arg(long, default_value_t = 15)]
    pub rounds: u32,
    /// Functions to measure, by the names of their binaries; all functions by default
    #[arg(long, value_delimiter = ',')]
    pub functions: Vec<String>,
}

/// The servers that the functions call while they process their first events.
struct StandInServers {
    /// The URL of a gateway.
    gateway: String,
    /// The URL of a stand-in for EventBridge.
    event_bridge: String,
    /// The URL of a folder into which mails are written.
    outbox: String,
}

/// Starts each function several times. Prints the size of its binary and the median time.
pub async fn measure_function_starts(args: &StartArgs) -> Result<(), Failure> {
    let gateway = crate::contestant::start_gateway(0).await?;
    let folder = tempfile::tempdir()?;
    let servers = StandInServers {
        gateway: gateway.1,
        event_bridge: start_event_bridge().await?,
        outbox: format!("outbox:{}", folder.path().display()),
    };
    let functions = match args.functions.as_slice() {
        [] => deployed_functions(),
        chosen => chosen.iter().map(String::as_str).collect(),
    };
    println!("{:>13}  {:>10}  {:>14}", "", "size MB", "first resp. ms");
    for name in functions {
        let binary = path_of_built_program(name)?;
        let mut times = Vec::new();
        for _ in 0..args.rounds {
            times.push(time_first_response(&binary.to_string_lossy(), name, &servers).await?);
        }
        let megabytes = std::fs::metadata(&binary)?.len() as f64 / 1e6;
        println!("{name:>13}  {megabytes:>10.1}  {:>14.0}", median_of_numbers(times.into_iter()));
    }
    gateway.0.stop().await
}

/// Returns the names of the binaries of all functions in the template.
fn deployed_functions() -> Vec<&'static str> {
    let template = include_str!("../../../template.yaml");
    template.lines().filter_map(|line| line.trim().strip_prefix(BINARY_LINE_PREFIX)).collect()
}

/// Starts the function `name`, and returns the time until its first response in milliseconds.
async fn time_first_response(binary: &str, name: &str, servers: &StandInServers) -> Result<f64, Failure> {
    let event = create_first_event(name, Utc::now())?;
    let gateway = if name == "webhooks" { "stripe" } else { &servers.gateway };
    let variables = [
        ("DUEDAY_GATEWAY", gateway),
        ("DUEDAY_MAIL_URL", servers.outbox.as_str()),
        ("DUEDAY_MAIL_FROM", "Shop <billing@example.com>"),
        ("DUEDAY_DELIVERY_QUEUE", "http://127.0.0.1:1/queue"),
        ("DUEDAY_EVENT_BUS", "dueday-events"),
        ("AWS_ENDPOINT_URL_EVENTBRIDGE", servers.event_bridge.as_str()),
        ("STRIPE_SECRET_KEY", STRIPE_KEY),
        ("STRIPE_WEBHOOK_SECRET", STRIPE_SIGNING_SECRET),
        ("DUEDAY_SANDBOX_TABLE", "dueday-sandbox"),
        ("AWS_LAMBDA_LOG_LEVEL", "warn"),
    ];
    let engine = engine_with_account().await?;
    // This call returns immediately after the start of the process, so the measured time includes the time until the
    // function is ready.
    let mut function = LambdaFunction::start_without_log(&engine, binary, name, &variables).await;
    let started = Instant::now();
    let deadline = (Utc::now() + TimeDelta::minutes(1)).timestamp_millis();
    let response = function.invoke(&event, deadline).await;
    let time = duration_in_milliseconds(started.elapsed());
    match response {
        InvocationResult::Response(response) => {
            check_function_succeeded(&response).map_err(|error| format!("{name}: {error}"))?
        }
        other => return Err(format!("{name} returned {other:?}").into()),
    }
    Ok(time)
}

/// Returns an engine with three tables: the payment table, which contains the account of the sample events, the table
/// of the order desk, and the table of the sandbox gateway.
async fn engine_with_account() -> Result<Engine, Failure> {
    let engine = Engine::in_memory();
    let table = Table::new(engine.client(), "dueday");
    table.create_if_absent().await?;
    table.init_settings(&Settings::new(4, create_numbered_ulid(0))).await?;
    table.put_account(&sample_account()).await?;
    OrdersTable::new(engine.client(), "dueday-orders").create_if_absent().await?;
    SandboxTable::new(engine.client(), "dueday-sandbox", Arc::new(SystemClock)).create_if_absent().await?;
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_template_has_a_first_event() {
        let functions = deployed_functions();
        assert_eq!(functions.len(), 14, "{functions:?}");
        for function in functions {
            create_first_event(function, Utc::now()).unwrap();
        }
    }
}
