//! Encrypts the secrets that the table stores, such as the signing secrets of webhook endpoints.
//!
//! AES-256-GCM encrypts and authenticates the text, with a random nonce of 96 bits. The context of the text, for
//! example the id of its webhook endpoint, is authenticated too. An encrypted text that was copied to another item has
//! another context, so it cannot be decrypted there.
//!
//! The form of an encrypted text is `v1.<key id>.<base64>`. The base64 part contains the nonce, the encrypted text and
//! the authentication tag.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod keys;

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::Clock;
use config::ReadingFunction::{Api, Deliver};
use config::{EnvVariable, variables};

pub use keys::{EncryptionKeys, EncryptionKeysError, generate_key};

/// The variable with the encryption keys themselves, not with the name of a secret. No command-line flag sets this
/// variable, and its value is never printed or logged.
pub const ENCRYPTION_KEYS: EnvVariable = EnvVariable::new(
    &[],
    "DUEDAY_ENCRYPTION_KEYS",
    "KEYS",
    "With --table, the keys that encrypt the signing secrets of webhook endpoints: the value of the stack's secret EncryptionKeys",
);

variables! {
    ENCRYPTION_KEYS_SECRET_NAME = EnvVariable::new(&[Api, Deliver], "DUEDAY_ENCRYPTION_KEYS_SECRET_NAME", "SECRET",
        "The name or ARN of the secret in AWS Secrets Manager with the keys that encrypt the signing secrets of webhook endpoints");
}

/// The version of the form of encrypted texts, with which each encrypted text begins.
const VERSION: &str = "v1";

/// The reason why an encrypted text could not be decrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecryptionError {
    #[error("it is not an encrypted text that this version of Dueday can read")]
    UnknownForm,
    /// Contains the id of the missing key.
    #[error("the encryption key {0} is not among the configured encryption keys")]
    MissingKey(String),
    /// The text is not authentic.
    #[error("it was changed, or copied from another item")]
    NotAuthentic,
}

impl EncryptionKeys {
    /// Encrypts `text` with the first key. `context` describes the item that stores the text. The decryption needs the
    /// same `context`. `clock` is the source of the random nonce.
    pub fn encrypt(&self, text: &str, context: &str, clock: &dyn Clock) -> String {
        // Use the last bytes of the random secret as the nonce: the first bytes of the secrets of a simulated clock are
        // the same for a whole millisecond.
        let nonce: [u8; NONCE_LEN] = clock.random_secret().last_chunk().copied().unwrap_or_default();
        let key = self.first_key();
        let mut encrypted = text.as_bytes().to_vec();
        key.cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut encrypted)
            .expect("the text is shorter than the limit of AES-GCM, 64 GB");
        encrypted.splice(0..0, nonce);
        format!("{VERSION}.{}.{}", key.id, STANDARD.encode(encrypted))
    }

    /// Decrypts `encrypted`, which was encrypted in the same `context`, with the key whose id `encrypted` contains.
    ///
    /// # Errors
    /// - [`DecryptionError::UnknownForm`] if `encrypted` does not have the form of an encrypted text.
    /// - [`DecryptionError::MissingKey`] if the key is not among these keys.
    /// - [`DecryptionError::NotAuthentic`] if the text was changed, or was encrypted in another context.
    pub fn decrypt(&self, encrypted: &str, context: &str) -> Result<String, DecryptionError> {
        let (id, encoded) = split_key_id(encrypted).ok_or(DecryptionError::UnknownForm)?;
        let key = self.find_key(id).ok_or_else(|| DecryptionError::MissingKey(id.to_owned()))?;
        let bytes = STANDARD.decode(encoded).map_err(|_| DecryptionError::UnknownForm)?;
        let (nonce, mut text) = bytes
            .split_first_chunk::<NONCE_LEN>()
            .map(|(n, t)| (*n, t.to_vec()))
            .ok_or(DecryptionError::UnknownForm)?;
        let text = key
            .cipher
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut text)
            .map_err(|_| DecryptionError::NotAuthentic)?;
        String::from_utf8(text.to_vec()).map_err(|_| DecryptionError::UnknownForm)
    }

    /// Returns whether `encrypted` was encrypted with the first key.
    pub fn is_encrypted_with_first_key(&self, encrypted: &str) -> bool {
        split_key_id(encrypted).is_some_and(|(id, _)| id == self.first_key().id)
    }
}

/// Returns the key id and the base64 part of `encrypted`; `None` if `encrypted` does not begin with [`VERSION`] and a
/// key id.
fn split_key_id(encrypted: &str) -> Option<(&str, &str)> {
    encrypted.strip_prefix(VERSION)?.strip_prefix('.')?.split_once('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use clock::{SimulatedClock, SystemClock};

    /// Returns the encryption keys in `texts`. The first key encrypts.
    fn parse_encryption_keys(texts: &[String]) -> EncryptionKeys {
        EncryptionKeys::parse(&texts.join("\n")).unwrap()
    }

    #[test]
    fn encrypted_text_is_decrypted_only_unchanged_and_in_its_context() {
        let keys = parse_encryption_keys(&[generate_key(&SystemClock)]);
        let encrypted = keys.encrypt("the text", "item 1", &SystemClock);
        assert!(!encrypted.contains("the text"));
        assert_eq!(keys.decrypt(&encrypted, "item 1").as_deref(), Ok("the text"));
        assert_eq!(keys.decrypt(&encrypted, "item 2"), Err(DecryptionError::NotAuthentic), "a copy in another item");
        let (head, encoded) = encrypted.rsplit_once('.').unwrap();
        let bytes = STANDARD.decode(encoded).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let changed = format!("{head}.{}", STANDARD.encode(changed));
            assert_eq!(keys.decrypt(&changed, "item 1"), Err(DecryptionError::NotAuthentic), "byte {place}");
        }
        for wrong in ["", "v1", "v1.", "v2.aaaaaaaa.AAAA", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(keys.decrypt(wrong, "item 1"), Err(DecryptionError::UnknownForm), "{wrong}");
        }
        assert_eq!(keys.decrypt(&format!("{head}.AAAA"), "item 1"), Err(DecryptionError::UnknownForm));
    }

    #[test]
    fn equal_texts_are_encrypted_differently_also_at_the_same_time_of_a_simulated_clock() {
        let clock = SimulatedClock::new(DateTime::UNIX_EPOCH, 7);
        let keys = parse_encryption_keys(&[generate_key(&clock)]);
        assert_ne!(keys.encrypt("the text", "item", &clock), keys.encrypt("the text", "item", &clock));
    }

    #[test]
    fn the_first_key_encrypts_and_every_key_decrypts() {
        let (old, new) = (generate_key(&SystemClock), generate_key(&SystemClock));
        let before = parse_encryption_keys(std::slice::from_ref(&old)).encrypt("the text", "item", &SystemClock);
        let rotated = parse_encryption_keys(&[new.clone(), old.clone()]);
        assert_eq!(rotated.decrypt(&before, "item").as_deref(), Ok("the text"));
        assert!(!rotated.is_encrypted_with_first_key(&before));
        let after = rotated.encrypt("the text", "item", &SystemClock);
        assert!(rotated.is_encrypted_with_first_key(&after));
        let only_new = parse_encryption_keys(&[new]);
        assert_eq!(only_new.decrypt(&after, "item").as_deref(), Ok("the text"));
        let old_id = split_key_id(&before).unwrap().0.to_owned();
        assert_eq!(only_new.decrypt(&before, "item"), Err(DecryptionError::MissingKey(old_id)));
    }
}
