use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use super::super::{Key, TableError, keys};
use super::of_record;
use billing::{WaivedPeriod, WaivedReason};
use dynamo::{Instant, expiry};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaivedPeriodItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    due_date: NaiveDate,
    reason: WaivedReason,
    processed_date: Instant,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl WaivedPeriodItem {
    pub fn new(waived: &WaivedPeriod, kept: TimeDelta) -> Self {
        let Key { pk, sk } = keys::waived_period(&waived.account, waived.subscription, waived.due_on);
        Self {
            pk,
            sk,
            due_date: waived.due_on,
            reason: waived.reason,
            processed_date: Instant(waived.waived_at),
            ttl: expiry(waived.waived_at, kept),
        }
    }
}

impl TryFrom<WaivedPeriodItem> for WaivedPeriod {
    type Error = TableError;

    fn try_from(item: WaivedPeriodItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        let (due_on, reason, waived_at) = (item.due_date, item.reason, item.processed_date.0);
        Ok(Self { account, subscription, due_on, reason, waived_at })
    }
}
