//! Idempotency records of responses that contain a signing secret. These records store the response encrypted.

use axum::http::StatusCode;
use axum::response::Response;
use encryption::EncryptionKeys;
use rest::Problem;
use rest::idempotency::replay_response;
use store::{IdempotencyKeyReuse, IdempotentRequest, StoredResponse};

use crate::Api;

/// Returns the encryption context of the response to `request`: the response can be decrypted only with the same
/// context.
fn response_encryption_context(request: &IdempotentRequest) -> String {
    format!("response to the request {}", request.key_hash)
}

impl Api {
    /// Returns the keys that encrypt the secrets in the table.
    ///
    /// # Errors
    /// 503 if this deployment has no encryption keys.
    fn encryption_keys(&self) -> Result<&EncryptionKeys, Problem> {
        self.encryption.as_ref().ok_or_else(|| {
            tracing::error!("the encryption keys are missing");
            Problem::unavailable()
        })
    }

    /// Returns `request` with the encrypted `response`, for its idempotency record.
    ///
    /// # Errors
    /// 503 if this deployment has no encryption keys.
    pub(super) fn with_encrypted_response(
        &self,
        request: IdempotentRequest,
        response: &StoredResponse,
    ) -> Result<IdempotentRequest, Problem> {
        let json = self.encryption_keys()?.encrypt(
            &response.json,
            &response_encryption_context(&request),
            self.clock.as_ref(),
        );
        let response = StoredResponse { json, version: response.version };
        Ok(IdempotentRequest { response, ..request })
    }

    /// Decrypts the response that was stored for the first request with the idempotency key of `request`, and returns it
    /// with the status code `status`. Earlier versions stored the response as plain text.
    ///
    /// # Errors
    /// 422 if the key was used for a request with another body; 409 if the response cannot be decrypted; 503 if this
    /// deployment has no encryption keys.
    pub(super) fn decrypted_response(
        &self,
        request: &IdempotentRequest,
        replayed: IdempotencyKeyReuse,
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let decrypted = match replayed {
            IdempotencyKeyReuse::SameRequest(stored) if !stored.json.starts_with('{') => {
                let json = self.encryption_keys()?.decrypt(&stored.json, &response_encryption_context(request)).map_err(|error| {
                    tracing::error!(%error, error_type = "Decryption", "the stored response to an earlier request cannot be decrypted");
                    Problem::conflict(
                        "the request was carried out before, but its response with the secret cannot be decrypted; \
                         find the webhook endpoint in the list, and rotate its secret",
                    )
                })?;
                IdempotencyKeyReuse::SameRequest(StoredResponse { json, ..stored })
            }
            replayed => replayed,
        };
        replay_response(decrypted, status)
    }
}
