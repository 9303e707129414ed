//! The table's schema: what `template.yaml` declares on AWS and what the code creates on the embedded engine.

use super::items::subscription::names::*;
use super::{Batch, Table, TableError};
use dynamo::{Index, Keys, Schema};

/// Reminders that are due: partition key `Shard`, sort key `NextReminderDate`.
pub const GSI_1: &str = "GSI-1";
/// Payments that are due: partition key `Shard`, sort key `NextPaymentDate`.
pub const GSI_2: &str = "GSI-2";

/// The schema of the table. Both indexes are sparse: they list subscriptions that have a date. Neither projects `Version` or
/// the attempt: a claim would then pay for index writes. Neither projects `PaymentDetails`.
pub static SCHEMA: Schema<2> = Schema {
    keys: Keys { partition: ("PK", "S"), sort: ("SK", "S") },
    indexes: [
        Index {
            name: GSI_1,
            keys: Keys { partition: (SHARD, "N"), sort: (NEXT_REMINDER_DATE, "S") },
            attributes: Some(&[PRODUCT_NAME, PAYMENT_AMOUNT, CURRENCY, DUE_DATE]),
        },
        Index {
            name: GSI_2,
            keys: Keys { partition: (SHARD, "N"), sort: (NEXT_PAYMENT_DATE, "S") },
            attributes: Some(&[
                PRODUCT_NAME,
                PAYMENT_AMOUNT,
                CURRENCY,
                DUE_DATE,
                PAYMENT_DAY,
                STATUS,
                FAILED_ATTEMPTS,
                CANCEL_PERIOD,
                UNPAID_SINCE,
                WAITING_TERMS,
            ]),
        },
    ],
};

impl Batch {
    /// The index of what is due.
    pub(super) fn index(self) -> &'static Index {
        match self {
            Batch::Reminders => &SCHEMA.indexes[0],
            Batch::Payments => &SCHEMA.indexes[1],
        }
    }
}

impl Table {
    /// Creates the table if it is not there, with its indexes and TTL. For the embedded engine: on AWS the template
    /// does it.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        if self.exists().await? { Ok(()) } else { self.create(&SCHEMA).await }
    }
}
