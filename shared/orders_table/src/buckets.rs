//! Write sharding of GSI-2, the index over all orders: each order is in one of several partitions ("buckets"). AWS has
//! a formula for the number of buckets.

use dynamo::shard_of;
use orders::OrderId;

/// The number of buckets (partitions of GSI-2) that the orders are spread over; at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketCount(u32);

impl Default for BucketCount {
    /// Returns 4 buckets. By the formula of [`BucketEstimate`], 4 buckets are enough to read about 190,000 orders of
    /// 250 bytes each in one second.
    fn default() -> Self {
        Self(4)
    }
}

impl BucketCount {
    /// Creates the number of buckets (partitions of GSI-2): `count`, or 1 if `count` is 0.
    pub fn new(count: u32) -> Self {
        Self(count.max(1))
    }

    /// Returns the number of buckets.
    pub fn count(self) -> u32 {
        self.0
    }

    /// Returns the index of the bucket of an order; the first bucket has the index 0. The index depends only on the id
    /// of the order and the number of buckets.
    pub fn bucket_of(self, order: OrderId) -> u32 {
        shard_of(&order.to_string(), self.0)
    }
}

/// The number of bytes that one DynamoDB read unit reads.
const READ_UNIT_BYTES: u64 = 4_096;

/// The numbers from which [`BucketEstimate::buckets`] computes how many buckets are needed. With this number of
/// buckets, all orders with one status, such as `OPEN`, can be read within one second. The formula is from "Example of
/// modeling relational data in DynamoDB" in the Amazon DynamoDB developer guide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketEstimate {
    /// The number of orders in the table.
    pub orders: u64,
    /// The share of the orders that have the status, in percent.
    pub percent: u32,
    /// The size of one order in the index, in bytes.
    pub item_bytes: u32,
}

impl BucketEstimate {
    /// Returns the number of orders that one DynamoDB read unit (4 KB) reads. Returns 1 if an order is larger than a
    /// read unit; [`BucketEstimate::read_units_per_item`] is larger than 1 then.
    pub fn items_per_read_unit(self) -> u64 {
        READ_UNIT_BYTES.checked_div(u64::from(self.item_bytes)).unwrap_or_default().max(1)
    }

    /// Returns the number of read units that one order costs; 1 if several orders fit into one read unit.
    pub fn read_units_per_item(self) -> u64 {
        u64::from(self.item_bytes).div_ceil(READ_UNIT_BYTES).max(1)
    }

    /// Returns the number of orders that can be read from one partition in a second: a partition allows 3,000 read
    /// units per second.
    pub fn items_per_partition_second(self) -> u64 {
        let items = self.items_per_read_unit().saturating_mul(3_000);
        items.checked_div(self.read_units_per_item()).unwrap_or_default().max(1)
    }

    /// Returns the number of buckets that are needed to read all orders with the status within one second.
    ///
    /// ```
    /// use orders_table::BucketEstimate;
    /// // The numbers of the guide's example. The guide itself rounds the 13 buckets up to 15.
    /// assert_eq!(BucketEstimate { orders: 3_000_000, percent: 20, item_bytes: 250 }.buckets(), 13);
    /// ```
    pub fn buckets(self) -> u64 {
        let read = self.orders.saturating_mul(u64::from(self.percent)).div_ceil(100);
        read.div_ceil(self.items_per_partition_second()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_spread_evenly_over_the_buckets() {
        let (buckets, mut counts) = (BucketCount::new(15), [0u32; 15]);
        for n in 0..15_000 {
            let subscription = billing::SubscriptionId::new(ulid::Ulid::from_parts(1, n));
            let order = OrderId::of_month("2027-01-31".parse().unwrap(), subscription);
            counts[buckets.bucket_of(order) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert_eq!(BucketCount::new(0).count(), 1);
    }

    #[test]
    fn order_that_is_larger_than_a_read_unit_costs_several_read_units() {
        // The columns are: the size of an order in bytes, the read units to read one order, the number of orders that
        // can be read from one partition in a second, and the number of buckets.
        for (item_bytes, read_units, per_second, buckets) in [
            (0, 1, 3_000, 67),
            (250, 1, 48_000, 5),
            (4_096, 1, 3_000, 67),
            (4_097, 2, 1_500, 134),
            (8_192, 2, 1_500, 134),
            (400_000, 98, 30, 6_667),
        ] {
            let estimate = BucketEstimate { orders: 1_000_000, percent: 20, item_bytes };
            assert_eq!(
                (estimate.read_units_per_item(), estimate.items_per_partition_second(), estimate.buckets()),
                (read_units, per_second, buckets),
                "{item_bytes}"
            );
        }
    }
}
