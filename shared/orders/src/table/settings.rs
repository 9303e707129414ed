//! What the whole order desk agrees on.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::super::Buckets;
use super::items::{number, row};
use super::{OrdersTable, keys};
use dynamo::{TableError, UpdateAnswer, from_item};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SettingsItem {
    buckets: u32,
}

impl OrdersTable {
    /// How many buckets the orders are spread over; `initial`, if that was not said yet. GetItem, and a put if absent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn buckets(&self, initial: Buckets) -> Result<Buckets, TableError> {
        let key = keys::settings();
        if let Some(item) = self.0.get(key.clone()).await? {
            return Ok(Buckets::new(from_item::<SettingsItem>(&item)?.buckets));
        }
        self.0.put_if_absent(row(key.clone(), None, &SettingsItem { buckets: initial.count() })).await?;
        let item = self.0.get(key.clone()).await?.ok_or(TableError::Missing { key })?;
        Ok(Buckets::new(from_item::<SettingsItem>(&item)?.buckets))
    }

    /// Raises the number of buckets; answers how many there are then. Orders stay in theirs. A desk that has begun reads the new
    /// ones from its next look at what waits on. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn raise_buckets(&self, buckets: Buckets) -> Result<Buckets, TableError> {
        let values = HashMap::from([(":buckets".to_owned(), number(buckets.count()))]);
        let (key, raise) = (keys::settings(), "SET #Buckets = :buckets");
        let update = self.0.update_of(key.clone(), raise, "#Buckets < :buckets", values);
        match self.0.update(update, aws_sdk_dynamodb::types::ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(buckets),
            UpdateAnswer::Refused(Some(item)) => Ok(Buckets::new(from_item::<SettingsItem>(&item)?.buckets)),
            UpdateAnswer::Refused(None) => Err(TableError::Missing { key }),
        }
    }
}
