//! The schema of the payments table. `template.yaml` declares the same schema for AWS. On the embedded engine, which
//! replaces DynamoDB locally, this program creates the table from the schema in this file.

use crate::items::subscription::names::*;
use crate::table::batch::Batch;
use crate::table::payments_table::Table;
use dynamo::TableError;
use dynamo::{IndexSchema, KeySchema, TableSchema};

/// The name of the reminder index: partition key `Shard`, sort key `NextReminderDate`.
pub const GSI_1: &str = "GSI-1";
/// The name of the payment index: partition key `Shard`, sort key `NextPaymentDate`.
pub const GSI_2: &str = "GSI-2";

/// The schema of the table. Both indexes are sparse: they contain only subscriptions that have the date of the index.
/// The indexes contain neither `Version` nor the attributes of the attempt, so that a claim does not cost index writes.
/// The indexes do not contain `PaymentDetails` either.
pub static SCHEMA: TableSchema<2> = TableSchema {
    keys: KeySchema { partition: ("PK", "S"), sort: ("SK", "S") },
    indexes: [
        IndexSchema {
            name: GSI_1,
            keys: KeySchema { partition: (SHARD, "N"), sort: (NEXT_REMINDER_DATE, "S") },
            attributes: Some(&[PRODUCT_NAME, PAYMENT_AMOUNT, CURRENCY, DUE_DATE]),
        },
        IndexSchema {
            name: GSI_2,
            keys: KeySchema { partition: (SHARD, "N"), sort: (NEXT_PAYMENT_DATE, "S") },
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
    /// Returns the index from which this batch reads its due subscriptions.
    pub(crate) fn due_index(self) -> &'static IndexSchema {
        match self {
            Batch::Reminders => &SCHEMA.indexes[0],
            Batch::Payments => &SCHEMA.indexes[1],
        }
    }
}

impl Table {
    /// Creates the table with its indexes and TTL, unless it exists. Used only with the embedded engine: on AWS,
    /// `template.yaml` creates the table.
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        if self.table_exists().await? { Ok(()) } else { self.create_table(&SCHEMA).await }
    }
}
