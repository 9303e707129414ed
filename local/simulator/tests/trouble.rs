//! Months in trouble, judged after every step. The seeds are fixed: `.ci/run` plays new ones.

use emulator::config;
use simulator::{Odds, Played, play, population};

/// Plays 24 subscriptions over some months with these settings.
fn played(odds: Odds, months: u32, settings: &[(&str, &str)]) -> Played {
    let config = config(&[settings, &[("DUEDAY_SHARDS", "2"), ("DUEDAY_PAGE_ROWS", "5")]].concat()).unwrap();
    play(config, population(24), ("2027-12-01".parse().unwrap(), months), odds, |_| {}).unwrap()
}

#[test]
fn play_finds_nothing_wrong_in_months_of_trouble() {
    let (mut charges, mut faults, mut refused, mut outage_days) = (0, 0, 0, 0);
    for (part, seed, settings) in [
        (0.002, 1, &[][..]),
        (0.01, 2, &[("DUEDAY_CATCH_UP", "latest"), ("DUEDAY_RESUME", "wait")]),
        (0.02, 3, &[("DUEDAY_TIME_ZONE", "America/New_York"), ("DUEDAY_AFTER_LAST_RETRY", "cancelled")]),
        (0.1, 4, &[("DUEDAY_TIME_ZONE", "Pacific/Kiritimati"), ("DUEDAY_RETRY_GAPS", "3,9,15")]),
    ] {
        let played = played(Odds { faults: part, seed }, 4, settings);
        assert!(played.wrong.is_empty(), "seed {seed}: {:#?}", played.wrong);
        (charges, faults) = (charges + played.judged.charges, faults + played.faults);
        (refused, outage_days) = (refused + played.judged.refused, outage_days + played.outage_days);
    }
    assert!(charges > 200 && faults > 200, "{charges} charges, {faults} faults");
    assert!(refused > 5 && outage_days > 10, "{refused} were refused, {outage_days} days");
}

#[test]
fn play_repeats_every_call_from_its_seed() {
    let odds = Odds { faults: 0.05, seed: 42 };
    let (first, again) = (played(odds, 2, &[]), played(odds, 2, &[]));
    assert_eq!(first, again);
    assert_ne!(first.digest, played(Odds { seed: 43, ..odds }, 2, &[]).digest);
}
