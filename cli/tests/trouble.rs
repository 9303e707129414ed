//! Years in trouble: requests and answers that are lost, runs that end anywhere, outages, customers who act; and an oracle
//! that checks every charge. Some seeds are fixed, and some are new each time.

use dueday::arguments::Settings;
use dueday::{Odds, Simulated, population, simulate};
use indicatif::ProgressBar;

const SUBSCRIPTIONS: u32 = 24;
const FROM: &str = "2027-12-01";
const MONTHS: u32 = 15;

async fn simulated(odds: Odds, catch_up: &str) -> Simulated {
    let settings =
        Settings { shards: Some("1".to_owned()), catch_up: Some(catch_up.to_owned()), ..Settings::default() };
    let rows = population(SUBSCRIPTIONS);
    simulate(&settings, rows, (FROM.parse().unwrap(), MONTHS), Some(odds), &ProgressBar::hidden()).await.unwrap()
}

/// Plays what a seed decides, and says how to see it again if anything does not hold.
async fn plays_out_well(odds: Odds, catch_up: &str) -> Simulated {
    let simulated = simulated(odds, catch_up).await;
    let Odds { faults, seed } = odds;
    let again = format!(
        "dueday simulate --subscriptions {SUBSCRIPTIONS} --from {FROM} --months {MONTHS} --shards 1 \
         --catch-up {catch_up} --faults {faults} --seed {seed}"
    );
    assert!(simulated.holds(), "{:#?}\nTo see it again: {again}", simulated.findings);
    simulated
}

#[tokio::test]
async fn years_in_trouble_charge_everyone_what_was_owed_and_lose_nothing() {
    let (mut charges, mut crashes, mut outage_days, mut acts) = (0, 0, 0, 0);
    for (seed, faults, catch_up) in
        [(1, 0.02, "each"), (2, 0.02, "latest"), (3, 0.1, "each"), (4, 0.1, "latest"), (5, 0.3, "each")]
    {
        let simulated = plays_out_well(Odds { faults, seed }, catch_up).await;
        let trouble = simulated.trouble.unwrap();
        (charges, crashes) = (charges + simulated.charges, crashes + trouble.crashes);
        (outage_days, acts) = (outage_days + trouble.outage_days, acts + trouble.acts);
    }
    assert!(
        charges > 500 && crashes > 100 && outage_days > 100 && acts > 500,
        "{charges} {crashes} {outage_days} {acts}"
    );
}

#[tokio::test]
async fn years_in_new_trouble_do_so_too() {
    for faults in [0.02, 0.02, 0.05, 0.1] {
        plays_out_well(Odds { faults, seed: rand::random() }, "each").await;
    }
}

#[tokio::test]
async fn a_seed_plays_the_same_again() {
    let odds = Odds { faults: 0.1, seed: 42 };
    let (first, again) = (simulated(odds, "each").await, simulated(odds, "each").await);
    assert_eq!(first.ledger, again.ledger);
    assert_eq!(first.trouble, again.trouble);
    assert_eq!((first.receipts, first.reminders, first.runs), (again.receipts, again.reminders, again.runs));
    let another = simulated(Odds { seed: 43, ..odds }, "each").await;
    assert_ne!(first.ledger, another.ledger);
}
