//! The stored items of audits, and of the violations that they found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{AUDIT_RETENTION, AuditRecord, AuditViolation};
use dynamo::{Entity, Instant, expiry_timestamp};
use dynamo::{Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AuditItem {
    started_date: Instant,
    ended_date: Option<Instant>,
    /// The position after the last account or order that was checked.
    position: Option<String>,
    with_gateway_lists: bool,
    #[serde(default)]
    scheduled: bool,
    accounts: u64,
    subscriptions: u64,
    orders: Option<u64>,
    first_receipt_date: Option<Instant>,
    violations: BTreeMap<String, u64>,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ViolationItem {
    invariant: String,
    item_key: String,
    problem: String,
    started_date: Instant,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Entity<PaymentsSchema> for AuditRecord {
    type Attributes = AuditItem;

    fn key(&self) -> Key {
        keys::key_of_audit(self.id)
    }

    fn attributes(&self) -> AuditItem {
        AuditItem {
            started_date: Instant(self.started_at),
            ended_date: self.ended_at.map(Instant),
            position: self.position.clone(),
            with_gateway_lists: self.has_gateway_lists,
            scheduled: self.is_scheduled,
            accounts: self.accounts,
            subscriptions: self.subscriptions,
            orders: (self.orders > 0).then_some(self.orders),
            first_receipt_date: self.first_receipt_at.map(Instant),
            violations: self.violations.clone(),
            version: self.version,
            ttl: expiry_timestamp(self.started_at, AUDIT_RETENTION),
        }
    }

    fn read(key: Key, item: AuditItem) -> Result<Self, TableError> {
        let id = key.sk.strip_prefix(keys::AUDIT).and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| TableError::unreadable(key.clone(), "its key is not the key of an audit"))?;
        Ok(Self {
            id,
            started_at: item.started_date.0,
            ended_at: item.ended_date.map(|at| at.0),
            position: item.position,
            has_gateway_lists: item.with_gateway_lists,
            is_scheduled: item.scheduled,
            accounts: item.accounts,
            subscriptions: item.subscriptions,
            orders: item.orders.unwrap_or_default(),
            first_receipt_at: item.first_receipt_date.map(|at| at.0),
            violations: item.violations,
            version: item.version,
        })
    }
}

impl Entity<PaymentsSchema> for AuditViolation {
    type Attributes = ViolationItem;

    fn key(&self) -> Key {
        keys::key_of_violation(self.audit, self.number)
    }

    fn attributes(&self) -> ViolationItem {
        ViolationItem {
            invariant: self.invariant.clone(),
            item_key: self.key.clone(),
            problem: self.problem.clone(),
            started_date: Instant(self.started_at),
            ttl: expiry_timestamp(self.started_at, AUDIT_RETENTION),
        }
    }

    fn read(key: Key, item: ViolationItem) -> Result<Self, TableError> {
        let audit = key.pk.strip_prefix(keys::AUDIT).and_then(|id| id.parse().ok());
        let number = key.sk.strip_prefix(keys::VIOLATIONS).and_then(|number| number.parse().ok());
        let (audit, number) = audit
            .zip(number)
            .ok_or_else(|| TableError::unreadable(key.clone(), "its key is not the key of a violation"))?;
        Ok(Self {
            audit,
            number,
            invariant: item.invariant,
            key: item.item_key,
            problem: item.problem,
            started_at: item.started_date.0,
        })
    }
}
