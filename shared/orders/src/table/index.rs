//! Queries, all pages: of the table strongly consistent, of an index as it is.

use aws_sdk_dynamodb::types::AttributeValue;

use super::items::{BUCKET, DATA};
use super::{GSI_1, GSI_2, OrdersTable};
use dynamo::{Item, Items, Query, TableError, n, s, values};

/// What is asked of a partition's sort keys.
#[derive(Clone, Debug)]
pub(super) enum Sort {
    All,
    BeginsWith(String),
    /// Both ends included.
    Between(String, String),
}

/// Which items.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub sort: Sort,
    pub is_forward: bool,
    /// At most so many; `None` is all.
    pub limit: Option<usize>,
}

impl Wanted {
    pub fn all() -> Self {
        Self { sort: Sort::All, is_forward: true, limit: None }
    }

    pub fn beginning_with(prefix: impl Into<String>) -> Self {
        Self { sort: Sort::BeginsWith(prefix.into()), ..Self::all() }
    }

    pub fn between((from, to): (String, String)) -> Self {
        Self { sort: Sort::Between(from, to), ..Self::all() }
    }
}

/// Whose sort keys are asked: a partition of the table or of an index.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    index: Option<&'static str>,
    key: (&'static str, AttributeValue),
    sort: &'static str,
}

impl Partition {
    /// Of the table: `PK = partition`, sorted by `SK`.
    pub fn own(partition: impl Into<String>) -> Self {
        Self { index: None, key: ("PK", s(partition.into())), sort: "SK" }
    }

    /// Of GSI-1: `SK = end`, sorted by `Data`.
    pub fn leading_to(end: impl Into<String>) -> Self {
        Self { index: Some(GSI_1), key: ("SK", s(end.into())), sort: DATA }
    }

    /// Of GSI-2: `Bucket = bucket`, sorted by `Data`.
    pub fn bucket(bucket: u32) -> Self {
        Self { index: Some(GSI_2), key: (BUCKET, n(bucket)), sort: DATA }
    }
}

impl OrdersTable {
    /// Of the table: `PK = partition`, and `SK` as wanted.
    pub(super) async fn in_partition(&self, partition: String, wanted: Wanted) -> Result<Vec<Item>, TableError> {
        let limit = wanted.limit;
        self.query(&Partition::own(partition), wanted).first(limit).await
    }

    /// Of GSI-1: `SK = end`, and `Data` as wanted.
    pub(super) async fn leading_to(&self, end: impl Into<String>, wanted: Wanted) -> Result<Vec<Item>, TableError> {
        let limit = wanted.limit;
        self.query(&Partition::leading_to(end), wanted).first(limit).await
    }

    /// The items of `partition` as wanted; a page has at most as many as the limit.
    pub(super) fn query(&self, partition: &Partition, wanted: Wanted) -> Items {
        let Partition { index, key: (key, value), sort } = partition;
        let mut keys = format!("#{key} = :partition");
        let mut values = values([(":partition", value.clone())]);
        match wanted.sort {
            Sort::All => {}
            Sort::BeginsWith(prefix) => {
                keys += &format!(" AND begins_with(#{sort}, :prefix)");
                values.insert(":prefix".to_owned(), s(prefix));
            }
            Sort::Between(from, to) => {
                keys += &format!(" AND #{sort} BETWEEN :from AND :to");
                values.extend([(":from".to_owned(), s(from)), (":to".to_owned(), s(to))]);
            }
        }
        let (is_forward, page_items) = (wanted.is_forward, wanted.limit);
        self.0.query(Query { index: *index, is_forward, page_items, ..Query::of(keys, values) })
    }
}
