//! The settings that all processes of the order desk share.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::super::Buckets;
use super::items::{item_with, number};
use super::{OrdersTable, keys};
use dynamo::{TableError, UpdateItemOutcome, from_item};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SettingsItem {
    buckets: u32,
}

impl OrdersTable {
    /// Returns the stored number of buckets of GSI-2. If no number is stored yet, stores `initial`. Sends one GetItem
    /// request. If no number is stored, also sends a conditional PutItem request and another GetItem request.
    pub async fn get_or_store_buckets(&self, initial: Buckets) -> Result<Buckets, TableError> {
        let key = keys::key_of_settings();
        if let Some(item) = self.dynamo.get(key.clone()).await? {
            return Ok(Buckets::new(from_item::<SettingsItem>(&item)?.buckets));
        }
        self.dynamo.put_if_absent(item_with(key.clone(), None, &SettingsItem { buckets: initial.count() })).await?;
        let item = self.dynamo.get(key.clone()).await?.ok_or(TableError::Missing { key })?;
        Ok(Buckets::new(from_item::<SettingsItem>(&item)?.buckets))
    }

    /// Raises the number of buckets of GSI-2 to `buckets`, and returns the stored number. The number is never reduced:
    /// if it is larger than `buckets` already, it does not change. Existing orders stay in their buckets. A running
    /// process uses the new number when it next lists all orders; for new orders it
    /// uses the new number only after a restart. Sends one UpdateItem request.
    pub async fn raise_buckets(&self, buckets: Buckets) -> Result<Buckets, TableError> {
        let values = HashMap::from([(":buckets".to_owned(), number(buckets.count()))]);
        let (key, expression) = (keys::key_of_settings(), "SET #Buckets = :buckets");
        let update = self.dynamo.build_update(key.clone(), expression, "#Buckets < :buckets", values);
        match self.dynamo.send_update(update, aws_sdk_dynamodb::types::ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(buckets),
            UpdateItemOutcome::ConditionFailed(Some(item)) => {
                Ok(Buckets::new(from_item::<SettingsItem>(&item)?.buckets))
            }
            UpdateItemOutcome::ConditionFailed(None) => Err(TableError::Missing { key }),
        }
    }
}
