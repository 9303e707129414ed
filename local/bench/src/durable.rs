//! `bench durable`: compares Dueday with a program that a merchant could install instead of Dueday: the renewals of
//! django-flexible-subscriptions on PostgreSQL. Both programs commit to a disk and charge over HTTP.
//! django-flexible-subscriptions has no claims, and settles payments without a transaction.

use std::time::Instant;

use clap::Args;

use crate::contestant::{
    Contestant, MeasuredWork, Measurement, TableKind, expect_line, fetch_charge_count, measure_contestant,
    measure_when_ready, start_gateway,
};
use crate::process::ChildProcess;
use crate::{Failure, peers};

#[derive(Debug, Args)]
pub struct DurableArgs {
    /// Number of due payments
    #[arg(long, default_value_t = 2_000)]
    pub rows: u32,
    /// Number of measurements of each program
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// A PostgreSQL database whose content is deleted; libpq's variables (PGHOST, PGUSER, PGPASSWORD) select the server
    #[arg(long, env = "PGDATABASE")]
    pub database: String,
}

/// In each round, measures Dueday at three concurrencies, and then django-flexible-subscriptions. Prints a row for each
/// measurement.
pub async fn compare_with_django(args: &DurableArgs) -> Result<(), Failure> {
    let (peers, python) = (peers::install_payment_batch_peers()?, peers::install_django()?);
    println!("{:>30}  {:>8}  {:>10}  {:>11}  {:>8}", "", "parallel", "payments/s", "CPU s/1,000", "peak MB");
    let print_row = |name: &str, concurrency: u32, figures: Measurement| {
        println!(
            "{name:>30}  {concurrency:>8}  {:>10.0}  {:>11.2}  {:>8.0}",
            figures.payments_per_second, figures.cpu_seconds_per_1000, figures.peak_mb
        );
    };
    for _ in 0..args.rounds {
        for concurrency in [1, 8, 32] {
            let work = MeasuredWork { table: TableKind::Disk, ..MeasuredWork::new(args.rows, concurrency) };
            let figures = measure_contestant(Contestant::Dueday, work, &peers, "".as_ref()).await?;
            print_row("Dueday", concurrency, figures);
        }
        print_row("django-flexible-subscriptions", 1, measure_django(args, &python.to_string_lossy()).await?);
    }
    Ok(())
}

/// Measures the renewals of django-flexible-subscriptions, and checks the number of renewals and charges.
async fn measure_django(args: &DurableArgs, python: &str) -> Result<Measurement, Failure> {
    let (gateway, url) = start_gateway(0).await?;
    let environment =
        [("ROWS", args.rows.to_string()), ("GATEWAY", url.clone()), ("PGDATABASE", args.database.clone())];
    let environment = environment.map(|(name, value)| (name.to_owned(), value));
    let started = Instant::now();
    let mut process =
        ChildProcess::start(python, [crate::bench_folder().join("peers/django/renewal.py")], &environment)?;
    let figures = measure_when_ready(&mut process, started, MeasuredWork::new(args.rows, 1)).await?;
    process.write_line("check").await?;
    // The program prints the number of renewed subscriptions and the number of stored `SubscriptionTransaction`
    // records.
    expect_line(&mut process, &format!("{0} {0}", args.rows)).await?;
    let charged = fetch_charge_count(&url).await?;
    if charged != u64::from(args.rows) {
        return Err(format!("of {} payments, {charged} were charged", args.rows).into());
    }
    process.stop().await?;
    gateway.stop().await?;
    Ok(figures)
}
