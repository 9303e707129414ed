//! Signatures of requests to a merchant's own gateway. They have the headers and the signature of Standard Webhooks
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>). The signed payload
//! is the method, a space, the path with its query, a line feed, and the body.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use hmac_sha256::HMAC;
use reqwest::header::HeaderMap;

use billing::SigningSecret;

/// The header with the unique id of the request.
pub const GATEWAY_REQUEST_ID_HEADER: &str = "webhook-id";
/// The header with the time of the request, in seconds since 1970.
pub const GATEWAY_REQUEST_TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures, separated by spaces: one for each key. Standard Webhooks defines this name for
/// webhooks. Here, the header signs a request from Dueday to the gateway.
pub const GATEWAY_REQUEST_SIGNATURE_HEADER: &str = "webhook-signature";

/// The largest difference between the signed time of a request and the current time.
pub const MAX_SIGNATURE_TIME_DIFFERENCE: TimeDelta = TimeDelta::minutes(5);
/// The largest number of keys, which is also the largest number of signatures that are verified for one request.
const MAX_KEYS: usize = 2;

/// The keys that sign the requests to a merchant's own gateway, newest first. There are two keys while an old key is
/// replaced by a new one.
#[derive(Clone, PartialEq, Eq)]
pub struct GatewaySigningKeys(Vec<SigningSecret>);

impl fmt::Debug for GatewaySigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewaySigningKeys")
    }
}

/// The error for a text that does not consist of one or two keys. Its message does not contain the text, which may be
/// secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must contain one key, or two keys separated by a space with the newest first; a key is whsec_ followed by 24 to 64 bytes in base64"
)]
pub struct GatewaySigningKeysError;

/// The parts of an HTTP request that its signature covers.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequestParts<'a> {
    pub method: &'a str,
    /// The path and the query, as in the request line.
    pub target: &'a str,
    pub body: &'a [u8],
}

/// The reason why a request is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the headers webhook-id, webhook-timestamp and webhook-signature are missing or not valid")]
    Missing,
    #[error("the request is not signed with one of the keys")]
    NotSigned,
    #[error("the signed time differs from the current time by more than 5 minutes")]
    TimeOutOfRange,
}

impl From<SigningSecret> for GatewaySigningKeys {
    fn from(key: SigningSecret) -> Self {
        Self(vec![key])
    }
}

impl FromStr for GatewaySigningKeys {
    type Err = GatewaySigningKeysError;

    fn from_str(text: &str) -> Result<Self, GatewaySigningKeysError> {
        let keys: Result<Vec<SigningSecret>, _> = text.split_whitespace().map(str::parse).collect();
        let keys = keys.map_err(|_| GatewaySigningKeysError)?;
        if (1..=MAX_KEYS).contains(&keys.len()) { Ok(Self(keys)) } else { Err(GatewaySigningKeysError) }
    }
}

impl SignedRequestParts<'_> {
    /// Returns the bytes that the signature covers: the id, the time, the method, the target and the body of a request
    /// to the gateway.
    fn signed_bytes(&self, id: &str, timestamp: &str) -> Vec<u8> {
        let head = format!("{id}.{timestamp}.{} {}\n", self.method, self.target);
        [head.as_bytes(), self.body].concat()
    }
}

impl GatewaySigningKeys {
    /// Returns the headers that sign `request`, sent at the time `at` with the unique id `id`. The request has one
    /// signature for each key, so a gateway that knows only one of the keys can verify the request.
    pub fn sign(&self, request: &SignedRequestParts<'_>, id: &str, at: DateTime<Utc>) -> [(&'static str, String); 3] {
        let timestamp = at.timestamp().to_string();
        let signed = request.signed_bytes(id, &timestamp);
        let signatures = self.0.iter().map(|key| format!("v1,{}", STANDARD.encode(HMAC::mac(&signed, key.bytes()))));
        let signatures = signatures.collect::<Vec<_>>().join(" ");
        [
            (GATEWAY_REQUEST_ID_HEADER, id.to_owned()),
            (GATEWAY_REQUEST_TIMESTAMP_HEADER, timestamp),
            (GATEWAY_REQUEST_SIGNATURE_HEADER, signatures),
        ]
    }

    /// Checks that the headers of `request` contain a signature with one of the keys, at most five minutes before or
    /// after `now`.
    ///
    /// # Errors
    /// [`SignatureError`] if a header is missing, no signature is valid, or the time is too old or too new.
    pub fn verify(
        &self,
        request: &SignedRequestParts<'_>,
        headers: &HeaderMap,
        now: DateTime<Utc>,
    ) -> Result<(), SignatureError> {
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let (Some(id), Some(timestamp), Some(signatures)) = (
            header(GATEWAY_REQUEST_ID_HEADER),
            header(GATEWAY_REQUEST_TIMESTAMP_HEADER),
            header(GATEWAY_REQUEST_SIGNATURE_HEADER),
        ) else {
            return Err(SignatureError::Missing);
        };
        let seconds: i64 = timestamp.parse().map_err(|_| SignatureError::Missing)?;
        let signed = request.signed_bytes(id, timestamp);
        let decode = |text: &str| <[u8; 32]>::try_from(STANDARD.decode(text.strip_prefix("v1,")?).ok()?).ok();
        let mut signatures = signatures.split(' ').take(MAX_KEYS).filter_map(decode);
        // `HMAC::verify` compares in constant time.
        if !signatures.any(|signature| self.0.iter().any(|key| HMAC::verify(&signed, key.bytes(), &signature))) {
            return Err(SignatureError::NotSigned);
        }
        let signed_at = DateTime::from_timestamp(seconds, 0).ok_or(SignatureError::TimeOutOfRange)?;
        let difference = now.signed_duration_since(signed_at).abs();
        if difference > MAX_SIGNATURE_TIME_DIFFERENCE { Err(SignatureError::TimeOutOfRange) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key that is replaced by [`NEW_KEY`].
    const OLD_KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    /// The key that replaces [`OLD_KEY`].
    const NEW_KEY: &str = "whsec_AaNqVDMAAAEAAAAAAAAACAGjalQzAAABAAAAAAAAAAg=";
    /// The request that the tests sign.
    const EXAMPLE_REQUEST: SignedRequestParts<'_> =
        SignedRequestParts { method: "POST", target: "/v1/refunds?a=b", body: br#"{"refund":"R"}"# };

    fn parse_keys(text: &str) -> GatewaySigningKeys {
        text.parse().unwrap()
    }

    /// Returns the time `seconds` after the time at which [`signed_headers`] signs.
    fn unix_time(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    /// Returns the headers that sign the example request with `keys`.
    fn signed_headers(keys: &GatewaySigningKeys) -> HeaderMap {
        let headers = keys.sign(&EXAMPLE_REQUEST, "01JZXCVBNM0123456789ABCDEF", unix_time(0));
        headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn request_signature_equals_that_of_another_implementation_and_is_valid_for_five_minutes() {
        let headers = signed_headers(&parse_keys(OLD_KEY));
        // This signature was computed by another implementation (hmac in Python).
        assert_eq!(headers[GATEWAY_REQUEST_SIGNATURE_HEADER], "v1,DIwuZm9MDP6vkriyDVFg+dpsbpwCenjq6FakjN9SPMg=");
        for (after, expected) in [(-301, false), (-300, true), (300, true), (301, false)] {
            let expected = if expected { Ok(()) } else { Err(SignatureError::TimeOutOfRange) };
            assert_eq!(
                parse_keys(OLD_KEY).verify(&EXAMPLE_REQUEST, &headers, unix_time(after)),
                expected,
                "after {after} seconds"
            );
        }
    }

    #[test]
    fn signature_covers_the_method_the_path_the_query_the_body_the_time_and_the_id() {
        let headers = signed_headers(&parse_keys(OLD_KEY));
        let verify = |request, headers: &HeaderMap| parse_keys(OLD_KEY).verify(&request, headers, unix_time(0));
        for changed in [
            SignedRequestParts { method: "GET", ..EXAMPLE_REQUEST },
            SignedRequestParts { target: "/v1/refunds", ..EXAMPLE_REQUEST },
            SignedRequestParts { target: "/v1/payments?a=b", ..EXAMPLE_REQUEST },
            SignedRequestParts { body: br#"{"refund":"S"}"#, ..EXAMPLE_REQUEST },
        ] {
            assert_eq!(verify(changed, &headers), Err(SignatureError::NotSigned), "{changed:?}");
        }
        for (name, value) in [
            (GATEWAY_REQUEST_ID_HEADER, "another"),
            (GATEWAY_REQUEST_TIMESTAMP_HEADER, "1800000001"),
            (GATEWAY_REQUEST_SIGNATURE_HEADER, "v1,AAAA"),
        ] {
            let mut changed = headers.clone();
            changed.insert(name, value.parse().unwrap());
            assert_eq!(verify(EXAMPLE_REQUEST, &changed), Err(SignatureError::NotSigned), "{name}");
            changed.remove(name);
            assert_eq!(verify(EXAMPLE_REQUEST, &changed), Err(SignatureError::Missing), "{name}");
        }
        assert_eq!(
            parse_keys(NEW_KEY).verify(&EXAMPLE_REQUEST, &headers, unix_time(0)),
            Err(SignatureError::NotSigned)
        );
    }

    #[test]
    fn old_and_new_gateway_key_are_valid_during_a_replacement() {
        let both = parse_keys(&format!("{NEW_KEY} {OLD_KEY}"));
        for key in [NEW_KEY, OLD_KEY] {
            assert_eq!(parse_keys(key).verify(&EXAMPLE_REQUEST, &signed_headers(&both), unix_time(0)), Ok(()), "{key}");
            assert_eq!(both.verify(&EXAMPLE_REQUEST, &signed_headers(&parse_keys(key)), unix_time(0)), Ok(()), "{key}");
        }
        for wrong in ["", "secret", &format!("{NEW_KEY} {OLD_KEY} {NEW_KEY}"), &format!("{NEW_KEY},{OLD_KEY}")] {
            assert_eq!(wrong.parse::<GatewaySigningKeys>(), Err(GatewaySigningKeysError), "{wrong}");
        }
        assert_eq!(format!("{both:?}"), "GatewaySigningKeys");
    }
}
