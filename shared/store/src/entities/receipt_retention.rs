//! How long receipts and other payment records are stored: as many days as the policy says.

use billing::Receipt;
use chrono::{DateTime, TimeDelta, Utc};
use dynamo::{Entity, Item, TIME_TO_LIVE, expiry_timestamp, n};

use crate::table::payments_table::{PaymentsSchema, Table};

impl Table {
    /// Returns how long receipts, other payment records and run records are stored before they expire.
    pub fn receipt_retention(&self) -> TimeDelta {
        self.policy().receipt_retention()
    }

    /// Returns the time at which a refund of `receipt` that is stored at the time `now` expires, in seconds since 1970: the
    /// time at which a receipt of this age expires. If receipts were stored for longer when this one was written, that
    /// time may have passed; then the refund is stored as long as a new record.
    pub fn refund_expiry(&self, receipt: &Receipt, now: DateTime<Utc>) -> i64 {
        let (with_receipt, as_new) = (
            expiry_timestamp(receipt.processed_at, self.receipt_retention()),
            expiry_timestamp(now, self.receipt_retention()),
        );
        if with_receipt > now.timestamp() { with_receipt } else { as_new }
    }

    /// Returns the item of a receipt or other payment record that was created at the time `at`, with its expiry time.
    pub(crate) fn build_record_item(&self, record: &impl Entity<PaymentsSchema>, at: DateTime<Utc>) -> Item {
        let mut item = record.to_item();
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(at, self.receipt_retention())));
        item
    }
}
