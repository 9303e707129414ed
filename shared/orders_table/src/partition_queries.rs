//! Queries of one partition of the table (strongly consistent) or of an index (eventually consistent). A query reads
//! all result pages, or stops at its limit.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::OrdersTable;
use crate::items::{BUCKET, DATA};
use crate::schema::{GSI_1, GSI_2};
use dynamo::{Item, Items, Key, Query, TableError, n, s, values};

/// The condition for the sort keys of the items that a query returns.
#[derive(Clone, Debug)]
pub(crate) enum SortKeyCondition {
    All,
    BeginsWith(String),
    /// The sort key lies between the first and the second text, or is equal to one of them.
    Between(String, String),
}

/// Which items of a partition a query returns, in which order, and how many.
#[derive(Clone, Debug)]
pub(crate) struct ItemSelection {
    pub sort_key: SortKeyCondition,
    pub is_ascending: bool,
    /// The maximum number of items; `None` means all.
    pub limit: Option<usize>,
    /// The item after which the query starts; `None` to start at the first item.
    pub after: Option<ItemPosition>,
}

/// The position of an item in a partition of an index: the value of its sort key attribute `Data`, and its primary key.
#[derive(Clone, Debug)]
pub(crate) struct ItemPosition {
    pub data: String,
    pub key: Key,
}

impl ItemSelection {
    /// Selects all items of a partition, in ascending order.
    pub fn all_items() -> Self {
        Self { sort_key: SortKeyCondition::All, is_ascending: true, limit: None, after: None }
    }

    /// Selects all items whose sort key begins with `prefix`, in ascending order.
    pub fn with_sort_key_prefix(prefix: impl Into<String>) -> Self {
        Self { sort_key: SortKeyCondition::BeginsWith(prefix.into()), ..Self::all_items() }
    }

    /// Selects all items whose sort key lies between `from` and `to`, both included, in ascending order.
    pub fn with_sort_key_between((from, to): (String, String)) -> Self {
        Self { sort_key: SortKeyCondition::Between(from, to), ..Self::all_items() }
    }
}

/// A partition of the table or of an index.
#[derive(Clone, Debug)]
pub(crate) struct QueriedPartition {
    /// The name of the index; `None` for a partition of the table itself.
    index: Option<&'static str>,
    /// The name and the value of the partition key attribute.
    key: (&'static str, AttributeValue),
    /// The name of the sort key attribute.
    sort_key: &'static str,
}

impl QueriedPartition {
    /// Returns the partition `PK = partition` of the table, sorted by `SK`.
    pub fn of_table(partition: impl Into<String>) -> Self {
        Self { index: None, key: ("PK", s(partition.into())), sort_key: "SK" }
    }

    /// Returns the partition of GSI-1 whose partition key, the attribute `SK`, is `end`. The partition contains the
    /// relations (items that relate two entities) whose second entity has the key `end`, sorted by `Data`.
    pub fn relations_to(end: impl Into<String>) -> Self {
        Self { index: Some(GSI_1), key: ("SK", s(end.into())), sort_key: DATA }
    }

    /// Returns the partition `Bucket = bucket` of GSI-2, sorted by `Data`: it contains the orders of this bucket.
    pub fn of_bucket(bucket: u32) -> Self {
        Self { index: Some(GSI_2), key: (BUCKET, n(bucket)), sort_key: DATA }
    }
}

impl OrdersTable {
    /// Returns the items of the table with `PK = partition` that match `selection`.
    pub(crate) async fn query_partition(
        &self,
        partition: String,
        selection: ItemSelection,
    ) -> Result<Vec<Item>, TableError> {
        let limit = selection.limit;
        self.query(&QueriedPartition::of_table(partition), selection).read_up_to(limit).await
    }

    /// Returns the relations whose second entity has the key `end`, and that match `selection`: the items in the
    /// partition `end` of GSI-1.
    pub(crate) async fn query_relations_to(
        &self,
        end: impl Into<String>,
        selection: ItemSelection,
    ) -> Result<Vec<Item>, TableError> {
        let limit = selection.limit;
        self.query(&QueriedPartition::relations_to(end), selection).read_up_to(limit).await
    }

    /// Creates a query for the items of `partition` that match `selection`. The query uses the limit of `selection`
    /// only as the size of each result page, so the caller must stop reading at the limit.
    pub(crate) fn query(&self, partition: &QueriedPartition, selection: ItemSelection) -> Items {
        let QueriedPartition { index, key: (key, value), sort_key } = partition;
        let mut keys = format!("#{key} = :partition");
        let mut values = values([(":partition", value.clone())]);
        match selection.sort_key {
            SortKeyCondition::All => {}
            SortKeyCondition::BeginsWith(prefix) => {
                keys += &format!(" AND begins_with(#{sort_key}, :prefix)");
                values.insert(":prefix".to_owned(), s(prefix));
            }
            SortKeyCondition::Between(from, to) => {
                keys += &format!(" AND #{sort_key} BETWEEN :from AND :to");
                values.extend([(":from".to_owned(), s(from)), (":to".to_owned(), s(to))]);
            }
        }
        let (is_ascending, page_items) = (selection.is_ascending, selection.limit);
        let after = selection.after.map(|ItemPosition { data, key: position }| {
            let mut start_key = position.attributes();
            // The start key must be in the partition. The partition key of GSI-1 is `SK`, which is also a part of the key.
            start_key.extend([((*key).to_owned(), value.clone()), ((*sort_key).to_owned(), s(data))]);
            start_key
        });
        self.dynamo.query(Query { index: *index, is_ascending, page_items, after, ..Query::new(keys, values) })
    }
}
