use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::items::subscription_of_record;
use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{WaivedPeriod, WaivedReason};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaivedPeriodItem {
    due_date: NaiveDate,
    reason: WaivedReason,
    processed_date: Instant,
    /// The time at which the record expires. Not serialized here: `Table::build_record_item` sets it when the record is
    /// written.
    #[serde(rename = "TTL", skip_serializing)]
    #[allow(dead_code)]
    ttl: i64,
}

impl Entity<PaymentsSchema> for WaivedPeriod {
    type Attributes = WaivedPeriodItem;

    fn key(&self) -> Key {
        keys::key_of_waived_period(&self.account, self.subscription, self.due_on)
    }

    fn attributes(&self) -> WaivedPeriodItem {
        WaivedPeriodItem { due_date: self.due_on, reason: self.reason, processed_date: Instant(self.waived_at), ttl: 0 }
    }

    fn read(key: Key, item: WaivedPeriodItem) -> Result<Self, TableError> {
        let (account, subscription) = subscription_of_record(key)?;
        let (due_on, reason, waived_at) = (item.due_date, item.reason, item.processed_date.0);
        Ok(Self { account, subscription, due_on, reason, waived_at })
    }
}
