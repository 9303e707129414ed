//! The engine that looks attempts up at the gateway and applies what the gateway reports.

use std::sync::Arc;

use billing::{NewAction, Settlement};
use chrono::NaiveDate;
use clock::Clock;
use store::Table;

use crate::UncountedCharges;

/// Looks attempts up, and applies what the gateway reports: to an attempt that a run holds (`apply`), to a reported
/// payment ([`ChargingEngine::apply_payment`]), and to an open attempt whose lease has ended
/// ([`ChargingEngine::resolve_attempt`]).
#[derive(Debug)]
pub struct ChargingEngine {
    pub(crate) table: Table,
    pub(crate) clock: Arc<dyn Clock>,
    /// The entry that is written to the action log with each settlement; `None` if no person has requested the
    /// settlement.
    pub(crate) action: Option<NewAction>,
}

impl ChargingEngine {
    /// Creates the engine for the subscriptions in `table`, with the table's policy.
    pub fn new(table: Table, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock, action: None }
    }

    /// Adds `action`, the decision of a person. An entry of `action` is written to the action log with each settlement.
    pub fn with_action(self, action: NewAction) -> Self {
        Self { action: Some(action), ..self }
    }

    /// Adds the charge of the written settlement `settled` to the stored charge total of the day `today`.
    pub(crate) async fn write_charge(&self, settled: &Settlement, today: NaiveDate) {
        let charges = UncountedCharges::default();
        charges.add_charge_of(settled);
        charges.write_or_warn(&self.table, today, settled.subscription.shard).await;
    }
}
