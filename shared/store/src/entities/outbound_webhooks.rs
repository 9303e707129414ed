//! The requests for webhook endpoints, and for the deliveries of events to them.

use chrono::{DateTime, Utc};
use ulid::Ulid;

use crate::items::{EventSubscriber, read_event_subscriber, recover_delivery};
use crate::keys;
use crate::table::payments_table::Table;
use billing::{Delivery, DeliveryKey, NewAction, WebhookEndpoint};
use dynamo::{ABSENT, Entity as _, ItemRewrite, PrefixQuery, TransactionOutcome, key_of_item};
use dynamo::{Cursor, IdempotencyKeyReuse, IdempotentRequest, Item, Page, Paging, TableError};

/// The writes of the transaction that creates a webhook endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WebhookEndpointWrite {
    Endpoint,
    IdempotencyRecord,
    ActionEntry,
}

impl Table {
    /// Creates `endpoint`, whose id is new, with the action-log entry of `action`. Sends one PutItem request or, with
    /// an `action`, one TransactWriteItems request, on condition that the endpoint is absent.
    pub async fn create_webhook_endpoint(
        &self,
        endpoint: &WebhookEndpoint,
        action: Option<&NewAction>,
    ) -> Result<(), TableError> {
        let is_created = match action {
            Some(action) => {
                let entry = self.build_action_put(&action.on_endpoint(None, endpoint));
                let writes = vec![self.build_put_if(endpoint.to_item(), ABSENT, None), entry];
                matches!(self.transact_with_retries(writes).await?, TransactionOutcome::Written)
            }
            None => self.put_if_absent(endpoint.to_item()).await?,
        };
        match is_created {
            true => Ok(()),
            // The SDK has retried the request: an earlier try succeeded, but its response was lost.
            false if self.get_webhook_endpoint(endpoint.id).await?.as_ref() == Some(endpoint) => Ok(()),
            false => Err(TableError::Exists { key: endpoint.key() }),
        }
    }

    /// Creates `endpoint`, whose id is new, with the idempotency record of `request` and the action-log entry of
    /// `action`. If the idempotency key was used before, creates nothing and returns the earlier use of the key. Sends
    /// one TransactWriteItems request.
    pub async fn create_webhook_endpoint_once(
        &self,
        endpoint: &WebhookEndpoint,
        request: &IdempotentRequest,
        action: &NewAction,
    ) -> Result<Option<IdempotencyKeyReuse>, TableError> {
        let entry = self.build_action_put(&action.on_endpoint(None, endpoint));
        let put = self.build_put_if(endpoint.to_item(), ABSENT, None);
        let record = self.build_idempotency_put(request);
        let writes = [
            (WebhookEndpointWrite::Endpoint, put),
            (WebhookEndpointWrite::IdempotencyRecord, record),
            (WebhookEndpointWrite::ActionEntry, entry),
        ];
        match self.transact_named(writes).await? {
            TransactionOutcome::Written => Ok(None),
            TransactionOutcome::ConditionFailed(failed) => match failed.item(WebhookEndpointWrite::IdempotencyRecord) {
                Some(record) => request.compare_with_record(record).map(Some),
                None => Err(TableError::Exists { key: endpoint.key() }),
            },
        }
    }

    /// Returns the endpoint `id`; `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_webhook_endpoint(&self, id: Ulid) -> Result<Option<WebhookEndpoint>, TableError> {
        self.get(keys::key_of_webhook_endpoint(id)).await?.map(|item| WebhookEndpoint::from_item(&item)).transpose()
    }

    /// Returns the webhook endpoints, the oldest first. Sends a Query with `PK = WEBHOOKS`.
    pub async fn get_webhook_endpoints(&self, paging: &Paging) -> Result<Page<WebhookEndpoint>, TableError> {
        let list = PrefixQuery::new(keys::WEBHOOKS, keys::WEBHOOK_ENDPOINTS);
        Ok(self.list_items(&list, paging).await?.read(|item| WebhookEndpoint::from_item(&item)))
    }

    /// Returns whether the table contains a webhook endpoint, even a disabled or unreadable one. Sends a Query with `PK
    /// = WEBHOOKS`, a strongly consistent read.
    pub async fn has_webhook_endpoints(&self) -> Result<bool, TableError> {
        let list = PrefixQuery::new(keys::WEBHOOKS, keys::WEBHOOK_ENDPOINTS);
        Ok(!self.list_items(&list, &Paging { after: None, limit: Some(1) }).await?.items.is_empty())
    }

    /// Returns all webhook endpoints with the event types that they receive, the oldest first. An endpoint that cannot
    /// be read is also returned, if its id can be read. Sends a Query with `PK = WEBHOOKS`.
    pub async fn get_webhook_subscribers(&self) -> Result<Page<EventSubscriber>, TableError> {
        let list = PrefixQuery::new(keys::WEBHOOKS, keys::WEBHOOK_ENDPOINTS);
        Ok(self.list_items(&list, &Paging::all()).await?.read(|item| read_event_subscriber(&item)))
    }

    /// Changes the endpoint `stored` with `change`, and computes the change again on a write conflict. If `change`
    /// returns `None`, nothing is written. Returns the stored endpoint; `None` if it does not exist any more. Sends one
    /// UpdateItem request per try.
    pub async fn change_webhook_endpoint(
        &self,
        stored: WebhookEndpoint,
        change: impl Fn(&WebhookEndpoint) -> Option<WebhookEndpoint>,
    ) -> Result<Option<WebhookEndpoint>, TableError> {
        self.change_item(stored, change).await
    }

    /// Like [`Table::change_webhook_endpoint`], with the action-log entry of `action` in the same transaction. Sends
    /// one TransactWriteItems request per try.
    pub async fn change_webhook_endpoint_with_action(
        &self,
        stored: WebhookEndpoint,
        action: &NewAction,
        change: impl Fn(&WebhookEndpoint) -> Option<WebhookEndpoint>,
    ) -> Result<Option<WebhookEndpoint>, TableError> {
        let change = |stored: &WebhookEndpoint| {
            let changed = change(stored)?;
            let log_entry = Some(self.build_action_put(&action.on_endpoint(Some(stored), &changed)));
            Some(ItemRewrite { log_entry, ..ItemRewrite::without_records(changed) })
        };
        self.change_with_records(stored, change).await
    }

    /// Creates the error for the endpoint `id`, whose item can be read, but whose encrypted signing secret cannot be
    /// decrypted.
    pub fn unreadable_webhook_endpoint(id: Ulid, reason: impl std::fmt::Display) -> TableError {
        TableError::unreadable(keys::key_of_webhook_endpoint(id), reason)
    }

    /// Deletes the endpoint `id`, with the action-log entry of `action` in the same transaction. Returns whether it
    /// existed. Sends one TransactWriteItems request.
    pub async fn delete_webhook_endpoint(&self, id: Ulid, action: &NewAction) -> Result<bool, TableError> {
        let entry = self.build_action_put(&action.on_removed_endpoint(id));
        let writes = vec![self.build_delete(keys::key_of_webhook_endpoint(id)), entry];
        Ok(matches!(self.transact_with_retries(writes).await?, TransactionOutcome::Written))
    }

    /// Creates `delivery`, unless a delivery with its key exists. Returns whether it was created. Sends one PutItem
    /// request, on condition that the delivery is absent.
    pub async fn create_delivery(&self, delivery: &Delivery) -> Result<bool, TableError> {
        self.put_if_absent(delivery.to_item()).await
    }

    /// Returns the delivery `key`; `None` if it does not exist. Sends one strongly consistent GetItem request, and a
    /// second GetItem request, with the key of earlier versions, if no item has the key of this version.
    pub async fn get_delivery(&self, key: &DeliveryKey) -> Result<Option<Delivery>, TableError> {
        self.get_delivery_item(key).await?.map(|item| Delivery::from_item(&item)).transpose()
    }

    /// Returns the item of the delivery `key`. If an earlier version of Dueday has stored the item under
    /// [`keys::earlier_key_of_delivery`], first copies the item to its key in this version; the earlier item expires.
    async fn get_delivery_item(&self, key: &DeliveryKey) -> Result<Option<Item>, TableError> {
        let stored = self.get(keys::key_of_delivery(key)).await?;
        if stored.is_some() {
            return Ok(stored);
        }
        let Some(mut item) = self.get(keys::earlier_key_of_delivery(key)).await? else { return Ok(None) };
        item.extend(keys::key_of_delivery(key).attributes());
        match self.put_if_absent(item.clone()).await? {
            true => Ok(Some(item)),
            // Another worker has copied the item at the same time, and may have changed the copy.
            false => self.get(keys::key_of_delivery(key)).await,
        }
    }

    /// Restarts the delivery `key`, whatever its status, and writes the action-log entry of `action`. Returns the
    /// delivery; `None` if it does not exist. Sends one GetItem request, and then one UpdateItem request or, with an
    /// `action`, one TransactWriteItems request per try. If the stored delivery cannot be read, but its event can be
    /// read, replaces the delivery with a new delivery of this event, with one TransactWriteItems request.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if the stored delivery cannot be read, and its event cannot be recovered from it.
    pub async fn restart_delivery(
        &self,
        key: &DeliveryKey,
        action: Option<&NewAction>,
        now: DateTime<Utc>,
    ) -> Result<Option<Delivery>, TableError> {
        let entry = |restarted: &Delivery| action.map(|action| self.build_action_put(&action.on_delivery(restarted)));
        let restart = |stored: &Delivery| {
            let restarted = stored.restarted(now);
            Some(ItemRewrite { log_entry: entry(&restarted), ..ItemRewrite::without_records(restarted) })
        };
        let Some(item) = self.get_delivery_item(key).await? else { return Ok(None) };
        match (Delivery::from_item(&item), recover_delivery(key, &item, now)) {
            (Ok(stored), _) => self.change_with_records(stored, restart).await,
            (Err(_), Some(recovered)) => {
                let writes = [self.build_put(recovered.to_item())].into_iter().chain(entry(&recovered)).collect();
                self.transact_with_retries(writes).await?;
                Ok(Some(recovered))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Returns the deliveries to the endpoint `id` that have not expired at `now`, one partition after the other. In
    /// each partition, the deliveries have the order of their events' ids. Sends a Query for each partition, until the
    /// list page is full.
    pub async fn get_deliveries(
        &self,
        id: Ulid,
        paging: &Paging,
        now: DateTime<Utc>,
    ) -> Result<Page<Delivery>, TableError> {
        let cursor = paging.after.as_ref().and_then(|cursor| cursor.as_str().strip_prefix(keys::DELIVERIES));
        let (first, mut after) = (cursor.map_or(0, keys::partition_of_event), paging.after.clone());
        let (mut items, mut next) = (Vec::new(), None);
        for partition in first..keys::DELIVERY_PARTITIONS {
            let list =
                PrefixQuery::new(keys::partition_key_of_deliveries(id, partition), keys::DELIVERIES).unexpired_at(now);
            // Request one item more than fits into the list page: if this item exists, there is a next list page.
            let limit = paging.limit.map(|limit| limit.saturating_add(1).saturating_sub(items.len()));
            let mut part = self.list_items(&list, &Paging { after: after.take(), limit }).await?;
            items.append(&mut part.items);
            if let Some(limit) = paging.limit.filter(|limit| items.len() > *limit) {
                items.truncate(limit);
                next = items.last().map(|item| Cursor::after(key_of_item(item).sk));
                break;
            }
        }
        Ok(Page { items, unreadable: Vec::new(), next }.read(|item| Delivery::from_item(&item)))
    }

    /// Changes the delivery `stored` with `change`, and computes the change again on a write conflict. If `change`
    /// returns `None`, nothing is written. Returns the stored delivery; `None` if it does not exist any more. Sends one
    /// UpdateItem request per try.
    pub async fn change_delivery(
        &self,
        stored: Delivery,
        change: impl Fn(&Delivery) -> Option<Delivery>,
    ) -> Result<Option<Delivery>, TableError> {
        self.change_item(stored, change).await
    }
}
