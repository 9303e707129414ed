//! The payments of a day that were found at the gateway and have a matching receipt.

use std::collections::HashSet;

use billing::GatewayToken;
use sha2::{Digest as _, Sha256};

/// The maximum number of payments whose hashes are held in memory. They need about 18 MB.
pub const MAX_SEEN_PAYMENTS: usize = 1_000_000;

/// The payments of the compared day that were found at the gateway with a matching receipt. The last step of the
/// comparison sends no request to the gateway for the receipts of these payments.
///
/// This set only saves requests. If a payment is not in the set because the set was full, the last step requests this
/// payment from the gateway. The set contains hashes of 64 bits, which the table stores for the next invocation. With a
/// million payments and a million receipts, the probability that a receipt without a payment has the hash of a payment
/// is one in 18 million.
#[derive(Clone, Debug)]
pub struct SeenPayments {
    hashes: HashSet<u64>,
    max: usize,
    /// The hashes that are not stored in the table yet.
    new: Vec<u64>,
}

impl SeenPayments {
    /// Creates an empty set of at most `max` payments.
    pub fn new(max: usize) -> Self {
        Self { hashes: HashSet::new(), max, new: Vec::new() }
    }

    /// Adds `payment`, unless the set already contains the maximum number of payments.
    pub fn insert(&mut self, payment: &GatewayToken) {
        let hash = hash_payment_id(payment);
        if self.insert_stored_hash(hash) {
            self.new.push(hash);
        }
    }

    /// Adds the payment with `hash`, which the table contains, unless the set already contains the maximum number of
    /// payments. Returns whether the payment was added.
    pub fn insert_stored_hash(&mut self, hash: u64) -> bool {
        self.hashes.len() < self.max && self.hashes.insert(hash)
    }

    /// Returns the hashes of the payments that were added since the last call, to store them in the table.
    pub fn take_unstored_hashes(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.new)
    }

    /// Returns whether the set contains `payment`.
    pub fn contains(&self, payment: &GatewayToken) -> bool {
        self.hashes.contains(&hash_payment_id(payment))
    }

    /// Returns the number of payments in the set.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Removes all payments.
    pub fn clear(&mut self) {
        self.hashes.clear();
        self.new.clear();
    }
}

/// Returns the hash of the id of `payment`. Each process computes the same hash.
fn hash_payment_id(payment: &GatewayToken) -> u64 {
    Sha256::digest(payment.as_str()).first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_payments_store_no_more_than_their_maximum() {
        let payment = |n: u32| -> GatewayToken { format!("pi_{n}").parse().unwrap() };
        let mut seen = SeenPayments::new(1_000);
        (0..100_000).for_each(|n| seen.insert(&payment(n)));
        assert_eq!(seen.len(), 1_000);
        assert!(seen.hashes.capacity() < 4_000, "{}", seen.hashes.capacity());
        assert!((0..1_000).all(|n| seen.contains(&payment(n))));
        assert!(!seen.contains(&payment(1_000)), "the gateway is asked about this payment");
    }
}
