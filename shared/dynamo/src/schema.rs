//! The schema of a table, and the creation of a table from its schema.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};

use crate::{DynamoTable, TableError};

/// An attribute of a key: its name and its DynamoDB type, such as `S` or `N`.
pub type KeyAttributeDefinition = (&'static str, &'static str);

/// The keys of a table or an index.
#[derive(Clone, Copy, Debug)]
pub struct KeySchema {
    pub partition: KeyAttributeDefinition,
    pub sort: KeyAttributeDefinition,
}

/// The schema of a global secondary index.
#[derive(Debug)]
pub struct IndexSchema {
    pub name: &'static str,
    pub keys: KeySchema,
    /// The attributes that the index projects (contains) besides the keys; `None` for all attributes.
    pub attributes: Option<&'static [&'static str]>,
}

/// The schema of a table: the keys of the table, and its indexes.
#[derive(Debug)]
pub struct TableSchema<const N: usize> {
    pub keys: KeySchema,
    pub indexes: [IndexSchema; N],
}

impl KeySchema {
    /// Converts the keys to the elements that a CreateTable request contains.
    fn elements(&self) -> Vec<KeySchemaElement> {
        let key = |(name, _): KeyAttributeDefinition, kind| {
            KeySchemaElement::builder().attribute_name(name).key_type(kind).build()
        };
        let keys = [key(self.partition, KeyType::Hash), key(self.sort, KeyType::Range)];
        keys.map(|key| key.expect("name and kind are set")).into()
    }
}

impl IndexSchema {
    /// Converts the index to the part of a CreateTable request that describes it.
    fn build(&self) -> GlobalSecondaryIndex {
        let projection = match self.attributes {
            None => Projection::builder().projection_type(ProjectionType::All),
            Some(attributes) => Projection::builder()
                .projection_type(ProjectionType::Include)
                .set_non_key_attributes(Some(attributes.iter().map(|&name| name.to_owned()).collect())),
        };
        let index = GlobalSecondaryIndex::builder().index_name(self.name).set_key_schema(Some(self.keys.elements()));
        index.projection(projection.build()).build().expect("name and keys are set")
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Creates the table with its indexes, and switches on TTL. Used only with the embedded engine, the local
    /// replacement of DynamoDB: on AWS, the templates create the tables. Sends the requests CreateTable,
    /// DescribeTimeToLive and UpdateTimeToLive.
    pub async fn create_table<const N: usize>(&self, schema: &TableSchema<N>) -> Result<(), TableError> {
        let keys = schema.indexes.iter().map(|index| index.keys).chain([schema.keys]);
        let mut attributes: Vec<KeyAttributeDefinition> = keys.flat_map(|keys| [keys.partition, keys.sort]).collect();
        attributes.sort_unstable();
        attributes.dedup();
        let indexes: Vec<GlobalSecondaryIndex> = schema.indexes.iter().map(IndexSchema::build).collect();
        let attributes = attributes.into_iter().map(|(name, kind)| {
            let kind = ScalarAttributeType::from(kind);
            let definition = AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build();
            definition.expect("name and type are set")
        });
        self.client
            .create_table()
            .table_name(&self.name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(schema.keys.elements()))
            .set_global_secondary_indexes(Some(indexes).filter(|indexes| !indexes.is_empty()))
            .set_attribute_definitions(Some(attributes.collect()))
            .send()
            .await
            .map_err(|error| TableError::from_sdk_error("CreateTable", error))?;
        self.enable_ttl().await
    }
}
