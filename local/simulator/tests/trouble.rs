//! Years in trouble: requests and answers that are lost, runs that end anywhere, outages, customers who act; and an oracle
//! that checks every charge. Some seeds are fixed, and some are new each time.

use shared::config::{Config, Env};
use simulator::{Odds, Simulation, books, population, simulate};

/// Plays 24 subscriptions over 15 months with these settings.
async fn simulated(odds: Odds, settings: &[(&str, &str)]) -> Simulation {
    let find = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let config = Config::read(Env(&|name| find(name).or((name == "DUEDAY_SHARDS").then(|| "1".to_owned())))).unwrap();
    simulate(config, population(24), ("2027-12-01".parse().unwrap(), 15), Some(odds), |_| {}).await.unwrap()
}

/// Plays it, and says how to see it again if anything does not hold.
async fn plays_out_well(odds: Odds, settings: &[(&str, &str)]) -> Simulation {
    let simulated = simulated(odds, settings).await;
    let Odds { faults, seed } = odds;
    let again = format!(
        "{settings:?} dueday simulate --subscriptions 24 --from 2027-12-01 --months 15 --shards 1 --faults {faults} --seed {seed}"
    );
    assert!(simulated.holds(), "{:#?}\nTo see it again: {again}", simulated.findings);
    simulated
}

#[tokio::test]
async fn years_in_trouble_charge_everyone_what_was_owed_and_lose_nothing() {
    let (mut charges, mut crashes, mut outage_days, mut acts) = (0, 0, 0, 0);
    for (faults, seed, settings) in [
        (0.02, 1, &[][..]),
        (0.02, 2, &[("DUEDAY_CATCH_UP", "latest")]),
        (0.1, 3, &[("DUEDAY_TIME_ZONE", "America/New_York")]),
        (0.1, 4, &[("DUEDAY_AFTER_LAST_RETRY", "cancelled"), ("DUEDAY_CATCH_UP", "latest")]),
        (0.3, 5, &[("DUEDAY_TIME_ZONE", "Pacific/Kiritimati"), ("DUEDAY_RETRY_GAPS", "3,9,15")]),
    ] {
        let simulated = plays_out_well(Odds { faults, seed }, settings).await;
        let trouble = simulated.trouble.unwrap();
        (charges, crashes) = (charges + simulated.charges, crashes + trouble.crashes);
        (outage_days, acts) = (outage_days + trouble.outage_days, acts + trouble.acts);
    }
    assert!(charges > 500 && crashes > 100, "{charges} charges, {crashes} crashes");
    assert!(outage_days > 100 && acts > 500, "{outage_days} days, {acts} acts");
}

#[tokio::test]
async fn years_in_new_trouble_do_so_too() {
    for faults in [0.02, 0.02, 0.05, 0.1] {
        plays_out_well(Odds { faults, seed: rand::random() }, &[]).await;
    }
}

#[tokio::test]
async fn a_seed_plays_the_same_again() {
    let odds = Odds { faults: 0.1, seed: 42 };
    let (first, again) = (simulated(odds, &[]).await, simulated(odds, &[]).await);
    assert_eq!(first.ledger, again.ledger);
    assert_eq!(first.trouble, again.trouble);
    let books = async |simulated: &Simulation| books::books(&simulated.table, &simulated.ledger).await.unwrap();
    assert_eq!(books(&first).await, books(&again).await);
    assert_eq!((first.receipts, first.reminders, first.runs), (again.receipts, again.reminders, again.runs));
    let another = simulated(Odds { seed: 43, ..odds }, &[]).await;
    assert_ne!(first.ledger, another.ledger);
}
