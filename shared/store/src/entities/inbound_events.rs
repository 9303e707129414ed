//! The ids of the inbound webhook events that were processed. The gateway and the mail service may send an event more
//! than once.

use chrono::{DateTime, TimeDelta, Utc};

use crate::keys;
use crate::table::payments_table::Table;
use dynamo::TableError;
use dynamo::n;

/// How long the id of a processed event is stored. Stripe retries an event for three days, and a person can resend it
/// from Stripe's dashboard for 15 days.
pub(crate) const INBOUND_EVENT_RETENTION: TimeDelta = TimeDelta::days(30);

impl Table {
    /// Returns whether the inbound event `id` was processed. Sends one GetItem request.
    pub async fn is_inbound_event_processed(&self, id: &str) -> Result<bool, TableError> {
        Ok(self.get(keys::key_of_inbound_event(id)).await?.is_some())
    }

    /// Stores that the inbound event `id` was processed at `now`. Sends one PutItem request.
    pub async fn mark_inbound_event_processed(&self, id: &str, now: DateTime<Utc>) -> Result<(), TableError> {
        let mut item = keys::key_of_inbound_event(id).attributes();
        item.insert("TTL".to_owned(), n((now + INBOUND_EVENT_RETENTION).timestamp()));
        self.put(item).await
    }
}
