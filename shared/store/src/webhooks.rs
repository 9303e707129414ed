//! Webhook endpoints, and what is on its way to them.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, Utc};
use ulid::Ulid;

use super::{Page, Paging, Table, TableError, keys};
use billing::{Delivery, DeliveryKey, WebhookEndpoint};
use dynamo::{Entity as _, List};

impl Table {
    /// Creates `endpoint`, whose id is new. PutItem if absent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_webhook_endpoint(&self, endpoint: &WebhookEndpoint) -> Result<(), TableError> {
        match self.put_if_absent(endpoint.to_item()).await? {
            true => Ok(()),
            // Our own put, by a try whose answer was lost.
            false if self.get_webhook_endpoint(endpoint.id).await?.as_ref() == Some(endpoint) => Ok(()),
            false => Err(TableError::Exists { key: endpoint.key() }),
        }
    }

    /// The endpoint `id`. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_webhook_endpoint(&self, id: Ulid) -> Result<Option<WebhookEndpoint>, TableError> {
        self.get(keys::webhook_endpoint(id)).await?.map(|item| WebhookEndpoint::from_item(&item)).transpose()
    }

    /// The endpoints, the oldest first. Query `PK = WEBHOOKS`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_webhook_endpoints(&self, paging: &Paging) -> Result<Page<WebhookEndpoint>, TableError> {
        let list = List::of(keys::WEBHOOKS, keys::WEBHOOK_ENDPOINTS);
        Ok(self.list(&list, paging).await?.read(|item| WebhookEndpoint::from_item(&item)))
    }

    /// Writes what `change` makes of `stored`, or of what is stored by then; `None` of it leaves that. Answers what is
    /// stored, `None` if that is gone. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_webhook_endpoint(
        &self,
        stored: WebhookEndpoint,
        change: impl Fn(&WebhookEndpoint) -> Option<WebhookEndpoint>,
    ) -> Result<Option<WebhookEndpoint>, TableError> {
        self.change(stored, change).await
    }

    /// Deletes the endpoint `id`; answers whether it was there. DeleteItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn delete_webhook_endpoint(&self, id: Ulid) -> Result<bool, TableError> {
        let delete = self
            .client()
            .delete_item()
            .table_name(self.name())
            .set_key(Some(keys::webhook_endpoint(id).attributes()))
            .return_values(ReturnValue::AllOld);
        let deleted = delete.send().await.map_err(|error| TableError::request("DeleteItem", error))?;
        Ok(deleted.attributes.is_some())
    }

    /// Creates `delivery`, unless there is one of its key; answers whether it was created. PutItem if absent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_delivery(&self, delivery: &Delivery) -> Result<bool, TableError> {
        self.put_if_absent(delivery.to_item()).await
    }

    /// The delivery `key`. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_delivery(&self, key: &DeliveryKey) -> Result<Option<Delivery>, TableError> {
        self.get(keys::delivery(key)).await?.map(|item| Delivery::from_item(&item)).transpose()
    }

    /// The deliveries to the endpoint `id` that have not expired by `now`, by the ids of their events. Query.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_deliveries(
        &self,
        id: Ulid,
        paging: &Paging,
        now: DateTime<Utc>,
    ) -> Result<Page<Delivery>, TableError> {
        let list = List::of(keys::deliveries(id), keys::DELIVERIES).unexpired_at(now);
        Ok(self.list(&list, paging).await?.read(|item| Delivery::from_item(&item)))
    }

    /// Writes what `change` makes of `stored`, or of what is stored by then; `None` of it leaves that. Answers what is
    /// stored. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_delivery(
        &self,
        stored: Delivery,
        change: impl Fn(&Delivery) -> Option<Delivery>,
    ) -> Result<Option<Delivery>, TableError> {
        self.change(stored, change).await
    }
}
