//! Simulations with random faults. After every step, the oracle compares the table with its own prediction. The seeds
//! are fixed; the script `.ci/simulations` runs longer simulations, also with new seeds.

use simulator::{
    FaultConfig, FaultSimulationResult, FaultSimulationSettings, GatewayKind, RestoreCounts, generate_subscribers,
    simulate_with_repairs,
};
use testkit::{read_test_config, short_or_long};

/// Environment variables of a deployment that charges only the latest missed month.
const CATCH_UP_LATEST: &[(&str, &str)] =
    &[("DUEDAY_CATCH_UP", "latest"), ("DUEDAY_RESUME", "wait"), ("DUEDAY_TIME_ZONE", "America/New_York")];
/// Environment variables of a deployment that cancels a subscription after three retries.
const FEW_RETRIES: &[(&str, &str)] = &[
    ("DUEDAY_RETRY_GAPS", "3,9,15"),
    ("DUEDAY_AFTER_LAST_RETRY", "cancelled"),
    ("DUEDAY_TIME_ZONE", "Pacific/Kiritimati"),
];

/// Simulates `subscriptions` subscriptions for `months` months. `settings` are the environment variables of the
/// deployment, with their values.
fn simulate(
    gateway: GatewayKind,
    fault_config: FaultConfig,
    subscriptions: u32,
    months: u32,
    settings: &[(&str, &str)],
) -> FaultSimulationResult {
    let config = read_test_config(&[settings, &[("DUEDAY_SHARDS", "2"), ("DUEDAY_PAGE_ROWS", "5")]].concat()).unwrap();
    let settings = FaultSimulationSettings {
        config,
        new_subscribers: generate_subscribers(subscriptions),
        from: "2027-12-01".parse().unwrap(),
        months,
        fault_rate: fault_config.rate,
        gateway,
    };
    simulate_with_repairs(settings, fault_config.seed, |_| {}).unwrap()
}

#[test]
fn simulation_with_the_unreliable_sandbox_has_no_violation() {
    let configs = [(0.01, 8, CATCH_UP_LATEST), (0.1, 8, FEW_RETRIES), (0.002, 1, &[]), (0.02, 5, &[])];
    let (configs, months) = short_or_long((&configs[..2], 2), (&configs[..], 4));
    let (mut charges, mut faults, mut refused, mut outage_days, mut clock_repairs) = (0, 0, 0, 0, 0);
    for (fault_rate, seed, settings) in configs {
        let fault_config = FaultConfig { rate: *fault_rate, seed: *seed };
        let result = simulate(GatewayKind::Sandbox, fault_config, 24, months, settings);
        assert!(result.violations.is_empty(), "seed {seed}: {:#?}", result.violations);
        (charges, faults) = (charges + result.counts.charges, faults + result.faults);
        (refused, outage_days) = (refused + result.counts.refused_requests, outage_days + result.outage_days);
        clock_repairs += result.clock_repairs;
    }
    let (min_charges, min_faults, min_refused, min_outage_days) = short_or_long((60, 100, 1, 1), (200, 300, 10, 20));
    assert!(charges > min_charges && faults > min_faults, "{charges} charges, {faults} faults");
    assert!(
        refused > min_refused && outage_days > min_outage_days,
        "{refused} refused requests, {outage_days} outage days"
    );
    assert!(clock_repairs > 0, "no subscription was written by a run with a clock that was ahead");
}

/// The oracle reads the payments that the stand-in for Stripe has made. It does not use the stand-in's responses,
/// because faults can change or lose a response.
#[test]
fn simulation_with_an_unreliable_stripe_has_no_violation() {
    let configs = [(0.05, 3, CATCH_UP_LATEST), (0.1, 4, FEW_RETRIES), (0.01, 1, &[]), (0.02, 5, &[])];
    let (configs, months) = short_or_long((&configs[..2], 2), (&configs[..], 4));
    let (mut charges, mut faults, mut late_payments, mut receipts_by_event) = (0, 0, 0, 0);
    let mut restores = RestoreCounts::default();
    for (fault_rate, seed, settings) in configs {
        let fault_config = FaultConfig { rate: *fault_rate, seed: *seed };
        let result = simulate(GatewayKind::Stripe, fault_config, 24, months, settings);
        assert!(result.violations.is_empty(), "seed {seed}: {:#?}", result.violations);
        (charges, faults) = (charges + result.counts.charges, faults + result.faults);
        (late_payments, receipts_by_event) =
            (late_payments + result.counts.late_payments, receipts_by_event + result.counts.receipts_by_event);
        restores.add(&result.restore);
    }
    // The two months of the short form may contain no late payment.
    let (min_charges, min_faults, min_late_payments, min_receipts_by_event) =
        short_or_long((60, 100, 0, 1), (200, 300, 1, 10));
    assert!(charges > min_charges && faults > min_faults, "{charges} charges, {faults} faults");
    assert!(
        late_payments >= min_late_payments && receipts_by_event > min_receipts_by_event,
        "{late_payments} late payments, {receipts_by_event} receipts by events"
    );
    let RestoreCounts { noticed, receipts, payments, .. } = restores;
    assert!(noticed > 0 && receipts > 0 && payments > 0, "{restores:?}");
}

#[test]
fn simulation_with_the_same_seed_repeats_every_call() {
    let fault_config = FaultConfig { rate: 0.05, seed: 42 };
    let subscriptions = short_or_long(8, 24);
    for gateway in [GatewayKind::Sandbox, GatewayKind::Stripe] {
        let first = simulate(gateway, fault_config, subscriptions, 1, &[]);
        let again = simulate(gateway, fault_config, subscriptions, 1, &[]);
        assert_eq!(first, again);
        assert!(first.violations.is_empty(), "{:#?}", first.violations);
        let other = simulate(gateway, FaultConfig { seed: 43, ..fault_config }, subscriptions, 1, &[]);
        assert_ne!(first.digest, other.digest);
    }
}
