//! Queries, all pages: of the table strongly consistent, of an index as it is.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{GSI_1, GSI_2, OrdersTable};
use crate::table::{Item, TableError, n, names, s};

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

impl OrdersTable {
    /// Of the table: `PK = partition`, and `SK` as wanted.
    pub(super) async fn in_partition(&self, partition: String, wanted: Wanted) -> Result<Vec<Item>, TableError> {
        self.query(None, ("PK", s(partition)), "SK", wanted).await
    }

    /// Of GSI-1: `SK = end`, and `Data` as wanted.
    pub(super) async fn leading_to(&self, end: impl Into<String>, wanted: Wanted) -> Result<Vec<Item>, TableError> {
        self.query(Some(GSI_1), ("SK", s(end.into())), "Data", wanted).await
    }

    /// Of GSI-2: `Bucket = bucket`, and `Data` as wanted.
    pub(super) async fn in_bucket(&self, bucket: u32, wanted: Wanted) -> Result<Vec<Item>, TableError> {
        self.query(Some(GSI_2), ("Bucket", n(bucket)), "Data", wanted).await
    }

    async fn query(
        &self,
        index: Option<&str>,
        (partition, value): (&str, AttributeValue),
        sort: &str,
        wanted: Wanted,
    ) -> Result<Vec<Item>, TableError> {
        let mut condition = format!("#{partition} = :partition");
        let mut values = HashMap::from([(":partition".to_owned(), value)]);
        match wanted.sort {
            Sort::All => {}
            Sort::BeginsWith(prefix) => {
                condition += &format!(" AND begins_with(#{sort}, :prefix)");
                values.insert(":prefix".to_owned(), s(prefix));
            }
            Sort::Between(from, to) => {
                condition += &format!(" AND #{sort} BETWEEN :from AND :to");
                values.extend([(":from".to_owned(), s(from)), (":to".to_owned(), s(to))]);
            }
        }
        let query = self
            .client()
            .query()
            .table_name(self.0.name())
            .set_index_name(index.map(str::to_owned))
            .consistent_read(index.is_none())
            .set_expression_attribute_names(Some(names(&[&condition])))
            .set_expression_attribute_values(Some(values))
            .key_condition_expression(condition)
            .scan_index_forward(wanted.is_forward)
            .set_limit(wanted.limit.and_then(|limit| i32::try_from(limit).ok()));
        let mut pages = query.into_paginator().items().send();
        let mut items = Vec::new();
        while wanted.limit.is_none_or(|limit| items.len() < limit) {
            match pages.next().await {
                Some(item) => items.push(item.map_err(|error| TableError::request("Query", error))?),
                None => break,
            }
        }
        Ok(items)
    }
}
