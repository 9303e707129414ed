//! The list of the webhook deliveries that wait for their next try. On AWS, a scheduled function reads the due entries of
//! this list. On one machine, the waiting deliveries are in memory, and the list is empty.

use chrono::{DateTime, Utc};
use dynamo::{Entity as _, Query, key_of, s, values};
use ulid::Ulid;

use super::items::WaitingDelivery;
use super::{Table, TableError, keys};

impl Table {
    /// Adds `waiting` to the list; an equal entry is replaced. Sends one PutItem request.
    pub async fn add_waiting_delivery(&self, waiting: &WaitingDelivery) -> Result<(), TableError> {
        self.put(waiting.to_item()).await
    }

    /// Removes `waiting` from the list. Sends one DeleteItem request.
    pub async fn remove_waiting_delivery(&self, waiting: &WaitingDelivery) -> Result<(), TableError> {
        self.delete(waiting.key()).await
    }

    /// Returns the entries of the endpoint `endpoint` that are due at `now`, at most `limit` of them. The entries of each
    /// partition have the order of their next tries. Sends a strongly consistent Query for each partition, until there
    /// are `limit` entries.
    pub async fn get_due_deliveries(
        &self,
        endpoint: Ulid,
        now: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<WaitingDelivery>, TableError> {
        const DUE: &str = "#PK = :partition AND #SK BETWEEN :first AND :end";
        let mut due = Vec::new();
        for partition in 0..keys::DELIVERY_PARTITIONS {
            let missing = limit.saturating_sub(due.len());
            if missing == 0 {
                break;
            }
            let values = values([
                (":partition", s(keys::partition_key_of_deliveries(endpoint, partition))),
                (":first", s(keys::WAITING_DELIVERIES)),
                (":end", s(keys::end_of_due_deliveries(now))),
            ]);
            let query = Query { page_items: Some(missing), ..Query::new(DUE, values) };
            let items = self.query(query).first(Some(missing)).await?;
            let keys = items.iter().filter_map(|item| keys::parse_waiting_delivery(&key_of(item)));
            due.extend(keys.map(|(delivery, next_try_at)| WaitingDelivery { delivery, next_try_at }));
        }
        Ok(due)
    }
}
