//! Months in trouble, judged after every step. The seeds are fixed: `.ci/run` plays new ones.

use simulator::{GatewayKind, Odds, Played, play, population};
use testkit::config;

/// Plays 24 subscriptions over some months with these settings.
fn played(gateway: GatewayKind, odds: Odds, months: u32, settings: &[(&str, &str)]) -> Played {
    let config = config(&[settings, &[("DUEDAY_SHARDS", "2"), ("DUEDAY_PAGE_ROWS", "5")]].concat()).unwrap();
    play(config, population(24), ("2027-12-01".parse().unwrap(), months), (odds, gateway), |_| {}).unwrap()
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
        let played = played(GatewayKind::Sandbox, Odds { faults: part, seed }, 4, settings);
        assert!(played.wrong.is_empty(), "seed {seed}: {:#?}", played.wrong);
        (charges, faults) = (charges + played.judged.charges, faults + played.faults);
        (refused, outage_days) = (refused + played.judged.refused, outage_days + played.outage_days);
    }
    assert!(charges > 200 && faults > 200, "{charges} charges, {faults} faults");
    assert!(refused > 5 && outage_days > 10, "{refused} were refused, {outage_days} days");
}

/// The oracle knows what is in the books of the stand-in for Stripe, and not its responses.
#[test]
fn play_over_the_unkind_stand_in_for_stripe_finds_nothing_wrong() {
    let (mut charges, mut faults, mut repaired, mut by_event) = (0, 0, 0, 0);
    for (part, seed, settings) in [
        (0.002, 1, &[][..]),
        (0.02, 2, &[("DUEDAY_CATCH_UP", "latest"), ("DUEDAY_RESUME", "wait")]),
        (0.05, 3, &[("DUEDAY_TIME_ZONE", "America/New_York"), ("DUEDAY_AFTER_LAST_RETRY", "cancelled")]),
        (0.1, 4, &[("DUEDAY_TIME_ZONE", "Pacific/Kiritimati"), ("DUEDAY_RETRY_GAPS", "3,9,15")]),
        (0.1, 8, &[]),
        (0.1, 17, &[]),
    ] {
        let played = played(GatewayKind::Stripe, Odds { faults: part, seed }, 6, settings);
        assert!(played.wrong.is_empty(), "seed {seed}: {:#?}", played.wrong);
        (charges, faults) = (charges + played.judged.charges, faults + played.faults);
        (repaired, by_event) = (repaired + played.judged.repaired, by_event + played.judged.receipted_by_event);
    }
    assert!(charges > 200 && faults > 200, "{charges} charges, {faults} faults");
    assert!(repaired > 0 && by_event > 10, "{repaired} were made late, {by_event} were receipted by events");
}

#[test]
fn play_repeats_every_call_from_its_seed() {
    let odds = Odds { faults: 0.05, seed: 42 };
    for gateway in [GatewayKind::Sandbox, GatewayKind::Stripe] {
        let (first, again) = (played(gateway, odds, 2, &[]), played(gateway, odds, 2, &[]));
        assert_eq!(first, again);
        assert_ne!(first.digest, played(gateway, Odds { seed: 43, ..odds }, 2, &[]).digest);
    }
}
