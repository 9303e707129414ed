//! Inbound webhooks from Stripe ("Receive Stripe events in your webhook endpoint" in Stripe's documentation). Stripe
//! signs each event, sends it at least once and in any order, and includes a copy of the object as it was when the
//! event occurred. Therefore only the id of the object is read from an event, and the object itself is read from Stripe
//! again.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use hmac_sha256::HMAC;
use serde::Deserialize;

use super::wire_format::null_as_default;
use billing::GatewayToken;

/// The largest difference between the signed time of an event and the current time. This limit prevents an attacker who
/// intercepts an event from sending it again later.
const MAX_SIGNATURE_TIME_DIFFERENCE: TimeDelta = TimeDelta::seconds(300);

/// The largest number of signatures of one request that are verified. An endpoint never has more secrets than this at
/// the same time. Without this limit, a request with many signatures would be expensive, since each verification hashes
/// the body.
const MAX_SIGNATURES: usize = 4;

/// The types of the events that our webhook endpoint at Stripe must receive.
pub const NEEDED_EVENTS: [&str; 10] = [
    "checkout.session.completed",
    "charge.refunded",
    "refund.updated",
    "refund.failed",
    "charge.refund.updated",
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.dispute.closed",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
];

/// The types of the events that our webhook endpoint must also receive if the merchant accepts bank debits.
pub const DEBIT_EVENTS: [&str; 3] =
    ["payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled"];

/// The signing secrets of a webhook endpoint. An endpoint has several secrets while an old secret is replaced by a new
/// one.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecrets(Vec<String>);

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecrets")
    }
}

/// The error for a text that is not a list of signing secrets. Its message does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be the signing secret of a webhook endpoint at Stripe, such as whsec_…, or several secrets separated by spaces"
)]
pub struct StripeSigningSecretError;

/// The reason why a request is not accepted as an event from Stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InboundWebhookError {
    #[error("the header Stripe-Signature is missing or not valid")]
    NoSignature,
    #[error("the request is not signed with one of the configured secrets")]
    NotSigned,
    #[error("the signed time differs from the current time by more than 300 seconds")]
    TimeOutOfRange,
    #[error("the body is not a Stripe event")]
    NotAnEvent,
    /// The body is a signed event with a thin payload, which does not contain the object of the event.
    #[error(
        "Stripe has signed the event, but its payload is thin; in Stripe's Dashboard, create an event destination with \
            snapshot payloads in place of this one"
    )]
    ThinPayload,
}

/// An event from Stripe, with only the fields that this software uses: the id and the type of the event, and the id of
/// its object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeEvent {
    /// The id of the event. It is the same when Stripe sends the event again.
    pub id: String,
    /// The event type, such as `charge.dispute.created`.
    pub kind: String,
    /// The Stripe object that the event describes; `None` if Dueday does not use objects of this type.
    pub subject: Option<EventSubject>,
}

/// The object that an event describes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventSubject {
    Payment(GatewayToken),
    /// A Checkout Session.
    CheckoutPage(GatewayToken),
    Refund(GatewayToken),
    /// A charge of this payment. In Stripe's API the refunds of a payment belong to its charge.
    ChargeOfPayment(GatewayToken),
    Dispute(GatewayToken),
}

impl SigningSecrets {
    /// Reads one or several secrets, separated by spaces.
    ///
    /// # Errors
    /// [`StripeSigningSecretError`] if `text` contains no secret, or a word that is not a signing secret.
    pub fn parse(text: &str) -> Result<Self, StripeSigningSecretError> {
        let secrets: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let is_valid = |secret: &String| secret.strip_prefix("whsec_").is_some_and(|rest| rest.len() >= 16);
        if secrets.is_empty() || !secrets.iter().all(is_valid) {
            Err(StripeSigningSecretError)
        } else {
            Ok(Self(secrets))
        }
    }

    /// Verifies the signature of the request `body` and returns its event. `signature` is the value of the header
    /// `Stripe-Signature`. The signature must be made with one of the secrets, at most 300 seconds before or after
    /// `now`.
    ///
    /// # Errors
    /// [`InboundWebhookError`] if the header or the signature is not valid, the time is too old or too new, or the body
    /// is not an event.
    pub fn verify(&self, signature: &str, body: &[u8], now: DateTime<Utc>) -> Result<StripeEvent, InboundWebhookError> {
        let (mut timestamp, mut signatures) = (None, Vec::new());
        for (name, value) in signature.split(',').filter_map(|part| part.trim().split_once('=')) {
            match name {
                "t" => timestamp = Some(value),
                "v1" => signatures.extend(hex::decode(value).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())),
                // Ignore signatures with other schemes, as Stripe's documentation requires.
                _ => {}
            }
        }
        signatures.truncate(MAX_SIGNATURES);
        let timestamp = timestamp.filter(|_| !signatures.is_empty()).ok_or(InboundWebhookError::NoSignature)?;
        let signed = [timestamp.as_bytes(), b".", body].concat();
        // `HMAC::verify` compares in constant time.
        let has_signed = |secret: &String| signatures.iter().any(|signature| HMAC::verify(&signed, secret, signature));
        if !self.0.iter().any(has_signed) {
            return Err(InboundWebhookError::NotSigned);
        }
        let signed_at = timestamp.parse().ok().and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
        let difference = signed_at.map(|at| now.signed_duration_since(at).abs());
        if difference.is_none_or(|difference| difference > MAX_SIGNATURE_TIME_DIFFERENCE) {
            return Err(InboundWebhookError::TimeOutOfRange);
        }
        StripeEvent::read(body).ok_or_else(|| invalid_event(body))
    }

    /// Returns the header `Stripe-Signature` that Stripe would send with `body` at the time `at`.
    pub fn sign(&self, body: &[u8], at: DateTime<Utc>) -> String {
        let timestamp = at.timestamp().to_string();
        let signed = [timestamp.as_bytes(), b".", body].concat();
        let signatures = self.0.iter().map(|secret| format!("v1={}", hex::encode(HMAC::mac(&signed, secret))));
        format!("t={timestamp},{}", signatures.collect::<Vec<_>>().join(","))
    }
}

/// Returns the error for a signed `body` that is not an event with its object.
fn invalid_event(body: &[u8]) -> InboundWebhookError {
    #[derive(Deserialize)]
    struct ThinEvent {
        object: String,
    }
    match serde_json::from_slice(body) {
        Ok(ThinEvent { object }) if object == THIN_EVENT => InboundWebhookError::ThinPayload,
        _ => InboundWebhookError::NotAnEvent,
    }
}

/// The value of the field `object` in an event with a thin payload ("Event destinations" in Stripe's documentation).
const THIN_EVENT: &str = "v2.core.event";

/// An event in Stripe's wire format.
#[derive(Deserialize)]
struct StripeEventEnvelope {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    object: String,
    data: StripeEventData,
}

/// The field `data` of an event, which contains the object that the event describes.
#[derive(Deserialize)]
struct StripeEventData {
    object: StripeEventObject,
}

/// The object that an event describes.
#[derive(Deserialize)]
struct StripeEventObject {
    /// The type of the object, such as `charge`.
    #[serde(default, deserialize_with = "null_as_default")]
    object: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    payment_intent: Option<String>,
}

impl StripeEvent {
    /// Reads an event from the body of a request; `None` if the body is not an event.
    fn read(body: &[u8]) -> Option<Self> {
        let StripeEventEnvelope { id, kind, object, data } = serde_json::from_slice(body).ok()?;
        if object != "event" || id.is_empty() || id.len() > 255 {
            return None;
        }
        let to_subject: Option<fn(GatewayToken) -> EventSubject> = match data.object.object.as_str() {
            "payment_intent" => Some(EventSubject::Payment),
            "checkout.session" => Some(EventSubject::CheckoutPage),
            "refund" => Some(EventSubject::Refund),
            "charge" => Some(EventSubject::ChargeOfPayment),
            "dispute" => Some(EventSubject::Dispute),
            _ => None,
        };
        let object_id = if data.object.object == "charge" { data.object.payment_intent } else { data.object.id };
        let subject = to_subject.zip(object_id).and_then(|(to_subject, id)| Some(to_subject(id.parse().ok()?)));
        Some(Self { id, kind, subject })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of an event about the PaymentIntent `pi_1`.
    const BODY: &[u8] = br#"{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","object":"payment_intent"}}}"#;

    fn parse_secrets(text: &str) -> SigningSecrets {
        SigningSecrets::parse(text).unwrap()
    }

    /// Returns the time `seconds` after the time at which the tests sign.
    fn unix_time(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn verify_accepts_signature_of_known_secret_within_300_seconds() {
        let configured = parse_secrets("whsec_0123456789abcdef");
        let header = configured.sign(BODY, unix_time(0));
        let event = configured.verify(&header, BODY, unix_time(0)).unwrap();
        assert_eq!((event.id.as_str(), event.subject), ("evt_1", Some(EventSubject::Payment("pi_1".parse().unwrap()))));
        for (after, expected) in [(-301, false), (-300, true), (300, true), (301, false)] {
            let verified = configured.verify(&header, BODY, unix_time(after));
            assert_eq!(verified.is_ok(), expected, "{after} seconds after the signed time");
            assert!(expected || verified == Err(InboundWebhookError::TimeOutOfRange));
        }
        // This signature was computed by another implementation (OpenSSL), from "1800000000." and the body.
        let by_openssl = "t=1800000000,v1=801f8df713dcea8a7071b6660efc02eeb928716ac8000908c29ea811720bc060";
        assert!(configured.verify(by_openssl, BODY, unix_time(0)).is_ok(), "{header}");
    }

    #[test]
    fn verify_rejects_changed_body_and_signature_of_unknown_secret() {
        let configured = parse_secrets("whsec_0123456789abcdef");
        let header = configured.sign(BODY, unix_time(0));
        let mut changed = BODY.to_vec();
        changed[10] ^= 1;
        assert_eq!(configured.verify(&header, &changed, unix_time(0)), Err(InboundWebhookError::NotSigned));
        let unknown = parse_secrets("whsec_fedcba9876543210").sign(BODY, unix_time(0));
        assert_eq!(configured.verify(&unknown, BODY, unix_time(0)), Err(InboundWebhookError::NotSigned));
        let later = header.replace("t=1800000000", "t=1800000100");
        assert_eq!(
            configured.verify(&later, BODY, unix_time(0)),
            Err(InboundWebhookError::NotSigned),
            "the signature covers the time"
        );
        for header in ["", "t=1800000000", "v1=00", "t=1800000000,v1=zz", "t=1800000000,v0=00"] {
            assert_eq!(
                configured.verify(header, BODY, unix_time(0)),
                Err(InboundWebhookError::NoSignature),
                "{header}"
            );
        }
        assert_eq!(
            configured.verify(&configured.sign(b"{}", unix_time(0)), b"{}", unix_time(0)),
            Err(InboundWebhookError::NotAnEvent)
        );
        let thin = br#"{"id":"evt_1","object":"v2.core.event","type":"v1.payment_intent.succeeded","related_object":{"id":"pi_1"}}"#;
        let verified = configured.verify(&configured.sign(thin, unix_time(0)), thin, unix_time(0));
        assert_eq!(verified, Err(InboundWebhookError::ThinPayload));
        let unsigned = configured.verify(&unknown, thin, unix_time(0));
        assert_eq!(unsigned, Err(InboundWebhookError::NotSigned), "only a signed event gets this advice");
    }

    #[test]
    fn verify_accepts_old_and_new_secret_during_replacement() {
        let (old, new) = ("whsec_0123456789abcdef", "whsec_fedcba9876543210");
        let both = parse_secrets(&format!("{old} {new}"));
        for secret in [old, new] {
            assert!(
                both.verify(&parse_secrets(secret).sign(BODY, unix_time(0)), BODY, unix_time(0)).is_ok(),
                "{secret}"
            );
            assert!(
                parse_secrets(secret).verify(&both.sign(BODY, unix_time(0)), BODY, unix_time(0)).is_ok(),
                "{secret}"
            );
        }
        assert_eq!(SigningSecrets::parse("sk_live_0123456789abcdef").unwrap_err(), StripeSigningSecretError);
        assert_eq!(SigningSecrets::parse(" ").unwrap_err(), StripeSigningSecretError);
    }
}
