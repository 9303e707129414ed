//! Delivers events to webhook endpoints in the local system. The queue is only in memory, but the table stores every
//! pending delivery, so that the next server process can load these deliveries.

use std::collections::BTreeSet;

use billing::{Delivery, DeliveryStatus};
use chrono::DateTime;
use clock::Clock;
use outbound::{Deliverer, DeliveryWorker, MemoryQueue};
use store::{Paging, Table, TableError};

use crate::terminal::output;

/// Delivers the events of the local server to webhook endpoints.
pub struct LocalDeliveries {
    table: Table,
    worker: DeliveryWorker,
}

/// The error texts about unreadable items that were printed. Each of these errors is printed only once.
#[derive(Default)]
struct PrintedErrors(BTreeSet<String>);

impl LocalDeliveries {
    /// Creates the worker for the deliveries in `table`, and the queue that sends further deliveries to the worker.
    pub fn new(table: Table, deliverer: Deliverer) -> (Self, MemoryQueue) {
        let (worker, queue) = DeliveryWorker::new(deliverer);
        (Self { table, worker }, queue)
    }

    /// Makes the due deliveries until the future is dropped.
    pub async fn make_due_deliveries(mut self, clock: &dyn Clock) {
        let mut printed = PrintedErrors::default();
        for error in self.load_pending_deliveries().await {
            printed.print_once(error);
        }
        self.worker.run(clock, |error| printed.print_once(error)).await;
    }

    /// Adds the pending deliveries in the table to the worker. Returns one error for each item that cannot be read, and
    /// for each failed request.
    async fn load_pending_deliveries(&mut self) -> Vec<TableError> {
        let endpoints = match self.table.get_webhook_subscribers().await {
            Ok(endpoints) => endpoints,
            Err(error) => return vec![error],
        };
        let mut errors = endpoints.unreadable;
        for endpoint in endpoints.items {
            errors.extend(endpoint.error);
            match self.table.get_deliveries(endpoint.endpoint, &Paging::all(), DateTime::UNIX_EPOCH).await {
                Ok(deliveries) => {
                    errors.extend(deliveries.unreadable);
                    let is_pending = |delivery: &Delivery| delivery.status == DeliveryStatus::Pending;
                    for delivery in deliveries.items.into_iter().filter(is_pending) {
                        self.worker.add(delivery.next_try_at.unwrap_or_default(), delivery.key);
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        errors
    }
}

impl PrintedErrors {
    /// Prints `error`. An error about an unreadable item is printed only once.
    fn print_once(&mut self, error: TableError) {
        let is_unreadable = matches!(error, TableError::Unreadable { .. });
        let text = error.to_string();
        if !is_unreadable {
            output::print_message(format!(
                "error: webhook deliveries failed, and are tried again now or after the next start: {text}"
            ));
        } else if self.0.insert(text.clone()) {
            output::print_message(format!("error: webhook deliveries wait until an operator repairs an item: {text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use billing::{DeliveryKey, StoredSecret, WebhookEndpoint};

    use clock::SystemClock;
    use emulator::Engine;
    use encryption::{EncryptionKeys, generate_key};
    use outbound::{AllowedAddresses, WebhookSender};
    use serde_json::json;

    #[tokio::test]
    async fn pending_deliveries_are_loaded_although_an_endpoint_and_a_delivery_cannot_be_read() {
        let (engine, now) = (Engine::in_memory(), DateTime::UNIX_EPOCH);
        let table = Table::new(engine.client(), "dueday");
        table.create_if_absent().await.unwrap();
        let remove = |pk: &str, sk: &str, name: &str| {
            let key = json!({ "PK": { "S": pk }, "SK": { "S": sk } });
            let names = json!({ "#N": name });
            let update = json!({ "TableName": "dueday", "Key": key, "UpdateExpression": "REMOVE #N",
                "ExpressionAttributeNames": names });
            engine.execute("UpdateItem", &update).unwrap();
        };
        for n in [1, 2] {
            let url = "http://127.0.0.1/".parse().unwrap();
            let endpoint = WebhookEndpoint::new(ulid::Ulid(n), url, StoredSecret::Encrypted("v1".to_owned()), now);
            table.create_webhook_endpoint(&endpoint, None).await.unwrap();
            for event in ["a", "b"] {
                let key = DeliveryKey { endpoint: endpoint.id, event: event.to_owned() };
                let new = Delivery::new(key, "account.created".to_owned(), "{}".to_owned(), now);
                assert!(table.create_delivery(&new).await.unwrap());
            }
        }
        remove("WEBHOOKS", &format!("ENDPOINT#{}", ulid::Ulid(1)), "Secret");
        let all = engine.execute("Scan", &json!({ "TableName": "dueday" })).unwrap();
        let is_corrupted = |item: &&serde_json::Value| {
            item["SK"]["S"] == "EVENT#a" && item["PK"]["S"].as_str().unwrap().contains(&ulid::Ulid(2).to_string())
        };
        let corrupted = all["Items"].as_array().unwrap().iter().find(is_corrupted).unwrap();
        remove(corrupted["PK"]["S"].as_str().unwrap(), "EVENT#a", "Status");
        let sender = WebhookSender::new(AllowedAddresses::Any, Duration::from_secs(1)).unwrap();
        let keys = EncryptionKeys::parse(&generate_key(&SystemClock)).unwrap();
        let deliverer = Deliverer::new(table.clone(), sender, keys, Arc::new(SystemClock));
        let (mut deliveries, _queue) = LocalDeliveries::new(table, deliverer);
        let errors: Vec<_> = deliveries.load_pending_deliveries().await.iter().map(TableError::to_string).collect();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].contains("WEBHOOKS ENDPOINT#") && errors[1].contains("EVENT#a"), "{errors:?}");
        assert_eq!(deliveries.worker.waiting_count(), 3, "two of the unreadable endpoint, one of the other");
    }
}
