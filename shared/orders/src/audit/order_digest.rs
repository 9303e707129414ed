//! The digest of a set of orders. By their digests, two sets of orders can be compared that do not fit into the memory.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use sha2::{Digest as _, Sha256};

use crate::ids::OrderId;

/// The digest of a set of orders: for each due date, the number of its orders and the sum of the hashes of their ids.
/// The digest does not depend on the sequence in which the orders are added. Its size depends on the number of due
/// dates, not on the number of orders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OrderDigest(BTreeMap<NaiveDate, (u64, u128)>);

/// Returns the first 16 bytes of the SHA-256 of the id of `order`, as a number.
fn hash_of_order_id(order: OrderId) -> u128 {
    let bytes = Sha256::digest(order.to_string());
    bytes.iter().take(16).fold(0, |hash, byte| (hash << 8) | u128::from(*byte))
}

impl OrderDigest {
    /// Adds `order`, which was not added before.
    pub fn add(&mut self, order: OrderId) {
        let (count, sum) = self.0.entry(order.due_on).or_default();
        (*count, *sum) = (count.saturating_add(1), sum.wrapping_add(hash_of_order_id(order)));
    }

    /// Returns the due dates for which the two sets contain different orders.
    pub fn different_due_dates(&self, other: &Self) -> BTreeSet<NaiveDate> {
        let dates = self.0.keys().chain(other.0.keys());
        dates.filter(|date| self.0.get(date) != other.0.get(date)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identifiers of the subscriptions whose orders are compared.
    const SUBSCRIPTIONS: [&str; 4] = [
        "01JZXCVBNM0123456789ABCD00",
        "01JZXCVBNM0123456789ABCD01",
        "01JZXCVBNM0123456789ABCD02",
        "01JZXCVBNM0123456789ABCD03",
    ];

    /// Returns the digest of `orders`. Each order is given as the day of its due date in January 2027, and the index of
    /// its subscription in `SUBSCRIPTIONS`.
    fn digest_of_orders(orders: &[(u32, usize)]) -> OrderDigest {
        let mut digest = OrderDigest::default();
        for (day, subscription) in orders {
            digest.add(format!("2027-01-{day:02}.{}", SUBSCRIPTIONS[*subscription]).parse().unwrap());
        }
        digest
    }

    #[test]
    fn digests_are_the_same_only_for_the_same_orders() {
        // The columns are: the orders of both sets, and the days with different orders.
        for (orders, other, expected) in [
            (vec![], vec![], vec![]),
            (vec![(1, 0), (1, 1), (2, 0)], vec![(2, 0), (1, 1), (1, 0)], vec![]),
            (vec![(1, 0)], vec![], vec![1]),
            (vec![], vec![(2, 3)], vec![2]),
            // Both sets have one order with the due date January 1, but not the same order.
            (vec![(1, 0), (3, 0)], vec![(1, 1), (3, 0)], vec![1]),
            (vec![(1, 0), (2, 0)], vec![(1, 0), (3, 0)], vec![2, 3]),
            // The ids of both sets have the same sum.
            (vec![(1, 0), (1, 3)], vec![(1, 1), (1, 2)], vec![1]),
        ] {
            let days: BTreeSet<NaiveDate> =
                expected.iter().map(|day| NaiveDate::from_ymd_opt(2027, 1, *day).unwrap()).collect();
            assert_eq!(
                digest_of_orders(&orders).different_due_dates(&digest_of_orders(&other)),
                days,
                "{orders:?} {other:?}"
            );
            assert_eq!(
                digest_of_orders(&other).different_due_dates(&digest_of_orders(&orders)),
                days,
                "{other:?} {orders:?}"
            );
        }
    }
}
