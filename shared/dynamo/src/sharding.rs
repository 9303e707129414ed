//! Which of several partitions something lies in.

use sha2::{Digest as _, Sha256};

/// The partition of `text` among `count`, from 0: its SHA-256 modulo that number. It stays what it is: items are where it says.
///
/// ```
/// assert_eq!(dynamo::shard_of("acme", 4), 0);
/// ```
pub fn shard_of(text: &str, count: u32) -> u32 {
    let digest = Sha256::digest(text);
    let hash = digest.iter().take(8).fold(0u64, |hash, byte| (hash << 8) | u64::from(*byte));
    u32::try_from(hash.checked_rem(u64::from(count)).unwrap_or_default()).unwrap_or_default()
}
