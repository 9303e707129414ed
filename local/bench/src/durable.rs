//! Beside a program that a merchant could install instead: django-flexible-subscriptions on PostgreSQL, doing its own
//! renewals. Both commit to a disk, both charge over HTTP. It has no claim and no settlement in a transaction.

use std::time::Instant;

use clap::Args;

use crate::contestant::{Contestant, Measured, On, Work, expect, gateway, made, measure, told};
use crate::process::Process;
use crate::{Failure, peers};

#[derive(Debug, Args)]
pub struct DurableArgs {
    /// Payments that are due
    #[arg(long, default_value_t = 2_000)]
    pub rows: u32,
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// A PostgreSQL database that is emptied; libpq's variables (PGHOST, PGUSER, PGPASSWORD) say where it is
    #[arg(long, env = "PGDATABASE")]
    pub database: String,
}

pub async fn run(args: &DurableArgs) -> Result<(), Failure> {
    let (peers, python) = (peers::install()?, peers::install_django()?);
    println!("{:>30}  {:>8}  {:>10}  {:>11}  {:>8}", "", "at once", "payments/s", "CPU s/1,000", "peak MB");
    let line = |name: &str, concurrency: u32, figures: Measured| {
        println!(
            "{name:>30}  {concurrency:>8}  {:>10.0}  {:>11.2}  {:>8.0}",
            figures.payments_per_second, figures.cpu_seconds_per_1000, figures.peak_mb
        );
    };
    for _ in 0..args.rounds {
        for concurrency in [1, 8, 32] {
            let work = Work { on: On::Disk, ..Work::of(args.rows, concurrency) };
            let figures = measure(Contestant::Dueday, work, &peers, "".as_ref()).await?;
            line("Dueday", concurrency, figures);
        }
        line("django-flexible-subscriptions", 1, django(args, &python.to_string_lossy()).await?);
    }
    Ok(())
}

async fn django(args: &DurableArgs, python: &str) -> Result<Measured, Failure> {
    let (gateway, url) = gateway(0).await?;
    let environment =
        [("ROWS", args.rows.to_string()), ("GATEWAY", url.clone()), ("PGDATABASE", args.database.clone())];
    let environment = environment.map(|(name, value)| (name.to_owned(), value));
    let started = Instant::now();
    let mut process = Process::start(python, [crate::folder().join("peers/django/renewal.py")], &environment)?;
    let figures = told(&mut process, started, Work::of(args.rows, 1)).await?;
    process.tell("check").await?;
    // Renewed, and its transactions.
    expect(&mut process, &format!("{0} {0}", args.rows)).await?;
    let charged = made(&url).await?;
    if charged != u64::from(args.rows) {
        return Err(format!("of {} rows, {charged} were charged", args.rows).into());
    }
    process.stop().await?;
    gateway.stop().await?;
    Ok(figures)
}
