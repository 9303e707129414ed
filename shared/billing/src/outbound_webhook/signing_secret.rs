//! Secrets that sign outbound webhooks, as the Standard Webhooks specification defines them
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The prefix of the text of every signing secret. The prefix makes a leaked secret easy to recognize.
const SECRET_PREFIX: &str = "whsec_";
/// The number of random bytes of a new signing secret.
const SECRET_BYTES: usize = 32;
/// The numbers of bytes that the specification allows for a signing secret.
const ALLOWED_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The signing secret that Dueday shares with a webhook endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Vec<u8>);

/// The error for a text that is not a valid signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be whsec_ followed by 24 to 64 bytes in base64")]
pub struct SecretError;

impl SigningSecret {
    /// Creates a signing secret from `random` bytes.
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(random.to_vec())
    }

    /// Returns the text of the secret, for the merchant who verifies signatures with it.
    pub fn reveal(&self) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Returns the bytes of the secret, for signing.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for SigningSecret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(SecretError)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        if ALLOWED_BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(SecretError) }
    }
}

/// The signing secret of a webhook endpoint in the form in which the table stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredSecret {
    /// The encrypted text of the secret.
    Encrypted(String),
    /// The secret itself, which an earlier version of Dueday has stored.
    Plain(SigningSecret),
}

impl StoredSecret {
    /// Returns the text that the table stores.
    pub fn to_text(&self) -> String {
        match self {
            Self::Encrypted(text) => text.clone(),
            Self::Plain(secret) => secret.reveal(),
        }
    }
}

impl FromStr for StoredSecret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        if text.starts_with(SECRET_PREFIX) {
            return text.parse().map(Self::Plain);
        }
        Ok(Self::Encrypted(text.to_owned()))
    }
}

/// Hides the secret, so that the secret never appears in a log.
impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revealed_secret_can_be_parsed_and_debug_output_hides_it() {
        let secret = SigningSecret::new([7; 32]);
        assert_eq!(secret.reveal().parse(), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "Secret");
        for wrong in
            ["", "whsec_", "whsec_MfKQ9r8G", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64 at all not base64"]
        {
            assert_eq!(wrong.parse::<SigningSecret>(), Err(SecretError), "{wrong}");
        }
    }

    #[test]
    fn stored_text_is_a_plain_secret_only_with_the_prefix_of_secrets() {
        let secret = SigningSecret::new([7; 32]);
        for stored in [StoredSecret::Plain(secret), StoredSecret::Encrypted("v1.0123abcd.AAAA".to_owned())] {
            assert_eq!(stored.to_text().parse(), Ok(stored));
        }
        assert_eq!("whsec_MfKQ9r8G".parse::<StoredSecret>(), Err(SecretError), "a damaged plain secret");
    }
}
