//! Secrets that sign what is delivered, by the Standard Webhooks specification
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What every secret begins with, so that it is known where it must not be.
const PREFIX: &str = "whsec_";
/// The bytes of a secret that is made here; the specification allows 24 to 64.
const BYTES: usize = 32;
/// The fewest and the most bytes that a secret may have.
const ALLOWED: std::ops::RangeInclusive<usize> = 24..=64;

/// A key that an endpoint shares with us.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// What was given is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be whsec_ and 24 to 64 bytes in base64")]
pub struct SecretError;

impl Secret {
    /// The secret made of `random` bytes.
    pub fn new(random: [u8; BYTES]) -> Self {
        Self(random.to_vec())
    }

    /// As it is shown to whoever is to verify with it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Its bytes, for who signs with it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        if ALLOWED.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(SecretError) }
    }
}

/// Never shown by accident.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_read_back_and_never_shown_by_accident() {
        let secret = Secret::new([7; 32]);
        assert_eq!(secret.reveal().parse(), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "Secret");
        for wrong in
            ["", "whsec_", "whsec_MfKQ9r8G", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64 at all not base64"]
        {
            assert_eq!(wrong.parse::<Secret>(), Err(SecretError), "{wrong}");
        }
    }
}
