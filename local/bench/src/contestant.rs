//! One contestant's batch on a fresh engine: started, measured, checked, stopped.

use std::path::Path;
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use billing::Subscription;
use chrono::{TimeDelta, Utc};
use clap::ValueEnum;
use futures::TryStreamExt as _;
use serde::Serialize;
use store::Table;
use testkit::{Answer, RuntimeApi};

use crate::Failure;
use crate::engine::{SHARDS, TABLE};
use crate::peers::Peers;
use crate::process::{Process, built, cpu_seconds, peak_mb};
use crate::recorder::Recorder;

/// Who does the batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Contestant {
    Dueday,
    Boto3,
    Javascript,
    /// The function's requests by hyper, on one thread.
    Hyper,
    /// The function's requests over plain sockets.
    Floor,
}

impl Contestant {
    /// Whether it only sends what was recorded.
    pub fn replays(self) -> bool {
        matches!(self, Contestant::Hyper | Contestant::Floor)
    }

    pub fn name(self) -> &'static str {
        match self {
            Contestant::Dueday => "Dueday",
            Contestant::Boto3 => "boto3",
            Contestant::Javascript => "JavaScript",
            Contestant::Hyper => "hyper alone",
            Contestant::Floor => "raw sockets",
        }
    }
}

/// The work of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    pub rows: u32,
    pub shards: u32,
    pub concurrency: u32,
    /// Milliseconds by which the engine's and the gateway's answers are held back.
    pub engine_ms: u64,
    pub gateway_ms: u64,
    pub on: On,
}

/// What the table of a batch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    Memory,
    /// It commits to a disk.
    Disk,
    /// Answers that were recorded.
    Record,
}

impl Work {
    /// `rows`, as fast as they go.
    pub fn of(rows: u32, concurrency: u32) -> Self {
        Self { rows, shards: SHARDS, concurrency, engine_ms: 0, gateway_ms: 0, on: On::Memory }
    }
}

/// What was measured of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measured {
    pub payments_per_second: f64,
    pub cpu_seconds_per_1000: f64,
    pub peak_mb: f64,
    /// From the start of the process to the answer of the first event, or of the first query.
    pub start_ms: f64,
}

/// What a batch reaches.
struct Surroundings {
    engine: (Process, String),
    gateway: (Process, String),
    on: On,
}

/// Starts a gateway: its process and its address.
pub async fn gateway(delay_ms: u64) -> Result<(Process, String), Failure> {
    let mut gateway = Process::of_bench(&["gateway".to_owned(), format!("--delay-ms={delay_ms}")])?;
    let url = gateway.line().await?;
    Ok((gateway, url))
}

/// How many charges the gateway at `url` has made.
pub async fn made(url: &str) -> Result<u64, Failure> {
    told_at(url, "made").await
}

async fn told_at(url: &str, what: &str) -> Result<u64, Failure> {
    Ok(reqwest::get(format!("{url}/{what}")).await?.text().await?.parse()?)
}

impl Surroundings {
    async fn new(work: Work, recorded: &Path) -> Result<Self, Failure> {
        let gateway = gateway(work.gateway_ms).await?;
        let delay = format!("--delay-ms={}", work.engine_ms);
        let mut args = match work.on {
            On::Record => vec!["table".to_owned(), format!("--recorded={}", recorded.display()), delay],
            On::Memory | On::Disk => {
                let (rows, shards) = (format!("--rows={}", work.rows), format!("--shards={}", work.shards));
                vec!["engine".to_owned(), rows, shards, delay]
            }
        };
        if work.on == On::Disk {
            args.push("--on-disk".to_owned());
        }
        let mut engine = Process::of_bench(&args)?;
        let url = engine.line().await?;
        Ok(Self { engine: (engine, url), gateway, on: work.on })
    }

    /// That each subscription was charged once, has its receipt, and is due next month.
    async fn check(&self, rows: u32) -> Result<(), Failure> {
        let rows = u64::from(rows);
        let made = made(&self.gateway.1).await?;
        if self.on == On::Record {
            let settled = told_at(&self.engine.1, "settled").await?;
            let all = (made, settled) == (rows, rows);
            return if all {
                Ok(())
            } else {
                Err(format!("of {rows} rows, {made} were charged, {settled} settled").into())
            };
        }
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .endpoint_url(&self.engine.1)
            .build();
        let client = aws_sdk_dynamodb::Client::from_conf(config);
        let receipts = client.scan().table_name(TABLE).consistent_read(true);
        let receipts = receipts.filter_expression("begins_with(SK, :receipt)");
        let receipts = receipts
            .expression_attribute_values(":receipt", aws_sdk_dynamodb::types::AttributeValue::S("REC#".to_owned()))
            .into_paginator()
            .items()
            .send()
            .try_collect()
            .await?;
        let table = Table::new(client, TABLE, TimeDelta::days(190));
        let all: Vec<Subscription> = table.all_subscriptions().try_collect().await?;
        let today = Utc::now().date_naive();
        let is_settled = |s: &&Subscription| {
            s.attempt.is_none() && s.due_on > today && s.next_payment_on == Some(s.due_on) && s.attempt_seq == 1
        };
        let settled = u64::try_from(all.iter().filter(is_settled).count())?;
        let receipts = u64::try_from(receipts.len())?;
        if (made, receipts, settled) != (rows, rows, rows) {
            return Err(format!(
                "of {rows} rows, {made} were charged, {receipts} have receipts, {settled} are settled"
            )
            .into());
        }
        Ok(())
    }

    async fn stop(self) -> Result<(), Failure> {
        self.engine.0.stop().await?;
        self.gateway.0.stop().await
    }
}

/// Does `work` as `contestant`. Those that replay, and a table of a record, need what was `recorded`.
pub async fn measure(contestant: Contestant, work: Work, peers: &Peers, recorded: &Path) -> Result<Measured, Failure> {
    let surroundings = Surroundings::new(work, recorded).await?;
    let (engine, gateway) = (surroundings.engine.1.clone(), surroundings.gateway.1.clone());
    let measured = match contestant {
        Contestant::Dueday => function(work, &engine, &gateway).await?,
        _ => peer(contestant, work, (&engine, &gateway), peers, recorded).await?,
    };
    surroundings.check(work.rows).await?;
    surroundings.stop().await?;
    Ok(measured)
}

/// Records the requests of a batch, and their answers, to `file`.
pub async fn record(work: Work, file: &Path) -> Result<(), Failure> {
    let surroundings = Surroundings::new(work, file).await?;
    let recorder = Recorder::default();
    let engine = recorder.before(&surroundings.engine.1, false).await?;
    let gateway = recorder.before(&surroundings.gateway.1, true).await?;
    function(work, &engine, &gateway).await?;
    surroundings.check(work.rows).await?;
    surroundings.stop().await?;
    Ok(std::fs::write(file, serde_json::to_vec(&recorder.chains())?)?)
}

async fn function(work: Work, engine: &str, gateway: &str) -> Result<Measured, Failure> {
    let mut api = RuntimeApi::start().await?;
    let mut environment: Vec<(String, String)> =
        api.environment("payments").map(|(name, value)| (name.to_owned(), value)).to_vec();
    let given = [
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("DUEDAY_DYNAMODB_ENDPOINT", engine.to_owned()),
        ("DUEDAY_GATEWAY", gateway.to_owned()),
        ("DUEDAY_GATEWAY_RATE", "10000".to_owned()),
        ("DUEDAY_CONCURRENCY", work.concurrency.to_string()),
        ("RUST_LOG", "warn".to_owned()),
    ];
    environment.extend(given.map(|(name, value)| (name.to_owned(), value)));
    let started = Instant::now();
    let program = built("payments")?;
    let mut process = Process::start(&program.to_string_lossy(), None::<&str>, &environment)?;
    let deadline = (Utc::now() + TimeDelta::hours(2)).timestamp_millis();
    // A day on which nothing was due: the answer of a function that has just begun.
    let first = process.before_it_ends(api.invoke(r#"{"date":"2020-01-01"}"#, deadline)).await?;
    let start_ms = milliseconds(started.elapsed());
    answered(first)?;
    let (cpu, began) = (cpu_seconds(process.id())?, Instant::now());
    let today = Utc::now().date_naive();
    let event = format!(r#"{{"date":"{today}"}}"#);
    let report = answered(process.before_it_ends(api.invoke(&event, deadline)).await?)?;
    let seconds = began.elapsed().as_secs_f64();
    if report["counts"]["paid"] != work.rows {
        return Err(format!("not all was paid: {report}").into());
    }
    let measured = measured(work, seconds, cpu_seconds(process.id())? - cpu, peak_mb(process.id())?, start_ms);
    process.stop().await?;
    Ok(measured)
}

fn answered(answer: Option<Answer>) -> Result<serde_json::Value, Failure> {
    match answer {
        Some(Answer::Response(value)) => Ok(value),
        other => Err(format!("the function answered {other:?}").into()),
    }
}

async fn peer(
    contestant: Contestant,
    work: Work,
    (engine, gateway): (&str, &str),
    peers: &Peers,
    recorded: &Path,
) -> Result<Measured, Failure> {
    let environment = [
        ("ENGINE", engine.to_owned()),
        ("GATEWAY", gateway.to_owned()),
        ("CONCURRENCY", work.concurrency.to_string()),
        ("SHARDS", work.shards.to_string()),
        ("TODAY", Utc::now().date_naive().to_string()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("AWS_DEFAULT_REGION", "eu-west-1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let started = Instant::now();
    let mut process = match contestant {
        Contestant::Boto3 => {
            let script = crate::folder().join("peers/boto3/batch.py");
            Process::start(&peers.python.to_string_lossy(), [script], &environment)?
        }
        Contestant::Javascript => Process::start("node", [&peers.javascript], &environment)?,
        Contestant::Floor | Contestant::Hyper | Contestant::Dueday => {
            let (recorded, concurrency) = (recorded.to_string_lossy().into_owned(), work.concurrency.to_string());
            let args = [
                if contestant == Contestant::Hyper { "hyper" } else { "floor" },
                "--recorded",
                &recorded,
                "--engine",
                engine,
                "--gateway",
                gateway,
                "--concurrency",
                &concurrency,
            ];
            Process::of_bench(&args.map(str::to_owned))?
        }
    };
    let measured = told(&mut process, started, work).await?;
    process.stop().await?;
    Ok(measured)
}

/// Lets a program that was `started` then do its `work`, as soon as it is ready.
pub async fn told(process: &mut Process, started: Instant, work: Work) -> Result<Measured, Failure> {
    expect(process, "ready").await?;
    let start_ms = milliseconds(started.elapsed());
    let (cpu, began) = (cpu_seconds(process.id())?, Instant::now());
    process.tell("go").await?;
    expect(process, "done").await?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(measured(work, seconds, cpu_seconds(process.id())? - cpu, peak_mb(process.id())?, start_ms))
}

pub async fn expect(process: &mut Process, word: &str) -> Result<(), Failure> {
    let line = process.line().await?;
    if line == word { Ok(()) } else { Err(format!("expected {word:?}, and it said {line:?}").into()) }
}

fn measured(work: Work, seconds: f64, cpu: f64, peak_mb: f64, start_ms: f64) -> Measured {
    let rows = f64::from(work.rows);
    Measured { payments_per_second: rows / seconds, cpu_seconds_per_1000: cpu / rows * 1_000.0, peak_mb, start_ms }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
