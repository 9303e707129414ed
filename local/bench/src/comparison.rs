//! Compares the contestants (implementations of the payment batch). In each round, every contestant is measured once at
//! every concurrency.

use std::collections::BTreeMap;

use clap::Args;

use crate::Failure;
use crate::contestant::{Contestant, MeasuredWork, Measurement, measure_contestant, record_requests};
use crate::peers;

/// The arguments of the comparison of the contestants.
#[derive(Debug, Args)]
pub struct ComparisonArgs {
    /// Number of due payments
    #[arg(long, default_value_t = 5_000)]
    pub rows: u32,
    /// Number of measurements of each contestant; the results are medians
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Accounts processed at the same time
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    pub concurrency: Vec<u32>,
    /// Contestants to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = CONTESTANTS)]
    pub contestants: Vec<Contestant>,
}

/// All measurements, by concurrency (accounts processed at the same time) and contestant.
pub type Results = BTreeMap<(u32, Contestant), Vec<Measurement>>;

/// The contestants that are measured by default.
pub const CONTESTANTS: [Contestant; 5] =
    [Contestant::Dueday, Contestant::Boto3, Contestant::Javascript, Contestant::Hyper, Contestant::Floor];

/// Measures the selected contestants in each round at each concurrency. Returns all measurements.
pub async fn compare_payment_batches(args: &ComparisonArgs) -> Result<Results, Failure> {
    let peers = peers::install_payment_batch_peers()?;
    let recorded = std::env::temp_dir().join(format!("dueday-bench-{}.json", std::process::id()));
    if args.contestants.iter().any(|contestant| contestant.replays_recorded_requests()) {
        eprintln!("recording the function's requests");
        record_requests(MeasuredWork::new(args.rows, 1), &recorded).await?;
    }
    let mut results = Results::new();
    for round in 1..=args.rounds {
        for &concurrency in &args.concurrency {
            for &contestant in &args.contestants {
                let work = MeasuredWork::new(args.rows, concurrency);
                let measured = measure_contestant(contestant, work, &peers, &recorded).await?;
                eprintln!(
                    "round {round} of {}, {concurrency} parallel, {}: {:.0} payments/s",
                    args.rounds,
                    contestant.name(),
                    measured.payments_per_second
                );
                results.entry((concurrency, contestant)).or_default().push(measured);
            }
        }
    }
    if args.contestants.iter().any(|contestant| contestant.replays_recorded_requests()) {
        std::fs::remove_file(&recorded)?;
    }
    Ok(results)
}
