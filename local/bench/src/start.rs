//! Each function's binary, and the time from its start to the answer of its first event: a cold start without Lambda's own
//! part.

use std::time::Instant;

use chrono::{TimeDelta, Utc};
use clap::Args;
use testkit::{Answer, Function};

use crate::Failure;
use crate::contestant::milliseconds;
use crate::process::built;
use crate::report::median;

#[derive(Debug, Args)]
pub struct StartArgs {
    /// How often each is started; medians count
    #[arg(long, default_value_t = 15)]
    pub rounds: u32,
}

/// A function and an event that it is quick to answer: a health check, and days on which nothing was due.
const FIRST_EVENTS: [(&str, &str); 3] = [
    ("api", include_str!("../../../events/apigateway-health.json")),
    ("reminders", r#"{"date":"2020-01-01"}"#),
    ("payments", r#"{"date":"2020-01-01"}"#),
];

pub async fn run(args: &StartArgs) -> Result<(), Failure> {
    println!("{:>10}  {:>10}  {:>14}", "", "size MB", "first answer ms");
    for (name, event) in FIRST_EVENTS {
        let binary = built(name)?;
        let mut times = Vec::new();
        for _ in 0..args.rounds {
            times.push(first_answer(&binary.to_string_lossy(), name, event).await?);
        }
        let megabytes = std::fs::metadata(&binary)?.len() as f64 / 1e6;
        println!("{name:>10}  {megabytes:>10.1}  {:>14.0}", median(times.into_iter()));
    }
    Ok(())
}

/// Milliseconds.
async fn first_answer(binary: &str, name: &str, event: &str) -> Result<f64, Failure> {
    let gateway = crate::contestant::gateway(0).await?;
    let variables = [
        ("DUEDAY_GATEWAY", gateway.1.as_str()),
        ("DUEDAY_MAIL_URL", "outbox:/nowhere"),
        ("DUEDAY_MAIL_FROM", "Shop <billing@example.com>"),
        ("RUST_LOG", "warn"),
    ];
    // It returns when the process has been started.
    let mut function = Function::quiet(binary, name, &variables).await;
    let started = Instant::now();
    let deadline = (Utc::now() + TimeDelta::minutes(1)).timestamp_millis();
    let answer = function.invoke(event, deadline).await;
    let time = milliseconds(started.elapsed());
    gateway.0.stop().await?;
    match answer {
        Answer::Response(_) => Ok(time),
        other => Err(format!("{name} answered {other:?}").into()),
    }
}
