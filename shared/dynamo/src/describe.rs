//! Requests about the table itself: whether it exists, and whether its items expire.

use aws_sdk_dynamodb::types::TimeToLiveSpecification;

use crate::{DynamoTable, TableError};

/// The TTL attribute of both tables (payments and orders): the time, in seconds since 1970, after which DynamoDB
/// deletes the item.
pub const TIME_TO_LIVE: &str = "TTL";

impl<Schema> DynamoTable<Schema> {
    /// Returns whether the table exists. Sends one DescribeTable request.
    pub async fn table_exists(&self) -> Result<bool, TableError> {
        match self.client.describe_table().table_name(self.name()).send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => Ok(false),
            Err(error) => Err(TableError::from_sdk_error("DescribeTable", error)),
        }
    }

    /// Returns the id that DynamoDB gave to the table when it was created, copied or restored; `None` if the response
    /// contains no id. Sends one DescribeTable request.
    pub async fn dynamodb_id(&self) -> Result<Option<String>, TableError> {
        let described = self.client.describe_table().table_name(self.name()).send().await;
        let described = described.map_err(|error| TableError::from_sdk_error("DescribeTable", error))?;
        Ok(described.table.and_then(|table| table.table_id))
    }

    /// Switches on TTL for the table, so that its items expire, unless TTL is on already. Sends the requests
    /// DescribeTimeToLive and, if necessary, UpdateTimeToLive.
    pub async fn enable_ttl(&self) -> Result<(), TableError> {
        let described = self.client.describe_time_to_live().table_name(self.name()).send().await;
        let described = described.map_err(|error| TableError::from_sdk_error("DescribeTimeToLive", error))?;
        if described.time_to_live_description.and_then(|ttl| ttl.attribute_name).is_some() {
            return Ok(());
        }
        let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name(TIME_TO_LIVE).build();
        self.client
            .update_time_to_live()
            .table_name(self.name())
            .time_to_live_specification(ttl.expect("attribute_name and enabled are set"))
            .send()
            .await
            .map_err(|error| TableError::from_sdk_error("UpdateTimeToLive", error))?;
        Ok(())
    }
}
