//! The hash that represents a value in memory, where the values of a whole file or table would need too much memory.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Returns the hash of `value`.
pub fn compute_hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
