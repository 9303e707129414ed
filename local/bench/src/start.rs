//! Measures the size of each Lambda function's binary, and the time from its start to the response to its first event.
//! This is a cold start without the time that Lambda itself needs.

use std::time::Instant;

use chrono::{TimeDelta, Utc};
use clap::Args;
use testkit::{Function, InvocationResult};

use crate::Failure;
use crate::contestant::milliseconds;
use crate::process::built_program;
use crate::report::median;

#[derive(Debug, Args)]
pub struct StartArgs {
    /// Number of starts of each function; the results are medians
    #[arg(long, default_value_t = 15)]
    pub rounds: u32,
}

/// Each function with an event that it can process quickly: a health check, and a day on which nothing was due.
const FIRST_EVENTS: [(&str, &str); 3] = [
    ("api", include_str!("../../../events/apigateway-health.json")),
    ("reminders", r#"{"date":"2020-01-01"}"#),
    ("payments", r#"{"date":"2020-01-01"}"#),
];

pub async fn run(args: &StartArgs) -> Result<(), Failure> {
    println!("{:>10}  {:>10}  {:>14}", "", "size MB", "first resp. ms");
    for (name, event) in FIRST_EVENTS {
        let binary = built_program(name)?;
        let mut times = Vec::new();
        for _ in 0..args.rounds {
            times.push(time_first_response(&binary.to_string_lossy(), name, event).await?);
        }
        let megabytes = std::fs::metadata(&binary)?.len() as f64 / 1e6;
        println!("{name:>10}  {megabytes:>10.1}  {:>14.0}", median(times.into_iter()));
    }
    Ok(())
}

/// Starts the function `name`, and returns the time until its first response in milliseconds.
async fn time_first_response(binary: &str, name: &str, event: &str) -> Result<f64, Failure> {
    let gateway = crate::contestant::start_gateway(0).await?;
    let variables = [
        ("DUEDAY_GATEWAY", gateway.1.as_str()),
        ("DUEDAY_MAIL_URL", "outbox:/nowhere"),
        ("DUEDAY_MAIL_FROM", "Shop <billing@example.com>"),
        ("DUEDAY_DELIVERY_QUEUE", "http://127.0.0.1:1/queue"),
        ("RUST_LOG", "warn"),
    ];
    // This call returns as soon as the process was started, before the function is ready.
    let mut function = Function::start_without_log(binary, name, &variables).await;
    let started = Instant::now();
    let deadline = (Utc::now() + TimeDelta::minutes(1)).timestamp_millis();
    let response = function.invoke(event, deadline).await;
    let time = milliseconds(started.elapsed());
    gateway.0.stop().await?;
    match response {
        InvocationResult::Response(_) => Ok(time),
        other => Err(format!("{name} returned {other:?}").into()),
    }
}
