//! Throughput where each call has the latency of the real world: what is reached of concurrency divided by the sum of the
//! latencies on a payment's path, which are a claim, a charge and a settlement. The table knows its answers; what the machine
//! itself allows, the floor shows.

use clap::Args;

use crate::contestant::{Contestant, On, Work, measure, record};
use crate::{Failure, peers};

#[derive(Debug, Args)]
pub struct LatencyArgs {
    /// Milliseconds of each call to DynamoDB
    #[arg(long, default_value_t = 5)]
    pub engine_ms: u64,
    /// Milliseconds of each charge
    #[arg(long, default_value_t = 300)]
    pub gateway_ms: u64,
    #[arg(long, value_delimiter = ',', default_value = "10,100,500")]
    pub concurrency: Vec<u32>,
    /// Payments that are due, for each that is worked on at the same time
    #[arg(long, default_value_t = 120)]
    pub rows_each: u32,
    /// Who takes part
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Contestant::Dueday, Contestant::Javascript, Contestant::Hyper, Contestant::Floor])]
    pub contestants: Vec<Contestant>,
}

pub async fn run(args: &LatencyArgs) -> Result<(), Failure> {
    let peers = peers::install()?;
    let recorded = std::env::temp_dir().join(format!("dueday-bench-{}.json", std::process::id()));
    let path_seconds = (2.0 * args.engine_ms as f64 + args.gateway_ms as f64) / 1_000.0;
    println!(
        "{:>8}  {:>8}  {:>12}  {:>12}  {:>8}  {:>12}  {:>8}",
        "at once", "payments", "contestant", "payments/s", "of ideal", "CPU s/1,000", "peak MB"
    );
    for &concurrency in &args.concurrency {
        let ideal = f64::from(concurrency) / path_seconds;
        let rows = concurrency * args.rows_each;
        // One shard, as an invocation of the daily run walks it.
        record(Work { shards: 1, ..Work::of(rows, 8) }, &recorded).await?;
        let work = Work {
            shards: 1,
            engine_ms: args.engine_ms,
            gateway_ms: args.gateway_ms,
            on: On::Record,
            ..Work::of(rows, concurrency)
        };
        for &contestant in &args.contestants {
            let measured = measure(contestant, work, &peers, &recorded).await?;
            println!(
                "{concurrency:>8}  {rows:>8}  {:>12}  {:>12.0}  {:>7.1}%  {:>12.2}  {:>8.0}",
                contestant.name(),
                measured.payments_per_second,
                measured.payments_per_second / ideal * 100.0,
                measured.cpu_seconds_per_1000,
                measured.peak_mb,
            );
        }
    }
    if recorded.exists() {
        std::fs::remove_file(&recorded)?;
    }
    Ok(())
}
