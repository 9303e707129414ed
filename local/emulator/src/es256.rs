//! The signatures of tokens: ES256 (ECDSA with P-256 and SHA-256, RFC 7518), computed by `aws-lc-rs`.
//!
//! `jsonwebtoken` also contains code for ES256, behind its feature `aws_lc_rs`. This crate does not use that feature:
//! the feature would change the features of `aws-lc-rs`, and Cargo would compile `aws-lc-rs` and the AWS SDK again.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey};
use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};

/// Signs and verifies with ES256 only: every other algorithm, and a key of another family, is an error.
static ES256: CryptoProvider =
    CryptoProvider { signer_factory, verifier_factory, jwk_utils: JwkUtils::new_unimplemented() };

/// Makes `jsonwebtoken` use this module for all signatures in this process. Repeated calls change nothing.
pub fn install_es256_signatures() {
    // An error means that the provider is already installed.
    let _ = ES256.install_default();
}

/// Creates the signer for an ES256 key in the format PKCS #8.
fn signer_factory(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    check_algorithm(algorithm, key.family())?;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.inner());
    Ok(Box::new(Es256Signer(pair.map_err(|_| ErrorKind::InvalidEcdsaKey)?)))
}

/// Creates the verifier for the public key of an ES256 key pair.
fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    check_algorithm(algorithm, key.family())?;
    Ok(Box::new(Es256Verifier(key.as_bytes().to_vec())))
}

/// Returns an error if the algorithm is not ES256, or the key is not a key for elliptic curves.
fn check_algorithm(algorithm: &Algorithm, family: AlgorithmFamily) -> Result<()> {
    let is_es256 = *algorithm == Algorithm::ES256 && family == AlgorithmFamily::Ec;
    if is_es256 { Ok(()) } else { Err(ErrorKind::InvalidAlgorithm.into()) }
}

/// Signs with a private key.
struct Es256Signer(EcdsaKeyPair);

impl Signer<Vec<u8>> for Es256Signer {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let signature = self.0.sign(&SystemRandom::new(), message).map_err(Error::from_source)?;
        Ok(signature.as_ref().to_vec())
    }
}

impl JwtSigner for Es256Signer {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}

/// Verifies signatures with a public key, which is stored as an uncompressed point.
struct Es256Verifier(Vec<u8>);

impl Verifier<Vec<u8>> for Es256Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.0).verify(message, signature).map_err(Error::from_source)
    }
}

impl JwtVerifier for Es256Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}
