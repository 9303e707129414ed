//! `cargo run --release -p bench`: the payment batch beside peers, in one run, as ratios.
//!
//! Every contestant does the same work: it pages through the payment index, and claims, charges over HTTP and settles each
//! row, against a fresh engine and a stub gateway in processes of their own. What it has done is read back and checked.
//! Rounds are interleaved, because machines are noisy; medians count.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

mod buckets;
mod chart;
mod contestant;
mod durable;
mod engine;
mod floor;
mod gateway;
mod hyper;
mod latency;
mod memory;
mod peers;
mod process;
mod recorder;
mod report;
mod rounds;
mod scale;
mod start;
mod table;

// The engine shares the machine with what is measured: the less it takes, the better.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measures the payment batch beside peers.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    rounds: rounds::RoundsArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Throughput where each call has the latency of the real world
    Latency(latency::LatencyArgs),
    /// Peak memory as more and more is due
    Memory(memory::MemoryArgs),
    /// Beside django-flexible-subscriptions on PostgreSQL, both on disk
    Durable(durable::DurableArgs),
    /// All open orders, over a write-sharded index and by a scan
    Buckets(buckets::BucketsArgs),
    /// Each function's size, and its start
    Start(start::StartArgs),
    /// Simulate the busiest day of ten million subscriptions
    Scale(scale::ScaleArgs),
    /// Serve an engine with payments that are due
    #[command(hide = true)]
    Engine(engine::EngineArgs),
    /// Serve a table that knows its answers
    #[command(hide = true)]
    Table(table::TableArgs),
    /// Serve a gateway that accepts everything
    #[command(hide = true)]
    Gateway(gateway::GatewayArgs),
    /// Replay recorded requests over plain sockets
    #[command(hide = true)]
    Floor(floor::FloorArgs),
    /// Replay recorded requests by hyper
    #[command(hide = true)]
    Hyper(floor::FloorArgs),
}

/// Why a measurement could not be made.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Where results are written.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    match arguments.command {
        None => report::report(&arguments.rounds, &rounds::run(&arguments.rounds).await?),
        Some(Command::Latency(args)) => latency::run(&args).await,
        Some(Command::Buckets(args)) => buckets::run(&args).await,
        Some(Command::Memory(args)) => memory::run(&args).await,
        Some(Command::Durable(args)) => durable::run(&args).await,
        Some(Command::Start(args)) => start::run(&args).await,
        Some(Command::Scale(args)) => scale::run(&args),
        Some(Command::Engine(args)) => engine::serve(&args).await,
        Some(Command::Table(args)) => table::serve(&args).await,
        Some(Command::Gateway(args)) => gateway::serve(&args).await,
        Some(Command::Floor(args)) => floor::replay(&args),
        // It has a thread and a runtime of its own.
        Some(Command::Hyper(args)) => tokio::task::spawn_blocking(move || hyper::replay(&args)).await?,
    }
}
