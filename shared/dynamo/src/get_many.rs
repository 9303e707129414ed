//! Reading of many items by their keys.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::KeysAndAttributes;

use crate::{Backoff, Dynamo, Item, Key, TableError};

/// The largest number of keys in a BatchGetItem request.
const MAX_KEYS: usize = 100;
/// The error code for a request that is throttled.
const THROTTLED: &str = "ProvisionedThroughputExceededException";

impl<S> Dynamo<S> {
    /// Returns the items with `keys`, in no particular order, without those that do not exist. Each key must occur once.
    /// Sends one strongly consistent BatchGetItem request for each 100 keys. DynamoDB may leave some keys of a request out,
    /// for example if it is throttled; then sends another request for these keys after a pause.
    ///
    /// # Errors
    /// A request failed, or DynamoDB still left keys out after the last retry.
    pub async fn get_many(&self, keys: &[Key]) -> Result<Vec<Item>, TableError> {
        let mut found = Vec::new();
        for keys in keys.chunks(MAX_KEYS) {
            let request = keys.iter().fold(KeysAndAttributes::builder().consistent_read(true), |request, key| {
                request.keys(key.clone().attributes())
            });
            let request = request.build().expect("there is a key");
            let mut remaining = HashMap::from([(self.name.clone(), request)]);
            let mut backoff = Backoff::new(&self.client);
            while !remaining.is_empty() {
                let batch = self.client.batch_get_item().set_request_items(Some(std::mem::take(&mut remaining)));
                let read = batch.send().await.map_err(|error| TableError::from_sdk_error("BatchGetItem", error))?;
                found.extend(read.responses.unwrap_or_default().into_values().flatten());
                remaining = read.unprocessed_keys.unwrap_or_default();
                if !remaining.is_empty() && !backoff.wait().await {
                    return Err(TableError::Request {
                        operation: "BatchGetItem",
                        code: Some(THROTTLED.to_owned()),
                        transient: true,
                        source: "DynamoDB left keys out of each response".into(),
                    });
                }
            }
        }
        Ok(found)
    }
}
