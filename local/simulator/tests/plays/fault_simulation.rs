//! Simulations with random faults. After every step, the oracle compares the table with its own prediction. The seeds
//! are fixed; the script `.ci/simulations` runs longer simulations, also with new seeds.

use simulator::{FaultConfig, FaultSimulationResult, GatewayKind, population, simulate_with_faults};
use testkit::{config, short_or_long};

/// Environment variables of a deployment that charges only the latest missed month.
const CATCH_UP_LATEST: &[(&str, &str)] =
    &[("DUEDAY_CATCH_UP", "latest"), ("DUEDAY_RESUME", "wait"), ("DUEDAY_TIME_ZONE", "America/New_York")];
/// Environment variables of a deployment that cancels a subscription after three retries.
const FEW_RETRIES: &[(&str, &str)] = &[
    ("DUEDAY_RETRY_GAPS", "3,9,15"),
    ("DUEDAY_AFTER_LAST_RETRY", "cancelled"),
    ("DUEDAY_TIME_ZONE", "Pacific/Kiritimati"),
];

/// Simulates `subscriptions` subscriptions for `months` months. `settings` are the environment variables of the deployment, with
/// their values.
fn simulate(
    gateway: GatewayKind,
    fault_config: FaultConfig,
    (subscriptions, months): (u32, u32),
    settings: &[(&str, &str)],
) -> FaultSimulationResult {
    let config = config(&[settings, &[("DUEDAY_SHARDS", "2"), ("DUEDAY_PAGE_ROWS", "5")]].concat()).unwrap();
    simulate_with_faults(
        config,
        population(subscriptions),
        ("2027-12-01".parse().unwrap(), months),
        (fault_config, gateway),
        |_| {},
    )
    .unwrap()
}

#[test]
fn simulation_with_the_unreliable_sandbox_has_no_violation() {
    let (mut charges, mut faults, mut refused, mut outage_days) = (0, 0, 0, 0);
    let configs = [(0.1, 4, FEW_RETRIES), (0.01, 2, CATCH_UP_LATEST), (0.002, 1, &[]), (0.02, 5, &[])];
    let count = short_or_long(1, configs.len());
    for (fault_rate, seed, settings) in &configs[..count] {
        let result = simulate(GatewayKind::Sandbox, FaultConfig { rate: *fault_rate, seed: *seed }, (24, 4), settings);
        assert!(result.violations.is_empty(), "seed {seed}: {:#?}", result.violations);
        (charges, faults) = (charges + result.counts.charges, faults + result.faults);
        (refused, outage_days) = (refused + result.counts.refused_requests, outage_days + result.outage_days);
    }
    let count = u64::try_from(count).unwrap();
    assert!(charges > 50 * count && faults > 100, "{charges} charges, {faults} faults");
    assert!(refused > count && outage_days > 5, "{refused} refused requests, {outage_days} outage days");
}

/// The oracle reads the payments that the stand-in for Stripe has made. It does not use the stand-in's responses,
/// because faults can change or lose a response.
#[test]
fn simulation_with_an_unreliable_stripe_has_no_violation() {
    let (mut charges, mut faults, mut late_payments, mut receipts_by_event) = (0, 0, 0, 0);
    let configs = [(0.05, 3, CATCH_UP_LATEST), (0.1, 4, FEW_RETRIES), (0.01, 1, &[]), (0.02, 5, &[])];
    let count = short_or_long(1, configs.len());
    for (fault_rate, seed, settings) in &configs[..count] {
        let result = simulate(GatewayKind::Stripe, FaultConfig { rate: *fault_rate, seed: *seed }, (24, 4), settings);
        assert!(result.violations.is_empty(), "seed {seed}: {:#?}", result.violations);
        (charges, faults) = (charges + result.counts.charges, faults + result.faults);
        (late_payments, receipts_by_event) =
            (late_payments + result.counts.late_payments, receipts_by_event + result.counts.receipts_by_event);
    }
    assert!(charges > 50 * u64::try_from(count).unwrap() && faults > 100, "{charges} charges, {faults} faults");
    assert!(
        late_payments > 0 && receipts_by_event > 2,
        "{late_payments} late payments, {receipts_by_event} receipts by events"
    );
}

#[test]
fn simulation_with_the_same_seed_repeats_every_call() {
    let fault_config = FaultConfig { rate: 0.05, seed: 42 };
    for gateway in [GatewayKind::Sandbox, GatewayKind::Stripe] {
        let (first, again) =
            (simulate(gateway, fault_config, (8, 1), &[]), simulate(gateway, fault_config, (8, 1), &[]));
        assert_eq!(first, again);
        assert!(first.violations.is_empty(), "{:#?}", first.violations);
        assert_ne!(first.digest, simulate(gateway, FaultConfig { seed: 43, ..fault_config }, (8, 1), &[]).digest);
    }
}
