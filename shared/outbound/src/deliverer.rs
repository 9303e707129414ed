//! Tries the deliveries of events to webhook endpoints: each try sends the event of a delivery to the endpoint once.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::log_messages::{
    DELIVERY_RETRIED, ENDPOINT_DISABLED, ENDPOINT_UNREADABLE, EVENT_DELIVERED, EVENT_NOT_DELIVERED,
};
use super::probe::{DeliveryAdmission, admit_delivery, count_failed_try};
use super::{EndpointSecrets, NextTryTime, WebhookSender};
use billing::{Delivery, DeliveryKey, DeliveryStatus, SigningSecret, WebhookEndpoint};
use clock::Clock;
use encryption::EncryptionKeys;
use store::{Table, TableError};

/// The reason why a delivery failed, if its endpoint does not exist any more.
const ENDPOINT_REMOVED: &str = "the endpoint was removed";
/// The reason why a delivery failed, if its endpoint is disabled.
const ENDPOINT_DISABLED_REASON: &str = "the endpoint is disabled";
/// The reason why an endpoint is disabled, if it responded with the status 410.
const GONE: &str = "it responded with the status 410 (Gone): it wants no more events";
/// The reason why a delivery failed, if it was created while the event types of its endpoint could not be read, and the
/// repaired endpoint does not receive events of this type.
const NOT_SUBSCRIBED: &str = "the endpoint does not receive events of this type";
/// The reason why a delivery failed, if its endpoint could not be read for four days.
const NOT_READABLE: &str = "the stored endpoint cannot be read";
/// If the stored endpoint cannot be read, its deliveries wait for this time before they are tried again. An operator
/// can repair the endpoint in the meantime.
const UNREADABLE_ENDPOINT_WAIT: TimeDelta = TimeDelta::hours(1);

/// Creates and tries the deliveries of events to webhook endpoints.
#[derive(Clone, Debug)]
pub struct Deliverer {
    pub(super) table: Table,
    sender: WebhookSender,
    secrets: EndpointSecrets,
    pub(super) clock: Arc<dyn Clock>,
}

impl Deliverer {
    /// Creates a deliverer that stores its deliveries in `table`. `keys` decrypt the signing secrets of the endpoints.
    pub fn new(table: Table, sender: WebhookSender, keys: EncryptionKeys, clock: Arc<dyn Clock>) -> Self {
        Self { table, sender, secrets: EndpointSecrets::new(keys, clock.clone()), clock }
    }

    /// Tries the delivery `key`, if it is pending and due, and its endpoint is not in back-off.
    ///
    /// # Errors
    /// Returns an error if a request to the table fails or the delivery cannot be read. The endpoint may have
    /// received the event already, and will receive it again when the delivery is retried.
    pub async fn deliver(&self, key: &DeliveryKey) -> Result<NextTryTime, TableError> {
        let Some(delivery) = self.table.get_delivery(key).await? else { return Ok(NextTryTime::Done) };
        let now = self.clock.now();
        match (delivery.status, delivery.next_try_at) {
            (DeliveryStatus::Pending, Some(next)) if now < next => return Ok(NextTryTime::At(next)),
            (DeliveryStatus::Pending, _) => {}
            (DeliveryStatus::Delivered | DeliveryStatus::Failed, _) => return Ok(NextTryTime::Done),
        }
        let endpoint = match self.table.get_webhook_endpoint(key.endpoint).await {
            Ok(endpoint) => endpoint,
            Err(error @ TableError::Unreadable { .. }) => return self.wait_for_repair(&delivery, &error, now).await,
            Err(error) => return Err(error),
        };
        let Some(endpoint) = endpoint else {
            return self.store_delivery(&delivery, delivery.abandoned(ENDPOINT_REMOVED)).await;
        };
        if endpoint.disabled_because.is_some() {
            return self.store_delivery(&delivery, delivery.abandoned(ENDPOINT_DISABLED_REASON)).await;
        }
        let is_new = delivery.attempts == 0 && delivery.restarted_at.is_none();
        if is_new && !endpoint.receives(&delivery.event_type) {
            return self.store_delivery(&delivery, delivery.abandoned(NOT_SUBSCRIBED)).await;
        }
        let secrets = match self.secrets.signing_secrets(&endpoint, now) {
            Ok(secrets) => secrets,
            Err(error) => return self.wait_for_repair(&delivery, &error, now).await,
        };
        let updated = match admit_delivery(&self.table, endpoint, now, self.clock.ulid()).await? {
            DeliveryAdmission::Removed => delivery.abandoned(ENDPOINT_REMOVED),
            DeliveryAdmission::Try(endpoint) => self.try_delivery(&endpoint, &secrets, &delivery, now).await?,
            DeliveryAdmission::Wait(_, until) if !delivery.is_too_old(now) => {
                return Ok(NextTryTime::EndpointWaits(until));
            }
            DeliveryAdmission::Wait(endpoint, _) => {
                let last_response =
                    delivery.last_response.as_deref().unwrap_or("none, because other deliveries failed");
                let because = format!(
                    "{} was not accepted within four days; the last response was: {last_response}",
                    delivery.event_type
                );
                self.handle_final_failure(&endpoint, &delivery, &because).await?;
                delivery.abandoned(&because)
            }
        };
        self.store_delivery(&delivery, updated).await
    }

    /// Stores `updated` in place of `delivery`, and returns the time of the next try.
    async fn store_delivery(&self, delivery: &Delivery, updated: Delivery) -> Result<NextTryTime, TableError> {
        // If another worker has tried the delivery at the same time and stored an outcome, do not overwrite the stored
        // outcome.
        let update_if_unchanged = |stored: &Delivery| (stored.version == delivery.version).then(|| updated.clone());
        let stored = self.table.change_delivery(delivery.clone(), update_if_unchanged).await?;
        Ok(stored.and_then(|stored| stored.next_try_at).map_or(NextTryTime::Done, NextTryTime::At))
    }

    /// Postpones `delivery`, because its stored endpoint cannot be read (`error`). If the delivery is too old to be
    /// postponed, stores it as failed.
    async fn wait_for_repair(
        &self,
        delivery: &Delivery,
        error: &TableError,
        now: DateTime<Utc>,
    ) -> Result<NextTryTime, TableError> {
        tracing::error!(%error, error_type = "Table", "{ENDPOINT_UNREADABLE}; its deliveries wait until an operator repairs it, and fail after four days");
        match now.checked_add_signed(UNREADABLE_ENDPOINT_WAIT).filter(|_| !delivery.is_too_old(now)) {
            Some(then) => Ok(NextTryTime::EndpointWaits(then)),
            None => {
                let DeliveryKey { endpoint, event } = &delivery.key;
                tracing::error!(%endpoint, event, "{EVENT_NOT_DELIVERED}: {NOT_READABLE}");
                self.store_delivery(delivery, delivery.abandoned(NOT_READABLE)).await
            }
        }
    }

    /// Sends the event of `delivery`, signed with `secrets`, to the endpoint. Returns the delivery with the outcome of
    /// this try; the caller must store it. If the outcome changes the state of the endpoint, also stores this state in
    /// the endpoint's item. After a success, encrypts the endpoint's stored secrets with the first encryption key, if
    /// they are plain text or encrypted with another key.
    async fn try_delivery(
        &self,
        endpoint: &WebhookEndpoint,
        secrets: &[SigningSecret],
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> Result<Delivery, TableError> {
        let url = &endpoint.url;
        let response =
            self.sender.deliver_event(url, secrets, &delivery.key.event, now.timestamp(), &delivery.body).await;
        let tried_at = self.clock.now();
        let (updated, not_before) = (delivery.after_attempt(&response, tried_at), response.not_before(tried_at));
        let (id, last_response) = (&endpoint.id, updated.last_response.as_deref().unwrap_or_default());
        match updated.status {
            DeliveryStatus::Delivered => {
                tracing::info!(endpoint = %id, attempts = updated.attempts, "{EVENT_DELIVERED}");
                let must_write = |stored: &WebhookEndpoint| {
                    stored.should_record_success(now) || !self.secrets.are_encrypted_with_first_key(stored, now)
                };
                if must_write(endpoint) {
                    let with_success = |stored: &WebhookEndpoint| {
                        must_write(stored)
                            .then(|| self.secrets.encrypt_with_first_key(stored.with_success_at(now), now))
                    };
                    self.table.change_webhook_endpoint(endpoint.clone(), with_success).await?;
                }
            }
            DeliveryStatus::Pending => {
                tracing::warn!(
                    endpoint = %id,
                    attempts = updated.attempts,
                    came_to = last_response,
                    "{DELIVERY_RETRIED}"
                );
                count_failed_try(&self.table, endpoint, tried_at, not_before, self.clock.ulid()).await?;
            }
            DeliveryStatus::Failed if response.is_gone() => {
                self.disable_endpoint(endpoint, GONE, |stored| stored.url == endpoint.url).await?;
            }
            DeliveryStatus::Failed => {
                let because = format!(
                    "{} failed {} times; the last response was: {last_response}",
                    updated.event_type, updated.attempts
                );
                count_failed_try(&self.table, endpoint, tried_at, not_before, self.clock.ulid()).await?;
                self.handle_final_failure(endpoint, delivery, &because).await?;
            }
        }
        Ok(updated)
    }

    /// Handles the final failure of `delivery`; `because` is the reason. If the endpoint has accepted no event since
    /// the delivery was created, disables the endpoint and logs that. Otherwise logs that the event was not delivered.
    async fn handle_final_failure(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: &Delivery,
        because: &str,
    ) -> Result<(), TableError> {
        let id = endpoint.id;
        if !endpoint.has_no_success_since(delivery.created_at) {
            let event = &delivery.key.event;
            tracing::error!(endpoint = %id, event, because, "{EVENT_NOT_DELIVERED}; its endpoint accepts other events");
            return Ok(());
        }
        // The stored endpoint may be newer than the copy that this try used. The endpoint stays enabled if the merchant has
        // changed its URL since, or if it has accepted another event since.
        let is_dead =
            |stored: &WebhookEndpoint| stored.url == endpoint.url && stored.has_no_success_since(delivery.created_at);
        self.disable_endpoint(endpoint, because, is_dead).await
    }

    /// Logs that `endpoint` is disabled for the reason `because`, and disables it if `is_dead` returns true for the stored
    /// endpoint.
    async fn disable_endpoint(
        &self,
        endpoint: &WebhookEndpoint,
        because: &str,
        is_dead: impl Fn(&WebhookEndpoint) -> bool,
    ) -> Result<(), TableError> {
        // Log before the write: if the worker were killed between the write and the log message, no later try would log
        // that the endpoint was disabled.
        tracing::error!(endpoint = %endpoint.id, because, "{ENDPOINT_DISABLED}");
        let disable_if_dead = |stored: &WebhookEndpoint| is_dead(stored).then(|| stored.disabled(because));
        self.table.change_webhook_endpoint(endpoint.clone(), disable_if_dead).await?;
        Ok(())
    }
}
