//! How long receipts and other payment records are stored: as many days as the policy says.

use billing::Receipt;
use chrono::{DateTime, TimeDelta, Utc};
use dynamo::{Entity, Item, TIME_TO_LIVE, expiry, n};

use crate::{Payments, Table};

impl Table {
    /// Returns how long receipts, other payment records and run records are stored before they expire.
    pub fn receipt_retention(&self) -> TimeDelta {
        self.policy().receipt_retention()
    }

    /// Returns the time at which `receipt` expires, in seconds since 1970.
    pub fn receipt_expiry(&self, receipt: &Receipt) -> i64 {
        expiry(receipt.processed_at, self.receipt_retention())
    }

    /// Returns the item of a receipt or other payment record that was created at the time `at`, with its expiry time.
    pub(crate) fn record_item(&self, record: &impl Entity<Payments>, at: DateTime<Utc>) -> Item {
        let mut item = record.to_item();
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry(at, self.receipt_retention())));
        item
    }
}
