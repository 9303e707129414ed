//! The token issuer of a local installation. It verifies tokens with the same checks as API Gateway's JWT authorizer
//! ("Control access to HTTP APIs with JWT authorizers" in the developer guide of API Gateway).

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde_json::{Map, Value, json};

use crate::es256;
use crate::gateway_claims::gateway_claims;

/// The claim `iss` of the tokens of this issuer.
pub const LOCAL_ISSUER: &str = "urn:dueday:local";
/// The audience of all tokens that this issuer creates or accepts.
pub const LOCAL_AUDIENCE: &str = "dueday";

/// The first line of a private key in PEM.
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
/// The last line of a private key in PEM.
const PEM_END: &str = "-----END PRIVATE KEY-----";
/// The number of base64 characters on each line of a private key in PEM.
const PEM_LINE_CHARS: usize = 64;

/// The reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token is not a JSON Web Token")]
    Malformed,
    #[error("the token was not signed with the key of the issuer")]
    Signature,
    #[error("the issuer of the token is not {LOCAL_ISSUER}")]
    Issuer,
    #[error("the audience of the token is not {LOCAL_AUDIENCE}")]
    Audience,
    #[error("the token has expired, or has no expiry")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
}

/// The error for a text that is not a private key for ES256 in PEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a private key for ES256 in PEM (PKCS #8)")]
pub struct InvalidKey;

/// A token issuer with one key for ES256.
pub struct TokenIssuer {
    private_key: EncodingKey,
    public_key: DecodingKey,
    /// The public key as an uncompressed point: the byte 4, the coordinate x and the coordinate y.
    point: Vec<u8>,
    key_id: String,
}

impl std::fmt::Debug for TokenIssuer {
    /// Shows only the id of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenIssuer").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl TokenIssuer {
    /// Returns a new private key in PEM.
    ///
    /// # Panics
    /// If the system has no source of random numbers.
    pub fn generate_key() -> String {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let encoded = STANDARD.encode(key.expect("a source of random numbers"));
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(PEM_LINE_CHARS)
            .map(|line| std::str::from_utf8(line).expect("base64 is ASCII"))
            .collect();
        format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", lines.join("\n"))
    }

    /// Creates an issuer with the private key `pem`.
    ///
    /// # Errors
    /// [`InvalidKey`] if the text is not a private key for ES256. The error does not contain the text.
    pub fn new(pem: &str) -> Result<Self, InvalidKey> {
        let encoded = pem.trim().strip_prefix(PEM_BEGIN).and_then(|rest| rest.strip_suffix(PEM_END));
        let encoded: String = encoded.ok_or(InvalidKey)?.split_whitespace().collect();
        let der = STANDARD.decode(encoded).map_err(|_| InvalidKey)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map_err(|_| InvalidKey)?;
        let point = pair.public_key().as_ref().to_vec();
        es256::install_es256_signatures();
        Ok(Self {
            private_key: EncodingKey::from_ec_der(&der),
            public_key: DecodingKey::from_ec_der(&point),
            key_id: URL_SAFE_NO_PAD.encode(digest(&SHA256, &point)),
            point,
        })
    }

    /// Signs `claims` without a change: the caller must include the issuer, the audience and the expiry.
    ///
    /// # Panics
    /// Never: the key was checked when the issuer was created.
    pub fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.key_id.clone()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.private_key).expect("a checked key can sign")
    }

    /// Returns the public key as a JSON Web Key Set (RFC 7517).
    pub fn key_set(&self) -> Value {
        let (x, y) = self.point[1..].split_at(32);
        json!({"keys": [{
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.key_id,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]})
    }

    /// Verifies `token` at the time `now`, and returns its claims in the form in which API Gateway passes them to a
    /// function.
    ///
    /// # Errors
    /// [`TokenError`] with the first check that the token does not pass.
    pub fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<HashMap<String, String>, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
        if header.kid.as_deref() != Some(&self.key_id) {
            return Err(TokenError::Signature);
        }
        // `check_claims` checks the times, with `now` instead of the system clock, and the audience, which may also be
        // in the claim `client_id`.
        let mut validation = Validation::new(Algorithm::ES256);
        (validation.validate_exp, validation.validate_aud) = (false, false);
        validation.required_spec_claims.clear();
        let verified = decode::<Map<String, Value>>(token, &self.public_key, &validation);
        let claims = verified.map_err(|_| TokenError::Signature)?.claims;
        check_claims(&claims, now)?;
        Ok(gateway_claims(&claims))
    }
}

/// Checks the issuer, the audience and the times in the claims of a token at the time `now`.
fn check_claims(claims: &Map<String, Value>, now: DateTime<Utc>) -> Result<(), TokenError> {
    if claims.get("iss").and_then(Value::as_str) != Some(LOCAL_ISSUER) {
        return Err(TokenError::Issuer);
    }
    let audience = claims.get("aud").or_else(|| claims.get("client_id"));
    let is_ours = |audience: &Value| audience == LOCAL_AUDIENCE;
    let is_accepted = match audience {
        Some(Value::Array(audiences)) => audiences.iter().any(is_ours),
        Some(audience) => is_ours(audience),
        None => false,
    };
    if !is_accepted {
        return Err(TokenError::Audience);
    }
    let now = now.timestamp();
    if claims.get("exp").and_then(Value::as_i64).is_none_or(|expiry| expiry <= now) {
        return Err(TokenError::Expired);
    }
    let is_absent_or_past =
        |claim: &str| claims.get(claim).is_none_or(|value| value.as_i64().is_some_and(|at| at <= now));
    if is_absent_or_past("nbf") && is_absent_or_past("iat") { Ok(()) } else { Err(TokenError::NotYetValid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time at which the tests verify tokens.
    fn verification_time() -> DateTime<Utc> {
        "2027-01-31T06:00:00Z".parse().unwrap()
    }

    /// Returns an issuer with a new key.
    fn new_token_issuer() -> TokenIssuer {
        TokenIssuer::new(&TokenIssuer::generate_key()).unwrap()
    }

    /// Returns the claims of a valid token for the account `acme`.
    fn valid_claims() -> Value {
        json!({
            "iss": LOCAL_ISSUER, "aud": LOCAL_AUDIENCE, "sub": "acme", "iat": verification_time().timestamp(),
            "exp": verification_time().timestamp() + 60, "scope": "dueday/account"
        })
    }

    /// Returns [`valid_claims`] with `changes`. A claim whose new value is null is removed.
    fn changed_claims(changes: Value) -> Value {
        let mut claims = valid_claims();
        for (name, value) in changes.as_object().unwrap() {
            claims[name.as_str()] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        claims
    }

    #[test]
    fn token_is_accepted_with_the_checks_of_api_gateway() {
        let issuer = new_token_issuer();
        let verify = |changes: Value| issuer.verify(&issuer.sign(&changed_claims(changes)), verification_time());
        assert_eq!(verify(json!({})).unwrap()["sub"], "acme");
        let at = verification_time().timestamp();
        for (changes, expected) in [
            (json!({"aud": ["other", "dueday"]}), Ok(())),
            (json!({"aud": null, "client_id": "dueday"}), Ok(())),
            (json!({"aud": "other", "client_id": "dueday"}), Err(TokenError::Audience)),
            (json!({"aud": null}), Err(TokenError::Audience)),
            (json!({"aud": []}), Err(TokenError::Audience)),
            (json!({"iss": "urn:dueday:other"}), Err(TokenError::Issuer)),
            (json!({"iss": null}), Err(TokenError::Issuer)),
            (json!({"exp": at}), Err(TokenError::Expired)),
            (json!({"exp": null}), Err(TokenError::Expired)),
            (json!({"exp": "never"}), Err(TokenError::Expired)),
            (json!({"nbf": at + 1}), Err(TokenError::NotYetValid)),
            (json!({"nbf": "soon"}), Err(TokenError::NotYetValid)),
            (json!({"iat": at + 1}), Err(TokenError::NotYetValid)),
            (json!({"nbf": at, "iat": null}), Ok(())),
        ] {
            assert_eq!(verify(changes.clone()).map(drop), expected, "{changes}");
        }
    }

    #[test]
    fn token_of_another_key_or_algorithm_and_a_changed_token_are_refused() {
        let (issuer, other) = (new_token_issuer(), new_token_issuer());
        assert_eq!(issuer.verify(&other.sign(&valid_claims()), verification_time()), Err(TokenError::Signature));
        let header = Header { kid: Some(issuer.key_id.clone()), ..Header::new(Algorithm::ES256) };
        let forged = encode(&header, &valid_claims(), &other.private_key).unwrap();
        assert_eq!(
            issuer.verify(&forged, verification_time()),
            Err(TokenError::Signature),
            "the right key id with another key"
        );

        let token = issuer.sign(&valid_claims());
        let [head, body, signature]: [&str; 3] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
        let encoded = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let operator = encoded(changed_claims(json!({"scope": "dueday/admin"})));
        let without_signature = encoded(json!({"alg": "none", "kid": issuer.key_id}));
        let symmetric = encoded(json!({"alg": "HS256", "kid": issuer.key_id}));
        for (changed, expected) in [
            (format!("{head}.{operator}.{signature}"), TokenError::Signature),
            (format!("{head}.{body}."), TokenError::Signature),
            (format!("{without_signature}.{body}."), TokenError::Malformed),
            (format!("{symmetric}.{body}.{signature}"), TokenError::Signature),
            (format!("{head}.{body}"), TokenError::Malformed),
            (String::new(), TokenError::Malformed),
            ("TOKEN".to_owned(), TokenError::Malformed),
        ] {
            assert_eq!(issuer.verify(&changed, verification_time()), Err(expected), "{changed}");
        }
    }

    #[test]
    fn key_set_contains_the_public_key_and_not_the_private_key() {
        let pem = TokenIssuer::generate_key();
        let issuer = TokenIssuer::new(&pem).unwrap();
        let key = &issuer.key_set()["keys"][0];
        let text = |name: &str| key[name].as_str().unwrap().to_owned();
        let public = DecodingKey::from_ec_components(&text("x"), &text("y")).unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        (validation.validate_exp, validation.validate_aud) = (false, false);
        let token = issuer.sign(&valid_claims());
        let verified = decode::<Value>(&token, &public, &validation).unwrap();
        assert_eq!((verified.header.kid, verified.claims), (Some(text("kid")), valid_claims()));
        assert!(key["d"].is_null() && !format!("{issuer:?}").contains(pem.lines().nth(1).unwrap()));
    }

    #[test]
    fn key_that_is_not_for_es256_is_refused() {
        let pem = TokenIssuer::generate_key();
        for wrong in ["", "key", &pem.replace("PRIVATE", "PUBLIC"), &pem[..pem.len() / 2], &pem.replacen("M", "N", 1)] {
            assert_eq!(TokenIssuer::new(wrong).map(drop).unwrap_err(), InvalidKey, "{wrong}");
        }
    }
}
