//! Reading of several items with BatchGetItem.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::KeysAndAttributes;

use crate::{Backoff, DynamoTable, Item, Key, TableError, key_of_item};

/// The largest number of items that one BatchGetItem request may read.
const MAX_BATCH: usize = 100;

impl<Schema> DynamoTable<Schema> {
    /// Returns the item of each of `keys`, in their order; `None` for an item that does not exist. Sends one strongly
    /// consistent BatchGetItem request for each 100 keys. DynamoDB may leave some keys unprocessed, which are then
    /// requested again.
    ///
    /// # Errors
    /// [`TableError::Contended`] if a key is still unprocessed after several retries.
    pub async fn get_all(&self, keys: &[Key]) -> Result<Vec<Option<Item>>, TableError> {
        let mut found = HashMap::new();
        let different: Vec<&Key> = BTreeSet::from_iter(keys).into_iter().collect();
        for batch in different.chunks(MAX_BATCH) {
            let mut unread: Vec<Item> = batch.iter().map(|key| (*key).clone().attributes()).collect();
            let mut backoff = Backoff::new(&self.client);
            loop {
                let request = KeysAndAttributes::builder().set_keys(Some(unread)).consistent_read(true).build();
                let request = request.expect("the keys are set");
                let response = self.client.batch_get_item().request_items(&self.name, request).send().await;
                let response = response.map_err(|error| TableError::from_sdk_error("BatchGetItem", error))?;
                let items = response.responses.unwrap_or_default().remove(&self.name).unwrap_or_default();
                found.extend(items.into_iter().map(|item| (key_of_item(&item), item)));
                let unprocessed = response.unprocessed_keys.unwrap_or_default().remove(&self.name);
                unread = unprocessed.map(|unprocessed| unprocessed.keys).unwrap_or_default();
                let Some(key) = unread.first() else { break };
                if !backoff.wait().await {
                    return Err(TableError::Contended { key: key_of_item(key) });
                }
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }
}
