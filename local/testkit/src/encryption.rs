//! An encryption key for tests, and a search of a table for secrets that are not encrypted.

use aws_sdk_dynamodb::types::AttributeValue;
use billing::SigningSecret;
use encryption::EncryptionKeys;
use store::{Item, Table};

/// The encryption key of test deployments, as hexadecimal text.
pub const ENCRYPTION_KEY: &str = "2122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40";

/// Returns the encryption keys of test deployments: [`ENCRYPTION_KEY`].
///
/// # Panics
/// Never, because the key is valid.
pub fn encryption_keys() -> EncryptionKeys {
    EncryptionKeys::parse(ENCRYPTION_KEY).expect("a key")
}

/// Returns the items of `table` that contain `secret` without encryption: as its base64 text or as its bytes.
///
/// # Panics
/// If the table cannot be read.
pub async fn items_with_plain_secret(table: &Table, secret: &SigningSecret) -> Vec<Item> {
    let scanned = table.client().scan().table_name(table.name()).send().await.expect("a scan");
    assert!(scanned.last_evaluated_key.is_none(), "the table is larger than one page");
    let text = secret.reveal();
    let parts = [text.trim_start_matches("whsec_").as_bytes(), secret.bytes()];
    let is_plain = |value: &AttributeValue| {
        bytes_in_attribute(value).iter().any(|bytes| parts.iter().any(|part| contains_byte_sequence(bytes, part)))
    };
    scanned.items.unwrap_or_default().into_iter().filter(|item| item.values().any(is_plain)).collect()
}

/// Returns the bytes of all texts and binary values in `value`.
fn bytes_in_attribute(value: &AttributeValue) -> Vec<&[u8]> {
    match value {
        AttributeValue::S(text) => vec![text.as_bytes()],
        AttributeValue::B(blob) => vec![blob.as_ref()],
        AttributeValue::L(values) => values.iter().flat_map(bytes_in_attribute).collect(),
        AttributeValue::M(values) => values.values().flat_map(bytes_in_attribute).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether `bytes` contains `part` at any position.
fn contains_byte_sequence(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
