//! Makes one measurement: starts a new engine and a new gateway, runs the payment batch of a contestant, measures the
//! batch, checks the stored result, and stops all processes.

use std::path::Path;
use std::time::{Duration, Instant};

use billing::Subscription;
use chrono::{TimeDelta, Utc};
use clap::ValueEnum;
use futures::TryStreamExt as _;
use serde::Serialize;
use store::Table;
use testkit::{InvocationResult, RuntimeApi};

use crate::Failure;
use crate::engine::{SHARDS, TABLE, create_client_of_engine};
use crate::peers::InstalledPeers;
use crate::process::{ChildProcess, path_of_built_program, read_cpu_seconds, read_peak_memory_mb};
use crate::recorder::RequestRecorder;

/// An implementation of the payment batch that is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Contestant {
    /// Dueday's payment function.
    Dueday,
    /// The Python program in `peers/boto3`.
    Boto3,
    /// The Node.js program in `peers/javascript`.
    Javascript,
    /// Replays the recorded requests of Dueday's payment function with the HTTP client hyper, on one thread.
    Hyper,
    /// Replays the recorded requests of Dueday's payment function over plain sockets.
    Floor,
}

impl Contestant {
    /// Returns whether the contestant only replays recorded requests.
    pub fn replays_recorded_requests(self) -> bool {
        matches!(self, Contestant::Hyper | Contestant::Floor)
    }

    /// Returns the name of the contestant in the results.
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

/// The size of a payment batch, and the environment in which the batch runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredWork {
    /// The number of due payments.
    pub rows: u32,
    /// The number of shards of the table.
    pub shards: u32,
    /// The number of accounts that are processed at the same time.
    pub concurrency: u32,
    /// How long, in milliseconds, the benchmark delays each response of the database engine, to imitate the latency of
    /// DynamoDB.
    pub engine_ms: u64,
    /// The delay of each response of the gateway, in milliseconds.
    pub gateway_ms: u64,
    pub table: TableKind,
}

/// The kind of table that a batch uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// An embedded engine in memory.
    Memory,
    /// An embedded engine that commits to a disk.
    Disk,
    /// A server that returns the recorded responses of an engine.
    Recorded,
}

impl MeasuredWork {
    /// Creates the work of `rows` payments with a table in memory. The engine and the gateway respond without delays.
    pub fn new(rows: u32, concurrency: u32) -> Self {
        Self { rows, shards: SHARDS, concurrency, engine_ms: 0, gateway_ms: 0, table: TableKind::Memory }
    }
}

/// The measured figures of one batch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measurement {
    pub payments_per_second: f64,
    /// The processor time for 1,000 payments, in seconds.
    pub cpu_seconds_per_1000: f64,
    /// The largest resident memory of the contestant's process, in MB.
    pub peak_mb: f64,
    /// The time from the start of the contestant's process to the response to its first event or query, in
    /// milliseconds.
    pub start_ms: f64,
}

/// The database engine and the gateway that a batch uses, each with its process and its URL.
struct MeasurementServers {
    engine: (ChildProcess, String),
    gateway: (ChildProcess, String),
    table: TableKind,
}

/// Starts a gateway whose responses have a delay of `delay_ms`. Returns its process and its URL.
pub async fn start_gateway(delay_ms: u64) -> Result<(ChildProcess, String), Failure> {
    let mut gateway = ChildProcess::start_bench_command(&["gateway".to_owned(), format!("--delay-ms={delay_ms}")])?;
    let url = gateway.read_line().await?;
    Ok((gateway, url))
}

/// Returns the number of charges that the gateway at `url` has made.
pub async fn fetch_charge_count(url: &str) -> Result<u64, Failure> {
    fetch_number_from_server(url, "made").await
}

/// Returns the number that the server at `url` returns as the response to a GET request for `path`.
async fn fetch_number_from_server(url: &str, path: &str) -> Result<u64, Failure> {
    Ok(reqwest::get(format!("{url}/{path}")).await?.text().await?.parse()?)
}

impl MeasurementServers {
    /// Starts the engine and the gateway for `work`. A recorded table reads its responses from the file `recorded`.
    async fn new(work: MeasuredWork, recorded: &Path) -> Result<Self, Failure> {
        let gateway = start_gateway(work.gateway_ms).await?;
        let delay = format!("--delay-ms={}", work.engine_ms);
        let mut args = match work.table {
            TableKind::Recorded => vec!["table".to_owned(), format!("--recorded={}", recorded.display()), delay],
            TableKind::Memory | TableKind::Disk => {
                let (rows, shards) = (format!("--rows={}", work.rows), format!("--shards={}", work.shards));
                vec!["engine".to_owned(), rows, shards, delay]
            }
        };
        if work.table == TableKind::Disk {
            args.push("--on-disk".to_owned());
        }
        let mut engine = ChildProcess::start_bench_command(&args)?;
        let url = engine.read_line().await?;
        Ok(Self { engine: (engine, url), gateway, table: work.table })
    }

    /// Checks that each subscription was charged once, has its receipt, and is due next month.
    async fn check_payments(&self, rows: u32) -> Result<(), Failure> {
        let rows = u64::from(rows);
        let charges = fetch_charge_count(&self.gateway.1).await?;
        if self.table == TableKind::Recorded {
            let settled = fetch_number_from_server(&self.engine.1, "settled").await?;
            return if (charges, settled) == (rows, rows) {
                Ok(())
            } else {
                Err(format!("of {rows} payments, {charges} were charged and {settled} settled").into())
            };
        }
        let client = create_client_of_engine(&self.engine.1);
        let receipts = client.scan().table_name(TABLE).consistent_read(true);
        let receipts = receipts.filter_expression("begins_with(SK, :receipt)");
        let receipts = receipts
            .expression_attribute_values(":receipt", aws_sdk_dynamodb::types::AttributeValue::S("REC#".to_owned()))
            .into_paginator()
            .items()
            .send()
            .try_collect()
            .await?;
        let table = Table::new(client, TABLE);
        let all: Vec<Subscription> = table.all_subscriptions().try_collect().await?;
        let today = Utc::now().date_naive();
        let is_settled = |s: &&Subscription| {
            s.attempt.is_none() && s.due_on > today && s.next_payment_on == Some(s.due_on) && s.attempt_seq == 1
        };
        let settled = u64::try_from(all.iter().filter(is_settled).count())?;
        let receipts = u64::try_from(receipts.len())?;
        if (charges, receipts, settled) != (rows, rows, rows) {
            return Err(format!(
                "of {rows} payments, {charges} were charged, {receipts} have receipts, and {settled} are settled"
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

/// Measures `contestant` with `work`. The file `recorded` contains the recorded requests. Only replaying contestants
/// and [`TableKind::Recorded`] read this file.
pub async fn measure_contestant(
    contestant: Contestant,
    work: MeasuredWork,
    peers: &InstalledPeers,
    recorded: &Path,
) -> Result<Measurement, Failure> {
    let environment = MeasurementServers::new(work, recorded).await?;
    let (_, engine) = &environment.engine;
    let (_, gateway) = &environment.gateway;
    let measured = match contestant {
        Contestant::Dueday => measure_function(work, engine, gateway).await?,
        _ => measure_peer(contestant, work, engine, gateway, peers, recorded).await?,
    };
    environment.check_payments(work.rows).await?;
    environment.stop().await?;
    Ok(measured)
}

/// Runs the payment function, and writes its requests and their responses to `file`.
pub async fn record_requests(work: MeasuredWork, file: &Path) -> Result<(), Failure> {
    let environment = MeasurementServers::new(work, file).await?;
    let recorder = RequestRecorder::default();
    let engine = recorder.start_proxy(&environment.engine.1, false).await?;
    let gateway = recorder.start_proxy(&environment.gateway.1, true).await?;
    measure_function(work, &engine, &gateway).await?;
    environment.check_payments(work.rows).await?;
    environment.stop().await?;
    Ok(std::fs::write(file, serde_json::to_vec(&recorder.requests_by_subscription())?)?)
}

/// Runs the payment function with the given URLs of the engine and of the gateway, and measures the function.
async fn measure_function(work: MeasuredWork, engine: &str, gateway: &str) -> Result<Measurement, Failure> {
    let mut api = RuntimeApi::start().await?;
    let mut environment: Vec<(String, String)> =
        api.environment_variables("payments").map(|(name, value)| (name.to_owned(), value)).to_vec();
    let variables = [
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("DUEDAY_DYNAMODB_ENDPOINT", engine.to_owned()),
        ("DUEDAY_GATEWAY", gateway.to_owned()),
        ("DUEDAY_GATEWAY_RATE", "10000".to_owned()),
        ("DUEDAY_CONCURRENCY", work.concurrency.to_string()),
        ("RUST_LOG", "warn".to_owned()),
    ];
    environment.extend(variables.map(|(name, value)| (name.to_owned(), value)));
    let started = Instant::now();
    let program = path_of_built_program("payments")?;
    let mut process = ChildProcess::start(&program.to_string_lossy(), None::<&str>, &environment)?;
    let deadline = (Utc::now() + TimeDelta::hours(2)).timestamp_millis();
    // No payment is due on this date, so the time until the response shows how long the function takes to start.
    let first = process.wait_while_process_runs(api.invoke(r#"{"date":"2020-01-01"}"#, deadline)).await?;
    let start_ms = duration_in_milliseconds(started.elapsed());
    expect_response(first)?;
    let (cpu, started) = (read_cpu_seconds(process.id())?, Instant::now());
    let today = Utc::now().date_naive();
    let event = format!(r#"{{"date":"{today}"}}"#);
    let report = expect_response(process.wait_while_process_runs(api.invoke(&event, deadline)).await?)?;
    let seconds = started.elapsed().as_secs_f64();
    if report["counts"]["paid"] != work.rows {
        return Err(format!("not all payments were made: {report}").into());
    }
    let measured = create_measurement(
        work,
        seconds,
        read_cpu_seconds(process.id())? - cpu,
        read_peak_memory_mb(process.id())?,
        start_ms,
    );
    process.stop().await?;
    Ok(measured)
}

/// Returns the response of an invocation. Fails if the invocation has no response.
fn expect_response(result: Option<InvocationResult>) -> Result<serde_json::Value, Failure> {
    match result {
        Some(InvocationResult::Response(value)) => Ok(value),
        other => Err(format!("the function returned {other:?}").into()),
    }
}

/// Runs a contestant that is not Dueday's payment function, and measures the contestant.
async fn measure_peer(
    contestant: Contestant,
    work: MeasuredWork,
    engine: &str,
    gateway: &str,
    peers: &InstalledPeers,
    recorded: &Path,
) -> Result<Measurement, Failure> {
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
            let script = crate::bench_folder().join("peers/boto3/batch.py");
            ChildProcess::start(&peers.python.to_string_lossy(), [script], &environment)?
        }
        Contestant::Javascript => ChildProcess::start("node", [&peers.javascript], &environment)?,
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
            ChildProcess::start_bench_command(&args.map(str::to_owned))?
        }
    };
    let measured = measure_when_ready(&mut process, started, work).await?;
    process.stop().await?;
    Ok(measured)
}

/// Waits until the program that was started at `start` is ready. Then makes the program do its `work`, and measures the
/// time and the memory.
pub async fn measure_when_ready(
    process: &mut ChildProcess,
    start: Instant,
    work: MeasuredWork,
) -> Result<Measurement, Failure> {
    expect_line(process, "ready").await?;
    let start_ms = duration_in_milliseconds(start.elapsed());
    let (cpu, started) = (read_cpu_seconds(process.id())?, Instant::now());
    process.write_line("go").await?;
    expect_line(process, "done").await?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(create_measurement(
        work,
        seconds,
        read_cpu_seconds(process.id())? - cpu,
        read_peak_memory_mb(process.id())?,
        start_ms,
    ))
}

/// Reads the next line of the program's output. Fails if the line is not `expected`.
pub async fn expect_line(process: &mut ChildProcess, expected: &str) -> Result<(), Failure> {
    let line = process.read_line().await?;
    if line == expected { Ok(()) } else { Err(format!("the program printed {line:?} instead of {expected:?}").into()) }
}

/// Computes the figures of a batch from its duration and its processor time, both in seconds.
fn create_measurement(work: MeasuredWork, seconds: f64, cpu: f64, peak_mb: f64, start_ms: f64) -> Measurement {
    let rows = f64::from(work.rows);
    Measurement { payments_per_second: rows / seconds, cpu_seconds_per_1000: cpu / rows * 1_000.0, peak_mb, start_ms }
}

/// Converts `time` to milliseconds.
pub fn duration_in_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
