//! Sharding: the choice of one of several index partitions by the hash of a text.

use sha2::{Digest as _, Sha256};

/// Returns the shard of `text`, from 0 to `count` - 1: the first 64 bits of its SHA-256 modulo `count`. This function
/// must never change, because stored items are in the shards that it returned.
///
/// ```
/// assert_eq!(dynamo::shard_of("acme", 4), 0);
/// ```
pub fn shard_of(text: &str, count: u32) -> u32 {
    let digest = Sha256::digest(text);
    let hash = digest.iter().take(8).fold(0u64, |hash, byte| (hash << 8) | u64::from(*byte));
    u32::try_from(hash.checked_rem(u64::from(count)).unwrap_or_default()).unwrap_or_default()
}
