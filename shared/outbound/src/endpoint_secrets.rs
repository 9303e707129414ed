//! Encrypts and decrypts the signing secrets of webhook endpoints.

use std::sync::Arc;

use billing::{SigningSecret, StoredSecret, WebhookEndpoint};
use chrono::{DateTime, Utc};
use clock::Clock;
use encryption::EncryptionKeys;
use store::{Table, TableError};
use ulid::Ulid;

/// Encrypts and decrypts the signing secrets of webhook endpoints.
#[derive(Clone, Debug)]
pub struct EndpointSecrets {
    keys: EncryptionKeys,
    clock: Arc<dyn Clock>,
}

/// Returns the encryption context of the secrets of `endpoint`: a secret can be decrypted only with the same context.
/// The context is the same for the current and the previous secret, so a rotation can move the encrypted text to
/// another attribute without encrypting it again.
fn encryption_context_of(endpoint: Ulid) -> String {
    format!("signing secret of the webhook endpoint {endpoint}")
}

impl EndpointSecrets {
    /// Creates an object that encrypts with the first of `keys`, and decrypts with any of these keys. The random
    /// numbers come from `clock`, so that a test can determine them.
    pub fn new(keys: EncryptionKeys, clock: Arc<dyn Clock>) -> Self {
        Self { keys, clock }
    }

    /// Encrypts `secret`, a signing secret of `endpoint`.
    pub fn encrypt(&self, endpoint: Ulid, secret: &SigningSecret) -> StoredSecret {
        let text = self.keys.encrypt(&secret.reveal(), &encryption_context_of(endpoint), self.clock.as_ref());
        StoredSecret::Encrypted(text)
    }

    /// Decrypts `stored`, a signing secret of `endpoint`.
    ///
    /// # Errors
    /// [`TableError::Unreadable`], with the possible repairs, if the secret cannot be decrypted.
    pub fn decrypt(&self, endpoint: Ulid, stored: &StoredSecret) -> Result<SigningSecret, TableError> {
        let encrypted = match stored {
            StoredSecret::Encrypted(text) => text,
            StoredSecret::Plain(secret) => return Ok(secret.clone()),
        };
        let unreadable = |reason: String| {
            let reason = format!(
                "its signing secret cannot be decrypted: {reason}. Restore the encryption keys, or replace the secret \
                 with `dueday webhooks rotate-secret {endpoint}`"
            );
            Table::unreadable_webhook_endpoint(endpoint, reason)
        };
        let text = self
            .keys
            .decrypt(encrypted, &encryption_context_of(endpoint))
            .map_err(|error| unreadable(error.to_string()))?;
        text.parse().map_err(|_| unreadable("the decrypted text is no signing secret".to_owned()))
    }

    /// Returns the secrets of `endpoint` with which events are signed at `now`, the newest first.
    ///
    /// # Errors
    /// [`TableError::Unreadable`], with the possible repairs, if a secret cannot be decrypted.
    pub fn signing_secrets(
        &self,
        endpoint: &WebhookEndpoint,
        now: DateTime<Utc>,
    ) -> Result<Vec<SigningSecret>, TableError> {
        let valid = std::iter::once(&endpoint.secret).chain(endpoint.valid_previous_secret(now));
        valid.map(|stored| self.decrypt(endpoint.id, stored)).collect()
    }

    /// Returns whether all secrets of `endpoint` that are valid at `now` are encrypted with the first key.
    pub fn are_encrypted_with_first_key(&self, endpoint: &WebhookEndpoint, now: DateTime<Utc>) -> bool {
        let mut valid = std::iter::once(&endpoint.secret).chain(endpoint.valid_previous_secret(now));
        valid.all(|stored| self.is_encrypted_with_first_key(stored))
    }

    /// Returns whether the secret `stored` is encrypted with the first key.
    fn is_encrypted_with_first_key(&self, stored: &StoredSecret) -> bool {
        match stored {
            StoredSecret::Encrypted(text) => self.keys.is_encrypted_with_first_key(text),
            StoredSecret::Plain(_) => false,
        }
    }

    /// Encrypts the secrets of `endpoint` again with the first key, if an earlier version has stored them as plain
    /// text, or another key has encrypted them. In that case, also removes the previous secret if it is no longer valid
    /// at `now`. A secret that the first key has encrypted, or that cannot be decrypted, stays unchanged.
    #[must_use]
    pub fn encrypt_with_first_key(&self, endpoint: WebhookEndpoint, now: DateTime<Utc>) -> WebhookEndpoint {
        if self.are_encrypted_with_first_key(&endpoint, now) {
            return endpoint;
        }
        let id = endpoint.id;
        let encrypt = |stored: StoredSecret| match self.decrypt(id, &stored) {
            Ok(secret) if !self.is_encrypted_with_first_key(&stored) => self.encrypt(id, &secret),
            _ => stored,
        };
        let previous = endpoint.previous_secret.filter(|(_, until)| now < *until);
        let previous_secret = previous.map(|(secret, until)| (encrypt(secret), until));
        WebhookEndpoint { secret: encrypt(endpoint.secret), previous_secret, ..endpoint }
    }
}
