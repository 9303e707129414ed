//! Creates, changes and removes webhook endpoints for an operator, who uses the HTTP API or a command.

use std::sync::Arc;

use billing::{Delivery, DeliveryKey, EndpointUrl, EventType, NewAction, SigningSecret, UrlError, WebhookEndpoint};
use chrono::{DateTime, SecondsFormat, Utc};
use clock::Clock;
use encryption::EncryptionKeys;
use store::{Paging, Table, TableError};
use strum::IntoEnumIterator as _;
use ulid::Ulid;

use super::{AddressError, EndpointSecrets, EndpointUrlCheck};

/// The value of `disabled_because` for an endpoint that an operator has disabled.
const DISABLED_BY_OPERATOR: &str = "an operator has disabled it";
/// The largest number of webhook endpoints. The number is limited because all endpoints are read for each event.
const MAX_ENDPOINTS: usize = 20;

/// The reason why a webhook endpoint was not created or changed, or an event not redelivered.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum EndpointError {
    /// The URL is not valid.
    #[error("{0}")]
    Url(UrlError),
    /// Events must not be sent to the address of the URL, for example because it is a private address.
    #[error("{0}")]
    Address(AddressError),
    #[error("there are already {MAX_ENDPOINTS} webhook endpoints; remove one first")]
    TooMany,
    #[error("there is no such webhook endpoint")]
    NoEndpoint,
    #[error("there is no such delivery to this endpoint, or it is more than 30 days old")]
    NoDelivery,
    #[error("the endpoint is disabled; enable it first")]
    Disabled,
    #[error("the previous secret is still valid until {}; rotate again after that", .0.to_rfc3339_opts(SecondsFormat::Secs, true))]
    SecretStillValid(DateTime<Utc>),
    #[error("the encryption keys for signing secrets are missing")]
    NoEncryptionKeys,
    #[error("the stored delivery cannot be read, and its event cannot be recovered from it: {0}")]
    DeliveryLost(TableError),
    #[error(transparent)]
    Table(#[from] TableError),
}

impl EndpointError {
    /// Returns the name of the error, such as `DeliveryLost`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }
}

/// A change of a webhook endpoint. If a field is `None`, the endpoint keeps its value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EndpointChange {
    /// The new URL.
    pub url: Option<String>,
    /// The event types that the endpoint will receive; an empty list means all types.
    pub types: Option<Vec<EventType>>,
    /// Whether to enable or to disable the endpoint.
    pub enabled: Option<bool>,
}

/// Creates, changes and removes the webhook endpoints in a table.
#[derive(Clone, Debug)]
pub struct WebhookEndpoints {
    table: Table,
    secrets: Option<EndpointSecrets>,
    addresses: EndpointUrlCheck,
    clock: Arc<dyn Clock>,
}

/// Parses the name of an event type.
///
/// # Errors
/// Returns a message that lists all types, if there is no type with this name.
pub fn parse_event_type(name: &str) -> Result<EventType, String> {
    let names = || EventType::iter().map(|event_type| event_type.to_string()).collect::<Vec<_>>().join(", ");
    name.parse().map_err(|_| format!("must be one of {}", names()))
}

impl WebhookEndpoints {
    /// Creates a service that changes the endpoints in `table`. `keys` encrypt the signing secrets; without keys, no
    /// endpoint can be created, and no secret can be rotated. `addresses` decides which URLs the endpoints may have.
    pub fn new(table: Table, keys: Option<EncryptionKeys>, addresses: EndpointUrlCheck, clock: Arc<dyn Clock>) -> Self {
        let secrets = keys.map(|keys| EndpointSecrets::new(keys, clock.clone()));
        Self { table, secrets, addresses, clock }
    }

    /// Returns a new endpoint, which the caller must store, and its new secret.
    ///
    /// # Errors
    /// If there are no encryption keys, `url` is not allowed, or there are too many endpoints.
    pub async fn prepare(
        &self,
        url: &str,
        types: Vec<EventType>,
    ) -> Result<(WebhookEndpoint, SigningSecret), EndpointError> {
        let secrets = self.secrets.as_ref().ok_or(EndpointError::NoEncryptionKeys)?;
        let url = self.parse_url(url).await?;
        let paging = Paging { after: None, limit: Some(MAX_ENDPOINTS) };
        if self.table.get_webhook_endpoints(&paging).await?.items.len() >= MAX_ENDPOINTS {
            return Err(EndpointError::TooMany);
        }
        let (id, secret) = (self.clock.ulid(), SigningSecret::new(self.clock.random_secret()));
        let new = WebhookEndpoint::new(id, url, secrets.encrypt(id, &secret), self.clock.now());
        Ok((WebhookEndpoint { types, ..new }, secret))
    }

    /// Returns the endpoint `id`.
    ///
    /// # Errors
    /// [`EndpointError::NoEndpoint`] if there is none.
    pub async fn get(&self, id: Ulid) -> Result<WebhookEndpoint, EndpointError> {
        self.table.get_webhook_endpoint(id).await?.ok_or(EndpointError::NoEndpoint)
    }

    /// Makes `change` to the endpoint `id`, writes `action` to the action log, and returns the changed endpoint.
    ///
    /// # Errors
    /// If the new URL is not allowed, or if there is no such endpoint.
    pub async fn change(
        &self,
        id: Ulid,
        change: EndpointChange,
        action: &NewAction,
    ) -> Result<WebhookEndpoint, EndpointError> {
        let EndpointChange { url, types, enabled } = change;
        let url = match url {
            Some(text) => Some(self.parse_url(&text).await?),
            None => None,
        };
        let now = self.clock.now();
        let changed = |stored: &WebhookEndpoint| {
            let stored = stored.with_url(url.clone().unwrap_or_else(|| stored.url.clone()));
            let types = types.clone().unwrap_or(stored.types);
            let endpoint = WebhookEndpoint { types, ..stored };
            let endpoint = match enabled {
                Some(true) => endpoint.enabled(),
                Some(false) => endpoint.disabled(DISABLED_BY_OPERATOR),
                None => endpoint,
            };
            Some(match &self.secrets {
                Some(secrets) => secrets.encrypt_with_first_key(endpoint, now),
                None => endpoint,
            })
        };
        let stored = self.get(id).await?;
        self.table.change_webhook_endpoint_with_action(stored, action, changed).await?.ok_or(EndpointError::NoEndpoint)
    }

    /// Replaces the secret of the endpoint `id`, writes `action` to the action log, and returns the endpoint and its
    /// new secret. The replaced secret stays valid for 24 hours. If a valid secret cannot be decrypted, no event can be
    /// signed with that secret: in this case, all former secrets become invalid at once.
    ///
    /// # Errors
    /// If there are no encryption keys, there is no such endpoint, or its previous secret is still valid.
    pub async fn rotate_secret(
        &self,
        id: Ulid,
        action: &NewAction,
    ) -> Result<(WebhookEndpoint, SigningSecret), EndpointError> {
        let secrets = self.secrets.as_ref().ok_or(EndpointError::NoEncryptionKeys)?;
        let (secret, now) = (SigningSecret::new(self.clock.random_secret()), self.clock.now());
        let new = secrets.encrypt(id, &secret);
        let rotated = |stored: &WebhookEndpoint| match secrets.signing_secrets(stored, now) {
            Ok(_) => {
                let rotated = stored.with_new_secret(new.clone(), now).ok()?;
                Some(secrets.encrypt_with_first_key(rotated, now))
            }
            Err(_) => Some(stored.with_only_secret(new.clone())),
        };
        let stored = self.get(id).await?;
        let written = self.table.change_webhook_endpoint_with_action(stored, action, rotated).await?;
        let endpoint = written.ok_or(EndpointError::NoEndpoint)?;
        match endpoint.previous_secret_until(now) {
            // The new secret was not stored, because the secret was already rotated less than 24 hours ago. If a
            // concurrent request rotated it, the caller of that request has received the stored secret.
            Some(until) if endpoint.secret != new => Err(EndpointError::SecretStillValid(until)),
            _ => Ok((endpoint, secret)),
        }
    }

    /// Encrypts the secrets of the endpoint `id` with the first encryption key, and writes `action` to the action log.
    ///
    /// # Errors
    /// If there are no encryption keys, there is no such endpoint, or a valid secret cannot be decrypted.
    pub async fn encrypt_secrets(&self, id: Ulid, action: &NewAction) -> Result<(), EndpointError> {
        let secrets = self.secrets.as_ref().ok_or(EndpointError::NoEncryptionKeys)?;
        let (stored, now) = (self.get(id).await?, self.clock.now());
        secrets.signing_secrets(&stored, now)?;
        let encrypted = |stored: &WebhookEndpoint| Some(secrets.encrypt_with_first_key(stored.clone(), now));
        let written = self.table.change_webhook_endpoint_with_action(stored, action, encrypted).await?;
        written.ok_or(EndpointError::NoEndpoint)?;
        Ok(())
    }

    /// Deletes the endpoint `id`, and writes `action` to the action log.
    ///
    /// # Errors
    /// [`EndpointError::NoEndpoint`] if there is none.
    pub async fn remove(&self, id: Ulid, action: &NewAction) -> Result<(), EndpointError> {
        if self.table.delete_webhook_endpoint(id, action).await? { Ok(()) } else { Err(EndpointError::NoEndpoint) }
    }

    /// Restarts the delivery `key`, and writes `action` to the action log. Returns the restarted delivery, which the
    /// caller must add to the queue.
    ///
    /// # Errors
    /// If the endpoint or the delivery does not exist, the endpoint is disabled, or the event cannot be recovered.
    pub async fn redeliver(&self, key: &DeliveryKey, action: &NewAction) -> Result<Delivery, EndpointError> {
        if self.get(key.endpoint).await?.disabled_because.is_some() {
            return Err(EndpointError::Disabled);
        }
        match self.table.restart_delivery(key, Some(action), self.clock.now()).await {
            Ok(restarted) => restarted.ok_or(EndpointError::NoDelivery),
            Err(error @ TableError::Unreadable { .. }) => Err(EndpointError::DeliveryLost(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Parses the URL of an endpoint, and checks its address.
    async fn parse_url(&self, text: &str) -> Result<EndpointUrl, EndpointError> {
        let url: EndpointUrl = text.parse().map_err(EndpointError::Url)?;
        self.addresses.check(&url).await.map_err(EndpointError::Address)?;
        Ok(url)
    }
}
