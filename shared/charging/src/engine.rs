//! The engine that looks attempts up at the gateway and applies what the gateway reports.

use std::sync::Arc;

use billing::{NewAction, Policy, Settlement};
use chrono::{NaiveDate, TimeDelta};
use clock::Clock;
use config::BillingConfig;
use store::Table;

use crate::UncountedCharges;

/// Looks attempts up ([`ChargingEngine::look_up`]), and applies what the gateway reports: to an attempt that the caller
/// holds ([`ChargingEngine::apply`]), to a reported payment ([`ChargingEngine::apply_payment`]), and to an open attempt
/// whose lease has ended ([`ChargingEngine::resolve_attempt`]).
#[derive(Debug)]
pub struct ChargingEngine {
    pub(crate) table: Table,
    pub(crate) policy: Policy,
    /// How long an attempt is leased that is taken over.
    pub(crate) lease: TimeDelta,
    pub(crate) clock: Arc<dyn Clock>,
    /// The entry that is written to the action log with each settlement; `None` if no person has requested the
    /// settlement.
    pub(crate) action: Option<NewAction>,
}

impl ChargingEngine {
    /// Creates the engine for the subscriptions in `table`, with the rules and the lease of `billing`.
    pub fn new(table: Table, billing: &BillingConfig, clock: Arc<dyn Clock>) -> Self {
        Self { table, policy: billing.policy.clone(), lease: billing.lease, clock, action: None }
    }

    /// Changes how long an attempt is leased that is taken over.
    pub fn with_lease(self, lease: TimeDelta) -> Self {
        Self { lease, ..self }
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
