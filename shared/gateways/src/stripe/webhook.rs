//! What Stripe tells by itself ("Receive Stripe events in your webhook endpoint" in Stripe's documentation): signed, at least once, in
//! no order, and as things stood then. So only what it is about is taken from it, and that is read again.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use hmac_sha256::HMAC;
use serde::Deserialize;

use billing::GatewayToken;

/// How far its time may be from ours: what was overheard cannot be sent again later.
const TOLERANCE: TimeDelta = TimeDelta::seconds(300);

const MAX_SIGNATURES: usize = 4;

/// The signing secrets of an endpoint: several while one takes the place of another.
#[derive(Clone)]
pub struct SigningSecrets(Vec<String>);

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecrets")
    }
}

/// Text that holds no signing secret. It is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the signing secret of a webhook endpoint at Stripe, such as whsec_…, or several with blanks between")]
pub struct SecretError;

/// Why a message is not taken for Stripe's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error("there is no readable Stripe-Signature")]
    NoSignature,
    #[error("it is not signed with a secret that is known here")]
    NotSigned,
    #[error("its time is more than 300 seconds from ours")]
    OtherTime,
    #[error("it is no event of Stripe's")]
    NoEvent,
}

/// An event, as far as it is believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeEvent {
    /// Equal whenever it is sent again.
    pub id: String,
    /// Such as `charge.dispute.created`.
    pub kind: String,
    pub about: Option<About>,
}

/// What an event is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum About {
    Payment(GatewayToken),
    /// A Checkout Session.
    Page(GatewayToken),
    Refund(GatewayToken),
    /// A charge of this payment, which is what holds its refunds.
    ChargeOf(GatewayToken),
    Dispute(GatewayToken),
}

impl SigningSecrets {
    /// Reads secrets with blanks between them.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let secrets: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let is_one = |secret: &String| secret.strip_prefix("whsec_").is_some_and(|rest| rest.len() >= 16);
        if secrets.is_empty() || !secrets.iter().all(is_one) { Err(SecretError) } else { Ok(Self(secrets)) }
    }

    /// The event that `body` is, if `signature`, its header `Stripe-Signature`, is of one of the secrets and of about `now`.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub fn verify(&self, signature: &str, body: &[u8], now: DateTime<Utc>) -> Result<StripeEvent, WebhookError> {
        let (mut timestamp, mut signatures) = (None, Vec::new());
        for (name, value) in signature.split(',').filter_map(|part| part.trim().split_once('=')) {
            match name {
                "t" => timestamp = Some(value),
                "v1" => signatures.extend(hex::decode(value).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())),
                // Others are of schemes that are not to be relied on.
                _ => {}
            }
        }
        // Nobody rolls more secrets at once; each costs a hash of the whole body.
        signatures.truncate(MAX_SIGNATURES);
        let timestamp = timestamp.filter(|_| !signatures.is_empty()).ok_or(WebhookError::NoSignature)?;
        let signed = [timestamp.as_bytes(), b".", body].concat();
        // Each is compared in a time that says nothing of it.
        let is_of = |secret: &String| signatures.iter().any(|signature| HMAC::verify(&signed, secret, signature));
        if !self.0.iter().any(is_of) {
            return Err(WebhookError::NotSigned);
        }
        let at = timestamp.parse().ok().and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
        let distance = at.map(|at| now.signed_duration_since(at).abs());
        if distance.is_none_or(|distance| distance > TOLERANCE) {
            return Err(WebhookError::OtherTime);
        }
        StripeEvent::read(body).ok_or(WebhookError::NoEvent)
    }

    /// The header with which Stripe signs `body` at `at`.
    pub fn sign(&self, body: &[u8], at: DateTime<Utc>) -> String {
        let timestamp = at.timestamp().to_string();
        let signed = [timestamp.as_bytes(), b".", body].concat();
        let signatures = self.0.iter().map(|secret| format!("v1={}", hex::encode(HMAC::mac(&signed, secret))));
        format!("t={timestamp},{}", signatures.collect::<Vec<_>>().join(","))
    }
}

#[derive(Deserialize)]
struct Envelope {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    object: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    object: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    payment_intent: Option<String>,
}

impl StripeEvent {
    fn read(body: &[u8]) -> Option<Self> {
        let Envelope { id, kind, object, data } = serde_json::from_slice(body).ok()?;
        if object != "event" || id.is_empty() || id.len() > 255 {
            return None;
        }
        let about: Option<fn(GatewayToken) -> About> = match data.object.object.as_str() {
            "payment_intent" => Some(About::Payment),
            "checkout.session" => Some(About::Page),
            "refund" => Some(About::Refund),
            "charge" => Some(About::ChargeOf),
            "dispute" => Some(About::Dispute),
            _ => None,
        };
        let named = if data.object.object == "charge" { data.object.payment_intent } else { data.object.id };
        // What other objects are called is no token.
        let about = about.zip(named).and_then(|(about, name)| Some(about(name.parse().ok()?)));
        Some(Self { id, kind, about })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","object":"payment_intent"}}}"#;

    fn secrets(text: &str) -> SigningSecrets {
        SigningSecrets::parse(text).unwrap()
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn verify_takes_what_was_signed_by_a_known_secret_in_the_last_300_seconds() {
        let known = secrets("whsec_0123456789abcdef");
        let header = known.sign(BODY, at(0));
        let event = known.verify(&header, BODY, at(0)).unwrap();
        assert_eq!((event.id.as_str(), event.about), ("evt_1", Some(About::Payment("pi_1".parse().unwrap()))));
        for (after, expected) in [(-301, false), (-300, true), (300, true), (301, false)] {
            let verified = known.verify(&header, BODY, at(after));
            assert_eq!(verified.is_ok(), expected, "{after} seconds after");
            assert!(expected || verified == Err(WebhookError::OtherTime));
        }
        // Computed by another implementation (OpenSSL) over "1800000000." and the body.
        let other = "t=1800000000,v1=801f8df713dcea8a7071b6660efc02eeb928716ac8000908c29ea811720bc060";
        assert!(known.verify(other, BODY, at(0)).is_ok(), "{header}");
    }

    #[test]
    fn verify_refuses_what_was_changed_or_signed_by_somebody_else() {
        let known = secrets("whsec_0123456789abcdef");
        let header = known.sign(BODY, at(0));
        let mut changed = BODY.to_vec();
        changed[10] ^= 1;
        assert_eq!(known.verify(&header, &changed, at(0)), Err(WebhookError::NotSigned));
        let stranger = secrets("whsec_fedcba9876543210").sign(BODY, at(0));
        assert_eq!(known.verify(&stranger, BODY, at(0)), Err(WebhookError::NotSigned));
        let later = header.replace("t=1800000000", "t=1800000100");
        assert_eq!(known.verify(&later, BODY, at(0)), Err(WebhookError::NotSigned), "the time is signed, too");
        for header in ["", "t=1800000000", "v1=00", "t=1800000000,v1=zz", "t=1800000000,v0=00"] {
            assert_eq!(known.verify(header, BODY, at(0)), Err(WebhookError::NoSignature), "{header}");
        }
        assert_eq!(known.verify(&known.sign(b"{}", at(0)), b"{}", at(0)), Err(WebhookError::NoEvent));
    }

    #[test]
    fn verify_takes_old_and_new_secret_while_one_takes_the_place_of_the_other() {
        let (old, new) = ("whsec_0123456789abcdef", "whsec_fedcba9876543210");
        let both = secrets(&format!("{old} {new}"));
        for one in [old, new] {
            assert!(both.verify(&secrets(one).sign(BODY, at(0)), BODY, at(0)).is_ok(), "{one}");
            assert!(secrets(one).verify(&both.sign(BODY, at(0)), BODY, at(0)).is_ok(), "{one}");
        }
        assert_eq!(SigningSecrets::parse("sk_live_0123456789abcdef").unwrap_err(), SecretError);
        assert_eq!(SigningSecrets::parse(" ").unwrap_err(), SecretError);
    }
}
