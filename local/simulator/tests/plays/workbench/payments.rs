//! The model of the payments table.

use simulator::{FaultSimulationSettings, GatewayKind, generate_subscribers, simulate_with_faults};
use store::SCHEMA;
use testkit::read_test_config;

use super::{Facet, ModelledTable, facet, sorted_attributes};

const FACETS: [Facet; 11] = [
    facet("Account", "ACC#", "ACC#"),
    facet("Subscription", "ACC#", "SUB#"),
    facet("Receipt", "ACC#", "REC#"),
    facet("Attempt record", "ACC#", "ATT#"),
    facet("Waived period", "ACC#", "WAV#"),
    facet("Action", "ACC#", "ACTION#"),
    facet("Code in receipt numbers", "CODE#", "CODE#"),
    facet("Run record", "RUN#", "SHARD#"),
    facet("Total of a day", "RUN#", "CHARGED#"),
    facet("Idempotency record", "IDEM#", "IDEM#"),
    facet("Settings", "CTL#settings", ""),
];

#[test]
fn workbench_model_of_payments_is_generated_from_the_schema_and_a_simulated_table() {
    let settings = FaultSimulationSettings {
        config: read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap(),
        new_subscribers: generate_subscribers(12),
        from: "2027-12-01".parse().unwrap(),
        months: 4,
        fault_rate: 0.02,
        gateway: GatewayKind::Sandbox,
    };
    let simulated = simulate_with_faults(settings, 3, |_| {}).unwrap();
    let table = ModelledTable {
        model_name: "Dueday",
        description: "Recurring payments: accounts, subscriptions and receipts in one table, with sparse, sharded \
                      indexes of the reminders and payments that are due",
        table_name: "dueday",
        schema: &SCHEMA,
        facets: &FACETS,
        most_samples: 4,
    };
    table.check_file("nosql-workbench.json", simulated.records.items.into_iter().map(sorted_attributes).collect());
}
