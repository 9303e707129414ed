//! `bench memory`: measures the payment function's peak memory with more and more due payments. The peak memory must
//! not grow with the number of payments.

use clap::Args;

use crate::contestant::{Contestant, MeasuredWork, measure_contestant};
use crate::{Failure, peers};

#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Numbers of due payments
    #[arg(long, value_delimiter = ',', default_value = "5000,50000,500000")]
    pub rows: Vec<u32>,
    /// Accounts processed at the same time
    #[arg(long, default_value_t = 32)]
    pub concurrency: u32,
}

/// Measures the payment function with each number of due payments, and prints a row for each measurement.
pub async fn measure_peak_memory(args: &MemoryArgs) -> Result<(), Failure> {
    let peers = peers::install_payment_batch_peers()?;
    println!("{:>9}  {:>10}  {:>11}  {:>8}", "payments", "payments/s", "CPU s/1,000", "peak MB");
    for &rows in &args.rows {
        // With a delay, the engine stores no idempotency tokens of transactions. Without a delay, the engine would
        // store the tokens, and search more and more of them for each transaction.
        let work = MeasuredWork { shards: 1, engine_ms: 1, ..MeasuredWork::new(rows, args.concurrency) };
        let measured = measure_contestant(Contestant::Dueday, work, &peers, "".as_ref()).await?;
        println!(
            "{rows:>9}  {:>10.0}  {:>11.2}  {:>8.1}",
            measured.payments_per_second, measured.cpu_seconds_per_1000, measured.peak_mb
        );
    }
    Ok(())
}
