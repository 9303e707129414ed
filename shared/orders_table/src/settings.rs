//! The settings that all processes of the order desk share.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, TransactWriteItem};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;

use crate::buckets::BucketCount;
use crate::items::{new_item, number_attribute};
use crate::{OrdersTable, keys};
use billing::ActionKind;
use dynamo::{Instant, Item, Paging, TableError, TransactionOutcome, UpdateItemOutcome, from_item};
use orders::{OrderStatus, range_of_all_days};

/// The attributes of the item with the settings.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OrdersSettingsItem {
    buckets: u32,
    /// The time from which each payment must have an order. Absent until [`OrdersTable::set_ordered_from`] stores a
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordered_from: Option<Instant>,
}

/// Returns the item that this program would store for the settings in `item`.
pub(crate) fn expected_settings_item(item: &Item) -> Result<Item, TableError> {
    Ok(new_item(keys::key_of_settings(), None, &from_item::<OrdersSettingsItem>(item)?))
}

impl OrdersTable {
    /// Returns the stored number of buckets; `None` if no number is stored. Sends one GetItem request.
    pub(crate) async fn stored_buckets(&self) -> Result<Option<BucketCount>, TableError> {
        let item = self.dynamo.get(keys::key_of_settings()).await?;
        item.map(|item| Ok(BucketCount::new(from_item::<OrdersSettingsItem>(&item)?.buckets))).transpose()
    }

    /// Returns the stored number of buckets (partitions of GSI-2). If no number is stored yet, stores `initial`. Sends
    /// one GetItem request. If no number is stored, also sends a conditional PutItem request and another GetItem
    /// request.
    pub async fn get_or_store_buckets(&self, initial: BucketCount) -> Result<BucketCount, TableError> {
        let key = keys::key_of_settings();
        if let Some(buckets) = self.stored_buckets().await? {
            return Ok(buckets);
        }
        self.dynamo
            .put_if_absent(new_item(
                key.clone(),
                None,
                &OrdersSettingsItem { buckets: initial.count(), ordered_from: None },
            ))
            .await?;
        self.stored_buckets().await?.ok_or(TableError::Missing { key })
    }

    /// Returns the time from which each payment must have an order; `None` if no such time is stored. Sends one GetItem
    /// request.
    pub async fn ordered_from(&self) -> Result<Option<DateTime<Utc>>, TableError> {
        let item = self.dynamo.get(keys::key_of_settings()).await?;
        let settings = item.map(|item| from_item::<OrdersSettingsItem>(&item)).transpose()?;
        Ok(settings.and_then(|settings| settings.ordered_from).map(|Instant(at)| at))
    }

    /// Returns the payment time of the order that was paid first; `None` if there is no order. Ignores orders that
    /// cannot be read. Sends one GetItem request, and one Query request for each bucket (partition of GSI-2) and
    /// status. Sends these queries again after each order that cannot be read.
    pub async fn first_paid_at(&self) -> Result<Option<DateTime<Utc>>, TableError> {
        let Some(buckets) = self.stored_buckets().await? else { return Ok(None) };
        let statuses: Vec<OrderStatus> = OrderStatus::iter().collect();
        let mut paging = Paging { after: None, limit: Some(1) };
        loop {
            let page = self.orders_of_all_customers(&statuses, range_of_all_days(), buckets, &paging).await?;
            match (page.items.first(), page.next) {
                (Some(order), _) => return Ok(Some(order.placed_at)),
                // The only order of this list page cannot be read, so continue with the next list page.
                (None, Some(next)) => paging.after = Some(next),
                (None, None) => return Ok(None),
            }
        }
    }

    /// Stores the time `at`: each payment from this time on must have an order. Earlier payments may have no order.
    /// Sends one UpdateItem request.
    pub async fn set_ordered_from(&self, at: DateTime<Utc>) -> Result<(), TableError> {
        let values = HashMap::from([(":at".to_owned(), AttributeValue::S(Instant(at).to_text()))]);
        let (key, expression) = (keys::key_of_settings(), "SET #OrderedFrom = :at");
        let update = self.dynamo.build_update(key.clone(), expression, "attribute_exists(#Buckets)", values);
        match self.dynamo.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(()),
            UpdateItemOutcome::ConditionFailed(_) => Err(TableError::Missing { key }),
        }
    }

    /// Raises the number of buckets (partitions of GSI-2) to `buckets`, and returns the stored number. The number is
    /// never reduced: if the stored number is larger than `buckets`, it does not change. Existing orders stay in their
    /// buckets. A running process uses the new number when it next lists all orders. For new orders, a running process
    /// uses the new number only after a restart. If the number changes, the transaction also writes an entry of the
    /// action log. Sends a GetItem request and, if the number changes, a TransactWriteItems request.
    ///
    /// # Errors
    /// - [`TableError::Missing`] if the table has no settings.
    /// - [`TableError::Contended`] if another process has changed the number at the same time.
    pub async fn raise_buckets(&self, buckets: BucketCount) -> Result<BucketCount, TableError> {
        let key = keys::key_of_settings();
        let stored = self.stored_buckets().await?.ok_or_else(|| TableError::Missing { key: key.clone() })?;
        if stored.count() >= buckets.count() {
            return Ok(stored);
        }
        let values = [(":buckets", buckets), (":before", stored)];
        let values = values.map(|(name, value)| (name.to_owned(), number_attribute(value.count())));
        let update =
            self.dynamo.build_update(key.clone(), "SET #Buckets = :buckets", "#Buckets = :before", values.into());
        let update = TransactWriteItem::builder().update(update).build();
        let entry = self.requester.as_ref().map(|requester| {
            let before = stored.count().to_string();
            let after = buckets.count().to_string();
            requester.build_setting_put(ActionKind::SetBuckets, "buckets", before, after)
        });
        match self.dynamo.transact_with_retries([update].into_iter().chain(entry).collect()).await? {
            TransactionOutcome::Written => Ok(buckets),
            TransactionOutcome::ConditionFailed(_) => Err(TableError::Contended { key }),
        }
    }
}
