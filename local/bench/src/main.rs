//! `cargo run --release -p bench`: compares the payment batch with other implementations (contestants) in one run.
//!
//! Every contestant does the same work: it reads the payment index page by page, and claims, charges over HTTP and
//! settles each row. Each measurement uses a new engine and a new gateway in their own processes, and then checks the
//! stored result. The rounds of the contestants alternate, because the speed of the machine varies. The results are
//! medians.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

mod audit_speed;
mod buckets;
mod chart;
mod comparison;
mod contestant;
mod deliveries;
mod durable;
mod engine;
mod first_events;
mod floor;
mod gateway;
mod http_api;
mod hyper;
mod latency;
mod memory;
mod peers;
mod process;
mod reconcile;
mod recorder;
mod report;
mod scale;
mod start;
mod table;

// This allocator reduces the processor time of the engine, which shares the machine with the measured program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Compares the payment batch with other implementations
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    comparison: comparison::ComparisonArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the throughput with the latencies of a real network
    Latency(latency::LatencyArgs),
    /// Measure the peak memory with more and more due payments
    Memory(memory::MemoryArgs),
    /// Compare Dueday with django-flexible-subscriptions on PostgreSQL; both store their data on a disk
    Durable(durable::DurableArgs),
    /// Measure reading all open orders, from a write-sharded index and with a scan
    Buckets(buckets::BucketsArgs),
    /// Measure the audit of a large table, and compare it with a plain scan of the same table
    Audit(audit_speed::AuditArgs),
    /// Measure the speed and the peak memory of the comparison with the gateway
    Reconcile(reconcile::ReconcileArgs),
    /// Measure how much broken webhook endpoints delay the deliveries to all other endpoints
    Deliveries(deliveries::DeliveriesArgs),
    /// Compare the HTTP API with the same API in JavaScript
    Api(http_api::ApiArgs),
    /// Measure the size and the start time of each function
    Start(start::StartArgs),
    /// Simulate the busiest day of ten million subscriptions
    Scale(scale::ScaleArgs),
    /// Serve an engine with due payments
    #[command(hide = true)]
    Engine(engine::EngineArgs),
    /// Serve a table that returns recorded responses
    #[command(hide = true)]
    Table(table::TableArgs),
    /// Serve a gateway that accepts every charge
    #[command(hide = true)]
    Gateway(gateway::GatewayArgs),
    /// Replay recorded requests over plain sockets
    #[command(hide = true)]
    Floor(floor::FloorArgs),
    /// Send recorded requests again with the HTTP client hyper
    #[command(hide = true)]
    Hyper(floor::FloorArgs),
}

/// The error of a failed measurement.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns the folder of this crate. The folder contains the programs of the contestants, and the benchmarks write
/// their results into this folder.
pub fn bench_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    match arguments.command {
        None => report::report_results(
            &arguments.comparison,
            &comparison::compare_payment_batches(&arguments.comparison).await?,
        ),
        Some(Command::Latency(args)) => latency::measure_throughput_with_latency(&args).await,
        Some(Command::Buckets(args)) => buckets::measure_reads_of_open_orders(&args).await,
        Some(Command::Audit(args)) => audit_speed::measure_audit_speed(&args).await,
        Some(Command::Reconcile(args)) => reconcile::measure_reconciliation(&args).await,
        Some(Command::Memory(args)) => memory::measure_peak_memory(&args).await,
        Some(Command::Durable(args)) => durable::compare_with_django(&args).await,
        Some(Command::Deliveries(args)) => deliveries::measure_delivery_delays(&args).await,
        Some(Command::Api(args)) => http_api::compare_api_servers(&args).await,
        Some(Command::Start(args)) => start::measure_function_starts(&args).await,
        Some(Command::Scale(args)) => scale::simulate_busiest_day(&args),
        Some(Command::Engine(args)) => engine::serve_engine(&args).await,
        Some(Command::Table(args)) => table::serve_recorded_table(&args).await,
        Some(Command::Gateway(args)) => gateway::serve_gateway(&args).await,
        Some(Command::Floor(args)) => floor::replay_recorded_requests(&args),
        // The replay needs its own thread, because it creates its own runtime.
        Some(Command::Hyper(args)) => {
            tokio::task::spawn_blocking(move || hyper::replay_recorded_requests(&args)).await?
        }
    }
}
