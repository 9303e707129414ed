//! The encryption keys of a deployment.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use clock::Clock;

/// The number of bytes of a key.
const KEY_BYTES: usize = 32;
/// The number of bytes at the start of a key's hash that form the id of the key.
const KEY_ID_BYTES: usize = 4;

/// The encryption keys of a deployment. The first key encrypts new texts. All keys decrypt stored texts, so that a new
/// first key can replace an old one.
#[derive(Clone)]
pub struct EncryptionKeys {
    first: Arc<EncryptionKey>,
    others: Arc<[EncryptionKey]>,
}

/// A key with its id.
pub(crate) struct EncryptionKey {
    /// The beginning of the key's hash, in hexadecimal digits. Encrypted texts contain this id.
    pub id: String,
    /// The cipher that uses the key. The caller of the cipher chooses the nonces, so that tests are reproducible.
    pub cipher: LessSafeKey,
}

/// The error for a text that does not contain valid encryption keys. The error message does not contain the text, which
/// may be secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must contain one or more keys of 64 hexadecimal digits, separated by white space")]
pub struct EncryptionKeysError;

/// Returns the text of a new random key: 64 hexadecimal digits.
pub fn generate_key(clock: &dyn Clock) -> String {
    hex::encode(clock.random_secret())
}

impl EncryptionKeys {
    /// Parses keys of 64 hexadecimal digits that are separated by white space.
    ///
    /// # Errors
    /// [`EncryptionKeysError`] if there is no key, or a key has another form.
    pub fn parse(text: &str) -> Result<Self, EncryptionKeysError> {
        let mut keys = text.split_whitespace().map(EncryptionKey::parse);
        let first = keys.next().ok_or(EncryptionKeysError)??;
        let others = keys.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { first: Arc::new(first), others: others.into() })
    }

    /// Returns the key that encrypts new texts.
    pub(crate) fn first_key(&self) -> &EncryptionKey {
        &self.first
    }

    /// Returns the key with the id `id`, to decrypt a stored text.
    pub(crate) fn find_key(&self, id: &str) -> Option<&EncryptionKey> {
        std::iter::once(self.first_key()).chain(self.others.iter()).find(|key| key.id == id)
    }
}

impl EncryptionKey {
    /// Parses a key of 64 hexadecimal digits.
    fn parse(text: &str) -> Result<Self, EncryptionKeysError> {
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| EncryptionKeysError)?;
        let hash = digest(&SHA256, &bytes);
        let cipher = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| EncryptionKeysError)?;
        Ok(Self { id: hex::encode(&hash.as_ref()[..KEY_ID_BYTES]), cipher: LessSafeKey::new(cipher) })
    }
}

/// Shows only the ids of the keys, so that a log cannot contain the keys.
impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = std::iter::once(self.first_key()).chain(self.others.iter()).map(|key| &key.id);
        f.debug_list().entries(ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::SystemClock;

    #[test]
    fn parse_accepts_one_or_more_encryption_keys_and_rejects_other_texts() {
        let (key, other) = (generate_key(&SystemClock), generate_key(&SystemClock));
        for text in [key.clone(), format!(" {key}\n"), format!("{key}\n{other}"), key.to_uppercase()] {
            assert!(EncryptionKeys::parse(&text).is_ok());
        }
        for text in ["", " ", "abc", &key[1..], &format!("{key}{other}"), &format!("{key} x"), &"g".repeat(64)] {
            assert_eq!(EncryptionKeys::parse(text).unwrap_err(), EncryptionKeysError, "{text}");
        }
        let shown = format!("{:?}", EncryptionKeys::parse(&key).unwrap());
        assert!(shown.len() < 20 && !shown.contains(&key), "{shown}");
    }
}
