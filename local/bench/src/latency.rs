//! `bench latency`: measures the throughput with the latencies of a real network, as a share of the ideal throughput. A
//! payment has three requests, one after the other: a claim, a charge and a settlement. The ideal throughput is the
//! concurrency divided by the sum of their latencies. The table returns recorded responses. The throughput of the
//! contestant `floor` shows the limit of the machine itself.

use clap::Args;

use crate::contestant::{Contestant, MeasuredWork, TableKind, measure_contestant, record_requests};
use crate::{Failure, peers};

#[derive(Debug, Args)]
pub struct LatencyArgs {
    /// Latency of each DynamoDB request in milliseconds
    #[arg(long, default_value_t = 5)]
    pub engine_ms: u64,
    /// Duration of each charge in milliseconds
    #[arg(long, default_value_t = 300)]
    pub gateway_ms: u64,
    /// Accounts processed at the same time
    #[arg(long, value_delimiter = ',', default_value = "10,100,500")]
    pub concurrency: Vec<u32>,
    /// Number of due payments, as a multiple of the concurrency
    #[arg(long, default_value_t = 120)]
    pub rows_each: u32,
    /// Contestants to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Contestant::Dueday, Contestant::Javascript, Contestant::Hyper, Contestant::Floor])]
    pub contestants: Vec<Contestant>,
}

/// Measures each contestant at each concurrency, and prints a row for each measurement.
pub async fn measure_throughput_with_latency(args: &LatencyArgs) -> Result<(), Failure> {
    let peers = peers::install_payment_batch_peers()?;
    let recorded = std::env::temp_dir().join(format!("dueday-bench-{}.json", std::process::id()));
    let path_seconds = (2.0 * args.engine_ms as f64 + args.gateway_ms as f64) / 1_000.0;
    println!(
        "{:>8}  {:>8}  {:>12}  {:>12}  {:>8}  {:>12}  {:>8}",
        "parallel", "payments", "contestant", "payments/s", "of ideal", "CPU s/1,000", "peak MB"
    );
    for &concurrency in &args.concurrency {
        let ideal = f64::from(concurrency) / path_seconds;
        let rows = concurrency * args.rows_each;
        // Use one shard, because an invocation of the daily run processes one shard.
        record_requests(MeasuredWork { shards: 1, ..MeasuredWork::new(rows, 8) }, &recorded).await?;
        let work = MeasuredWork {
            shards: 1,
            engine_ms: args.engine_ms,
            gateway_ms: args.gateway_ms,
            table: TableKind::Recorded,
            ..MeasuredWork::new(rows, concurrency)
        };
        for &contestant in &args.contestants {
            let measured = measure_contestant(contestant, work, &peers, &recorded).await?;
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
