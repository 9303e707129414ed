//! Simulates months in which stored items are corrupted. Checks that no month is charged twice, and that the audit
//! finds more than a third of the corruptions. The environment variable `DUEDAY_CORRUPTION_SEEDS=FIRST,COUNT` chooses the
//! seeds; without it, the test uses the seed 1.

use std::collections::{BTreeMap, BTreeSet};

use simulator::{
    FaultSimulationResult, FaultSimulationSettings, GatewayKind, generate_subscribers, simulate_with_corruptions,
};
use testkit::{read_test_config, short_or_long};

/// Simulates `months` months with 18 accounts, each with one subscription, and with random corruptions and faults.
/// `settings` are the environment variables of the deployment, with their values.
fn simulate(months: u32, seed: u64, gateway: GatewayKind, settings: &[(&str, &str)]) -> FaultSimulationResult {
    let config = read_test_config(&[settings, &[("DUEDAY_SHARDS", "2"), ("DUEDAY_PAGE_ROWS", "5")]].concat()).unwrap();
    let settings = FaultSimulationSettings {
        config,
        new_subscribers: generate_subscribers(72).into_iter().step_by(4).collect(),
        from: "2027-12-01".parse().unwrap(),
        months,
        fault_rate: 0.02,
        gateway,
    };
    simulate_with_corruptions(settings, seed).unwrap()
}

#[test]
fn simulation_with_corrupted_items_charges_no_month_twice_and_the_audit_finds_the_corruptions() {
    let months = short_or_long(6, 12);
    let chosen = std::env::var("DUEDAY_CORRUPTION_SEEDS").ok();
    let (first, count) = match chosen.as_deref().and_then(|text| text.split_once(',')) {
        Some((first, count)) => (first.parse().unwrap(), count.parse().unwrap()),
        None => (1, 1),
    };
    let (mut days, mut charges, mut injected, mut found) = (0, 0, 0, 0);
    let mut missed: BTreeMap<String, u32> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    for seed in first..first + count {
        let gateway = if seed % 3 == 0 { GatewayKind::Sandbox } else { GatewayKind::Stripe };
        let settings: &[(&str, &str)] = match seed % 4 {
            0 => &[("DUEDAY_CATCH_UP", "latest"), ("DUEDAY_RESUME", "wait")],
            1 => &[("DUEDAY_AFTER_LAST_RETRY", "cancelled")],
            _ => &[],
        };
        let result = simulate(months, seed, gateway, settings);
        assert!(result.violations.is_empty(), "seed {seed}: {:#?}", result.violations);
        (days, charges) = (days + result.subscription_days, charges + result.counts.charges);
        for corruption in result.corruptions {
            injected += 1;
            found += u32::from(!corruption.found.is_empty());
            if corruption.found.is_empty() {
                *missed.entry(format!("{}: {}", corruption.kind, corruption.what)).or_default() += 1;
            }
            kinds.insert(corruption.kind);
        }
    }
    println!(
        "{} subscription years, {charges} charges, {injected} corruptions, {found} found; not found: {missed:#?}",
        days / 365
    );
    let min = u64::from(months) * count;
    assert!(days >= 18 * 30 * min && charges > 8 * min, "{days} days, {charges} charges");
    assert!(6 * u64::from(injected) >= 5 * min && found * 3 > injected, "{found} of {injected}");
    assert!(kinds.contains("SUB active") && kinds.contains("REC"), "{kinds:?}");
}
