//! Write sharding of the index over all orders: AWS's formula for how many buckets it needs.

use super::OrderId;
use dynamo::shard_of;

/// How many buckets the orders are spread over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buckets(u32);

impl Default for Buckets {
    /// Enough for a million open orders.
    fn default() -> Self {
        Self(4)
    }
}

impl Buckets {
    /// So many; at least one.
    pub fn new(count: u32) -> Self {
        Self(count.max(1))
    }

    /// How many.
    pub fn count(self) -> u32 {
        self.0
    }

    /// The bucket of an order: known from its id, and no other order's business.
    pub fn of(self, order: OrderId) -> u32 {
        shard_of(&order.to_string(), self.0)
    }
}

/// What one look at all orders in a status reads ("Example of modeling relational data in DynamoDB" in the Amazon DynamoDB
/// developer guide).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Orders in the table.
    pub orders: u64,
    /// Of a hundred of them, so many are in the status that is looked at.
    pub percent: u32,
    /// Bytes of one of them in the index.
    pub item_bytes: u32,
}

impl Demand {
    /// Items that one read unit reads: 4 KB of them.
    pub fn items_per_unit(self) -> u64 {
        4_096u64.checked_div(u64::from(self.item_bytes)).unwrap_or_default().max(1)
    }

    /// Items that one partition reads in a second: it gives 3,000 units.
    pub fn items_per_partition(self) -> u64 {
        self.items_per_unit().saturating_mul(3_000)
    }

    /// How many buckets let all of them be read within a second.
    ///
    /// ```
    /// use orders::Demand;
    /// // The guide's own example, which it rounds up to 15.
    /// assert_eq!(Demand { orders: 3_000_000, percent: 20, item_bytes: 250 }.buckets(), 13);
    /// ```
    pub fn buckets(self) -> u64 {
        let read = self.orders.saturating_mul(u64::from(self.percent)).div_ceil(100);
        read.div_ceil(self.items_per_partition()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_orders_are_spread_evenly_and_stay() {
        let (buckets, mut counts) = (Buckets::new(15), [0u32; 15]);
        for n in 0..15_000 {
            let order = OrderId {
                due_on: "2027-01-31".parse().unwrap(),
                subscription: billing::SubscriptionId::new(ulid::Ulid::from_parts(1, n)),
            };
            counts[buckets.of(order) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert_eq!(Buckets::new(0).count(), 1);
    }
}
