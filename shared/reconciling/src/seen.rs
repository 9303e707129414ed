//! The payments of a day that were found at the gateway and have a matching receipt.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use billing::GatewayToken;

/// The maximum number of payments whose hashes are held in memory. They need about 18 MB.
pub const MAX_SEEN_PAYMENTS: usize = 1_000_000;

/// The payments of the compared day that were found at the gateway with a matching receipt. The last step of the
/// comparison sends no request to the gateway for the receipts of these payments.
///
/// This set only saves requests: for a payment that is not in the set, because the set was full or the comparison was
/// interrupted, the last step sends a request. The set contains hashes of 64 bits. With a million payments and a
/// million receipts, the probability that a receipt without a payment has the hash of a payment is one in 18 million.
#[derive(Clone, Debug)]
pub struct SeenPayments {
    hashes: HashSet<u64>,
    hasher: RandomState,
    max: usize,
}

impl SeenPayments {
    /// Creates an empty set of at most `max` payments.
    pub fn new(max: usize) -> Self {
        Self { hashes: HashSet::new(), hasher: RandomState::new(), max }
    }

    /// Adds `payment`, unless the set already contains the maximum number of payments.
    pub fn insert(&mut self, payment: &GatewayToken) {
        if self.hashes.len() < self.max {
            self.hashes.insert(self.hasher.hash_one(payment));
        }
    }

    /// Returns whether the set contains `payment`.
    pub fn contains(&self, payment: &GatewayToken) -> bool {
        self.hashes.contains(&self.hasher.hash_one(payment))
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_payments_keep_no_more_than_the_maximum() {
        let payment = |n: u32| -> GatewayToken { format!("pi_{n}").parse().unwrap() };
        let mut seen = SeenPayments::new(1_000);
        (0..1_000_000).for_each(|n| seen.insert(&payment(n)));
        assert_eq!(seen.len(), 1_000);
        assert!(seen.hashes.capacity() < 4_000, "{}", seen.hashes.capacity());
        assert!((0..1_000).all(|n| seen.contains(&payment(n))));
        assert!(!seen.contains(&payment(1_000)), "the gateway is asked about this payment");
    }
}
