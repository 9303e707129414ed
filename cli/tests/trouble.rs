//! Years in trouble: requests and answers that are lost, runs that end anywhere, outages, customers who act; and an oracle
//! that checks every charge. Some seeds are fixed, and some are new each time.

use clap::Parser as _;
use dueday::arguments::Command;
use dueday::{Arguments, Odds, Simulated, books, population, simulate};
use indicatif::ProgressBar;

/// Plays what somebody who types `options` sees.
async fn simulated(options: &str) -> (String, Simulated) {
    let line = format!("dueday simulate --subscriptions 24 --from 2027-12-01 --months 15 --shards 1 {options}");
    let arguments = Arguments::parse_from(line.split_whitespace());
    let Some(Command::Simulate(command)) = arguments.command else { panic!("{line}") };
    let odds = Odds { faults: command.faults.unwrap(), seed: command.seed.unwrap() };
    let (rows, span) = (population(command.subscriptions), (command.from, command.months));
    let played = simulate(&arguments.settings, rows, span, Some(odds), &ProgressBar::hidden()).await;
    (line, played.unwrap())
}

/// Plays it, and says how to see it again if anything does not hold.
async fn plays_out_well(options: &str) -> Simulated {
    let (line, simulated) = simulated(options).await;
    assert!(simulated.holds(), "{:#?}\nTo see it again: {line}", simulated.findings);
    simulated
}

#[tokio::test]
async fn years_in_trouble_charge_everyone_what_was_owed_and_lose_nothing() {
    let (mut charges, mut crashes, mut outage_days, mut acts) = (0, 0, 0, 0);
    for options in [
        "--faults 0.02 --seed 1",
        "--faults 0.02 --seed 2 --catch-up latest",
        "--faults 0.1 --seed 3 --time-zone America/New_York",
        "--faults 0.1 --seed 4 --after-last-retry cancelled --catch-up latest",
        "--faults 0.3 --seed 5 --time-zone Pacific/Kiritimati --retry-gaps 3,9,15",
    ] {
        let simulated = plays_out_well(options).await;
        let trouble = simulated.trouble.unwrap();
        (charges, crashes) = (charges + simulated.charges, crashes + trouble.crashes);
        (outage_days, acts) = (outage_days + trouble.outage_days, acts + trouble.acts);
    }
    assert!(charges > 500 && crashes > 100, "{charges} charges, {crashes} crashes");
    assert!(outage_days > 100 && acts > 500, "{outage_days} days, {acts} acts");
}

#[tokio::test]
async fn years_in_new_trouble_do_so_too() {
    for faults in ["0.02", "0.02", "0.05", "0.1"] {
        plays_out_well(&format!("--faults {faults} --seed {}", rand::random::<u64>())).await;
    }
}

#[tokio::test]
async fn a_seed_plays_the_same_again() {
    let options = "--faults 0.1 --seed 42";
    let ((_, first), (_, again)) = (simulated(options).await, simulated(options).await);
    assert_eq!(first.ledger, again.ledger);
    assert_eq!(first.trouble, again.trouble);
    let books = async |simulated: &Simulated| books::books(&simulated.table, &simulated.ledger).await.unwrap();
    assert_eq!(books(&first).await, books(&again).await);
    assert_eq!((first.receipts, first.reminders, first.runs), (again.receipts, again.reminders, again.runs));
    let (_, another) = simulated("--faults 0.1 --seed 43").await;
    assert_ne!(first.ledger, another.ledger);
}
