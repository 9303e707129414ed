//! What a table is, beside its items: whether it is there, and that its items expire.

use aws_sdk_dynamodb::types::TimeToLiveSpecification;

use crate::{Dynamo, TableError};

/// The attribute by which items of both tables expire.
pub const TIME_TO_LIVE: &str = "TTL";

impl<S> Dynamo<S> {
    /// Whether there is such a table. DescribeTable.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn exists(&self) -> Result<bool, TableError> {
        match self.client.describe_table().table_name(self.name()).send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => Ok(false),
            Err(error) => Err(TableError::request("DescribeTable", error)),
        }
    }

    /// Lets items expire by their TTL, if they do not. DescribeTimeToLive, UpdateTimeToLive.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn expire_items(&self) -> Result<(), TableError> {
        let described = self.client.describe_time_to_live().table_name(self.name()).send().await;
        let described = described.map_err(|error| TableError::request("DescribeTimeToLive", error))?;
        if described.time_to_live_description.and_then(|ttl| ttl.attribute_name).is_some() {
            return Ok(());
        }
        let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name(TIME_TO_LIVE).build();
        self.client
            .update_time_to_live()
            .table_name(self.name())
            .time_to_live_specification(ttl.expect("name and switch are set"))
            .send()
            .await
            .map_err(|error| TableError::request("UpdateTimeToLive", error))?;
        Ok(())
    }
}
