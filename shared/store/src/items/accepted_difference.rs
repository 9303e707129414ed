//! The stored item of an accepted difference between the table and the gateway.

use serde::{Deserialize, Serialize};

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{AcceptedDifference, DifferenceKind, Label, RECONCILIATION_RETENTION};
use chrono::NaiveDate;
use dynamo::{Entity, Instant, expiry_timestamp};
use dynamo::{Key, TableError};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AcceptedDifferenceItem {
    date: NaiveDate,
    kind: DifferenceKind,
    id: String,
    reason: Label,
    accepted_date: Instant,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Entity<PaymentsSchema> for AcceptedDifference {
    type Attributes = AcceptedDifferenceItem;

    fn key(&self) -> Key {
        keys::key_of_accepted_difference(self.on, self.kind, &self.id)
    }

    fn attributes(&self) -> AcceptedDifferenceItem {
        AcceptedDifferenceItem {
            date: self.on,
            kind: self.kind,
            id: self.id.clone(),
            reason: self.reason.clone(),
            accepted_date: Instant(self.at),
            ttl: expiry_timestamp(self.at, RECONCILIATION_RETENTION),
        }
    }

    fn read(_: Key, item: AcceptedDifferenceItem) -> Result<Self, TableError> {
        let AcceptedDifferenceItem { date: on, kind, id, reason, accepted_date, .. } = item;
        Ok(Self { on, kind, id, reason, at: accepted_date.0 })
    }
}
