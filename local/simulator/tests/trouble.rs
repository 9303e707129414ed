//! Years in trouble: requests and answers that are lost, crashes, outages, customers who act; and an oracle that checks
//! every charge. The seeds are fixed: `.ci/run` plays new ones.

use emulator::config;
use simulator::{Books, Odds, Simulation, population, simulate};

/// Simulates 24 subscriptions over 15 months with these settings.
async fn simulated(odds: Odds, settings: &[(&str, &str)]) -> Simulation {
    let config = config(&[settings, &[("DUEDAY_SHARDS", "1")]].concat()).unwrap();
    simulate(config, population(24), ("2027-12-01".parse().unwrap(), 15), Some(odds), |_| {}).await.unwrap()
}

#[tokio::test]
async fn simulate_charges_everyone_what_was_owed_through_years_of_trouble() {
    let (mut charges, mut crashes, mut outage_days, mut acts) = (0, 0, 0, 0);
    for (faults, seed, settings) in [
        (0.02, 1, &[][..]),
        (0.02, 2, &[("DUEDAY_CATCH_UP", "latest")]),
        (0.1, 3, &[("DUEDAY_TIME_ZONE", "America/New_York")]),
        (0.1, 4, &[("DUEDAY_AFTER_LAST_RETRY", "cancelled"), ("DUEDAY_CATCH_UP", "latest")]),
        (0.3, 5, &[("DUEDAY_TIME_ZONE", "Pacific/Kiritimati"), ("DUEDAY_RETRY_GAPS", "3,9,15")]),
    ] {
        let simulated = simulated(Odds { faults, seed }, settings).await;
        assert!(simulated.holds(), "seed {seed}: {:#?}", simulated.findings);
        let trouble = simulated.trouble.unwrap();
        (charges, crashes) = (charges + simulated.charges, crashes + trouble.crashes);
        (outage_days, acts) = (outage_days + trouble.outage_days, acts + trouble.acts);
    }
    assert!(charges > 500 && crashes > 100, "{charges} charges, {crashes} crashes");
    assert!(outage_days > 100 && acts > 500, "{outage_days} days, {acts} acts");
}

#[tokio::test]
async fn simulate_repeats_everything_from_its_seed() {
    let odds = Odds { faults: 0.1, seed: 42 };
    let (first, again) = (simulated(odds, &[]).await, simulated(odds, &[]).await);
    assert_eq!(first.ledger, again.ledger);
    assert_eq!(first.trouble, again.trouble);
    let books = async |simulated: &Simulation| Books::read(&simulated.table, &simulated.ledger).await.unwrap();
    assert_eq!(books(&first).await, books(&again).await);
    assert_eq!((first.receipts, first.reminders, first.runs), (again.receipts, again.reminders, again.runs));
    let another = simulated(Odds { seed: 43, ..odds }, &[]).await;
    assert_ne!(first.ledger, another.ledger);
}
