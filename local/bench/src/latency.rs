//! Throughput where each call has the latency of the real world: what is reached of concurrency divided by the sum of the
//! latencies on a payment's path, which are a claim, a charge and a settlement.

use clap::Args;

use crate::contestant::{Contestant, Work, measure};
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
    #[arg(long, default_value_t = 60)]
    pub rows_each: u32,
}

pub async fn run(args: &LatencyArgs) -> Result<(), Failure> {
    let peers = peers::install()?;
    let path_seconds = (2.0 * args.engine_ms as f64 + args.gateway_ms as f64) / 1_000.0;
    println!("{:>8}  {:>12}  {:>14}  {:>8}  {:>12}", "at once", "contestant", "payments/s", "ideal", "CPU s/1,000");
    for &concurrency in &args.concurrency {
        let ideal = f64::from(concurrency) / path_seconds;
        for contestant in [Contestant::Dueday, Contestant::Javascript] {
            let rows = concurrency * args.rows_each;
            // One shard, as an invocation of the daily run walks it.
            let work = Work {
                shards: 1,
                engine_ms: args.engine_ms,
                gateway_ms: args.gateway_ms,
                ..Work::of(rows, concurrency)
            };
            let measured = measure(contestant, work, &peers, "".as_ref()).await?;
            println!(
                "{concurrency:>8}  {:>12}  {:>14.0}  {:>7.1}%  {:>12.2}",
                contestant.name(),
                measured.payments_per_second,
                measured.payments_per_second / ideal * 100.0,
                measured.cpu_seconds_per_1000,
            );
        }
    }
    Ok(())
}
