//! The list of the webhook deliveries that wait for their next try. On AWS, a scheduled function reads the due entries of
//! this list. On one machine, the waiting deliveries are in memory, and the list is empty.

use chrono::{DateTime, Utc};
use dynamo::{Entity as _, Query, s, values};
use ulid::Ulid;

use crate::items::WaitingDelivery;
use crate::keys;
use crate::table::payments_table::Table;
use dynamo::TableError;

impl Table {
    /// Adds `waiting` to the list; an equal entry is replaced. Sends one PutItem request.
    pub async fn add_waiting_delivery(&self, waiting: &WaitingDelivery) -> Result<(), TableError> {
        self.put(waiting.to_item()).await
    }

    /// Removes `waiting` from the list, unless a worker has added an entry with the same keys meanwhile. Sends one DeleteItem
    /// request.
    pub async fn remove_waiting_delivery(&self, waiting: &WaitingDelivery) -> Result<(), TableError> {
        let values = values([(":id", s(waiting.id.to_string()))]);
        self.delete_if(waiting.key(), "#EntryId = :id", values).await.map(drop)
    }

    /// Returns the entries of the endpoint `endpoint` that are due at `now`, at most `limit` of them: those whose next try is
    /// the earliest, sorted by this time. An entry that cannot be read is left out, and the audit reports it. Sends a
    /// strongly consistent Query for each partition.
    pub async fn get_due_deliveries(
        &self,
        endpoint: Ulid,
        now: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<WaitingDelivery>, TableError> {
        const DUE: &str = "#PK = :partition AND #SK BETWEEN :first AND :end";
        let mut due = Vec::new();
        for partition in 0..keys::DELIVERY_PARTITIONS {
            let values = values([
                (":partition", s(keys::partition_key_of_deliveries(endpoint, partition))),
                (":first", s(keys::WAITING_DELIVERIES)),
                (":end", s(keys::end_of_due_deliveries(now))),
            ]);
            let query = Query { page_items: Some(limit), ..Query::new(DUE, values) };
            let items = self.query(query).read_up_to(Some(limit)).await?;
            due.extend(items.iter().filter_map(|item| WaitingDelivery::from_item(item).ok()));
        }
        due.sort_by_key(|waiting: &WaitingDelivery| waiting.next_try_at);
        due.truncate(limit);
        Ok(due)
    }
}
