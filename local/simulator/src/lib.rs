//! Simulates months of business in seconds: a whole deployment runs on a private table in memory and on a simulated
//! clock, with or without random faults.
//!
//! Two independent checks judge the result. The checker validates the invariants on the final contents of the table and
//! of the gateway's ledger. The oracle follows every write, charge and mail while the simulation runs. Neither check
//! uses the code that it checks: both checks read the stored items attribute by attribute, and have their own calendar.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod announcements;
mod calendar;
mod change;
mod checker;
mod company;
mod corruptions;
mod daily_runs;
mod error;
mod event_consumer;
mod fault_simulation;
mod history;
mod invariant;
mod item_audit;
mod json;
mod lagging_index;
mod oracle;
mod orders_table_contents;
mod population;
mod random_faults;
mod schedule;
mod simulated_gateway;
mod simulation;
mod stored_items;
mod stripe_gateway;
mod table_contents;
mod unreliable_gateway;

pub use checker::check_invariants;
pub use company::{Company, CompanySize, euro_currency};
pub use corruptions::{
    AttributeCorruption, CORRUPTIONS_THE_AUDIT_MAY_MISS, corruptions_of_attribute, kind_of_account_item,
};
pub use daily_runs::DailyRuns;
pub use error::SimulationError;
pub use event_consumer::is_dropped_by_stream_filter;
pub use fault_simulation::{
    FaultSimulationResult, FaultSimulationSettings, InjectedCorruption, RestoreCounts, simulate_seeds,
    simulate_with_corruptions, simulate_with_faults, simulate_with_repairs,
};
pub use history::SimulatedRecords;
pub use invariant::{Invariant, InvariantResult};
pub use item_audit::audit_items;
pub use oracle::OracleCounts;
pub use orders_table_contents::{OrdersTableContents, StoredItem, StoredOrder};
pub use population::{NewSubscriber, generate_subscribers};
pub use random_faults::FaultConfig;
pub use simulated_gateway::GatewayKind;
pub use simulation::{SimulationProgress, SimulationResult, simulate_without_faults};
pub use stored_items::{
    StoredAttempt, StoredOutcome, StoredReceipt, StoredRun, StoredStatus, StoredSubscription, StoredWaiver,
    SubscriptionName,
};
pub use table_contents::{LedgerCharge, TableContents};
