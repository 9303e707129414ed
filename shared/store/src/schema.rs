//! The table's schema: what `template.yaml` declares on AWS and what the code creates on the embedded engine.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, ProjectionType,
    ScalarAttributeType,
};

use super::{Table, TableError};

/// Reminders that are due: partition key `Shard`, sort key `NextReminderDate`.
pub const GSI_1: &str = "GSI-1";
/// Payments that are due: partition key `Shard`, sort key `NextPaymentDate`.
pub const GSI_2: &str = "GSI-2";

/// A sparse index and what it projects besides keys. Neither projects `Version` or the attempt: a claim would then
/// pay for index writes. Neither projects `PaymentDetails`.
#[derive(Debug)]
pub struct Projection {
    pub index: &'static str,
    pub partition_key: &'static str,
    pub sort_key: &'static str,
    pub attributes: &'static [&'static str],
}

/// The whole schema.
#[derive(Debug)]
pub struct Schema {
    pub partition_key: &'static str,
    pub sort_key: &'static str,
    pub time_to_live: &'static str,
    pub indexes: [Projection; 2],
}

/// The schema of the table.
pub static SCHEMA: Schema = Schema {
    partition_key: "PK",
    sort_key: "SK",
    time_to_live: "TTL",
    indexes: [
        Projection {
            index: GSI_1,
            partition_key: "Shard",
            sort_key: "NextReminderDate",
            attributes: &["ProductName", "PaymentAmount", "Currency", "DueDate"],
        },
        Projection {
            index: GSI_2,
            partition_key: "Shard",
            sort_key: "NextPaymentDate",
            attributes: &[
                "ProductName",
                "PaymentAmount",
                "Currency",
                "DueDate",
                "PaymentDay",
                "Status",
                "FailedAttempts",
                "CancelPeriod",
                "UnpaidSince",
                "WaitingTerms",
            ],
        },
    ],
};

impl Table {
    /// Creates the table if it is not there, with its indexes and TTL. For the embedded engine: on AWS the template
    /// does it.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        if self.exists().await? {
            return Ok(());
        }
        let mut create = self
            .client()
            .create_table()
            .table_name(self.name())
            .billing_mode(BillingMode::PayPerRequest)
            .key_schema(key(SCHEMA.partition_key, KeyType::Hash))
            .key_schema(key(SCHEMA.sort_key, KeyType::Range));
        let mut keys = vec![(SCHEMA.partition_key, ScalarAttributeType::S), (SCHEMA.sort_key, ScalarAttributeType::S)];
        for index in &SCHEMA.indexes {
            keys.push((index.partition_key, ScalarAttributeType::N));
            keys.push((index.sort_key, ScalarAttributeType::S));
            create = create.global_secondary_indexes(
                GlobalSecondaryIndex::builder()
                    .index_name(index.index)
                    .key_schema(key(index.partition_key, KeyType::Hash))
                    .key_schema(key(index.sort_key, KeyType::Range))
                    .projection(
                        aws_sdk_dynamodb::types::Projection::builder()
                            .projection_type(ProjectionType::Include)
                            .set_non_key_attributes(Some(index.attributes.iter().map(|&a| a.to_owned()).collect()))
                            .build(),
                    )
                    .build()
                    .expect("name and keys are set"),
            );
        }
        keys.sort_by_key(|(name, _)| *name);
        keys.dedup_by_key(|(name, _)| *name);
        for (name, kind) in keys {
            let definition = AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build();
            create = create.attribute_definitions(definition.expect("name and type are set"));
        }
        create.send().await.map_err(|error| TableError::request("CreateTable", error))?;
        self.expire_items().await
    }
}

fn key(name: &str, kind: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build().expect("name and kind are set")
}
