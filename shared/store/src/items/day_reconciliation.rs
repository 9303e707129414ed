//! The stored item of the comparison of a day with the gateway.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{
    DayReconciliation, DifferenceKind, GatewayDifference, GatewayList, RECONCILIATION_RETENTION, ReconciledCounts,
    ReconciliationStep,
};
use dynamo::{Entity, Instant, expiry_timestamp};
use dynamo::{Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DayReconciliationItem {
    started_date: Instant,
    ended_date: Option<Instant>,
    step: ReconciliationStep,
    /// The position in the step from which the comparison continues; absent at the start of the step.
    position: Option<String>,
    counts: ReconciledCounts,
    /// Present if payments without a receipt were only reported.
    report_only: Option<bool>,
    /// The gateway's lists that could not be compared; absent if all were compared.
    not_compared: Option<Vec<GatewayList>>,
    /// Present if the payments of every customer in the table were compared, because the gateway does not list those of
    /// the day.
    customers_compared: Option<bool>,
    /// The number of differences by kind.
    differences: BTreeMap<DifferenceKind, u64>,
    first_differences: Vec<GatewayDifference>,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Entity<PaymentsSchema> for DayReconciliation {
    type Attributes = DayReconciliationItem;

    fn key(&self) -> Key {
        keys::key_of_reconciliation(self.on)
    }

    fn attributes(&self) -> DayReconciliationItem {
        let not_compared: Vec<GatewayList> = self.not_compared.iter().copied().collect();
        DayReconciliationItem {
            started_date: Instant(self.started_at),
            ended_date: self.ended_at.map(Instant),
            step: self.step,
            position: self.position.clone(),
            counts: self.counts,
            report_only: self.report_only.then_some(true),
            not_compared: (!not_compared.is_empty()).then_some(not_compared),
            customers_compared: self.customers_compared.then_some(true),
            differences: self.differences.clone(),
            first_differences: self.first_differences.clone(),
            version: self.version,
            ttl: expiry_timestamp(self.started_at, RECONCILIATION_RETENTION),
        }
    }

    fn read(key: Key, item: DayReconciliationItem) -> Result<Self, TableError> {
        let on = key.sk.strip_prefix(keys::RECONCILED_DAYS).and_then(|on| on.parse().ok());
        let on = on.ok_or_else(|| TableError::unreadable(key.clone(), "its key is not the key of a compared day"))?;
        let not_compared: BTreeSet<GatewayList> = item.not_compared.into_iter().flatten().collect();
        Ok(Self {
            on,
            started_at: item.started_date.0,
            ended_at: item.ended_date.map(|at| at.0),
            step: item.step,
            position: item.position,
            counts: item.counts,
            report_only: item.report_only.unwrap_or(false),
            not_compared,
            customers_compared: item.customers_compared.unwrap_or(false),
            differences: item.differences,
            first_differences: item.first_differences,
            version: item.version,
        })
    }
}
