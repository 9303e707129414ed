//! The schema of the order desk's table: what `template.yaml` declares on AWS and what the code creates on the embedded engine.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};

use super::OrdersTable;
use dynamo::TableError;

/// The overloaded index: every edge from its other end.
pub const GSI_1: &str = "GSI-1";
/// All orders, in buckets.
pub const GSI_2: &str = "GSI-2";

/// The keys of a table or an index: names, and types as DynamoDB abbreviates them.
#[derive(Debug)]
pub struct Keys {
    pub name: &'static str,
    pub partition: (&'static str, &'static str),
    pub sort: (&'static str, &'static str),
}

/// The table, and its indexes. Both project everything.
pub static ORDERS_SCHEMA: [Keys; 3] = [
    Keys { name: "", partition: ("PK", "S"), sort: ("SK", "S") },
    Keys { name: GSI_1, partition: ("SK", "S"), sort: ("Data", "S") },
    Keys { name: GSI_2, partition: ("Bucket", "N"), sort: ("Data", "S") },
];

impl OrdersTable {
    /// Whether there is such a table. DescribeTable.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn exists(&self) -> Result<bool, TableError> {
        self.0.exists().await
    }

    /// Creates the table if it is not there. For the embedded engine: on AWS the template does it.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        if self.exists().await? {
            // A table may be older than anything in it that expires.
            return self.0.expire_items().await;
        }
        let client = self.0.client();
        let [table, indexes @ ..] = &ORDERS_SCHEMA;
        let mut create = client
            .create_table()
            .table_name(self.0.name())
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(keys(table)));
        for index in indexes {
            let all = Projection::builder().projection_type(ProjectionType::All).build();
            let index = GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .set_key_schema(Some(keys(index)))
                .projection(all);
            create = create.global_secondary_indexes(index.build().expect("name and keys are set"));
        }
        let mut attributes: Vec<_> = ORDERS_SCHEMA.iter().flat_map(|keys| [keys.partition, keys.sort]).collect();
        attributes.sort_unstable();
        attributes.dedup();
        for (name, kind) in attributes {
            let definition =
                AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::from(kind));
            create = create.attribute_definitions(definition.build().expect("name and type are set"));
        }
        create.send().await.map_err(|error| TableError::request("CreateTable", error))?;
        self.0.expire_items().await
    }
}

fn keys(of: &Keys) -> Vec<KeySchemaElement> {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let keys = [key(of.partition.0, KeyType::Hash), key(of.sort.0, KeyType::Range)];
    keys.map(|key| key.expect("name and kind are set")).into()
}
