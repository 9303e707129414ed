//! Queries: the items of one partition of the table or of an index.

use crate::{DynamoTable, Item, Items, Values, collect_attribute_names};

/// A query: the items of a partition that are read, and how they are read.
#[derive(Debug)]
pub struct Query {
    /// The index to read; `None` for the table itself, which is read with strong consistency.
    pub index: Option<&'static str>,
    /// The key condition expression.
    pub key_condition: String,
    /// The filter expression; `None` to return all items for which the key condition is true.
    pub filter: Option<&'static str>,
    /// The values of the key condition and of the filter.
    pub values: Values,
    /// `true` to return the items in ascending order of their sort keys, `false` for descending order.
    pub is_ascending: bool,
    /// The largest number of items that one Query request reads; `None` for DynamoDB's own limit of 1 MB.
    pub page_items: Option<usize>,
    /// The key of the item after which the query starts; `None` to start at the first item.
    pub after: Option<Item>,
}

impl Query {
    /// Creates the query for the items of the table for which `key_condition` is true, in ascending order.
    pub fn new(key_condition: impl Into<String>, values: Values) -> Self {
        let key_condition = key_condition.into();
        Self { index: None, key_condition, filter: None, values, is_ascending: true, page_items: None, after: None }
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Returns the items of `query`. [`Items`] sends the Query requests, one for each page, when the caller reads the
    /// items.
    pub fn query(&self, query: Query) -> Items {
        let Query { index, key_condition, filter, values, is_ascending, page_items, after } = query;
        let request = self
            .client
            .query()
            .table_name(&self.name)
            .set_index_name(index.map(str::to_owned))
            .set_consistent_read(index.is_none().then_some(true))
            .set_expression_attribute_names(Some(collect_attribute_names(&[
                &key_condition,
                filter.unwrap_or_default(),
            ])))
            .set_expression_attribute_values(Some(values))
            .key_condition_expression(key_condition)
            .set_filter_expression(filter.map(str::to_owned))
            .scan_index_forward(is_ascending)
            .set_limit(page_items.and_then(|limit| i32::try_from(limit).ok()));
        Items::from_query(request, after)
    }
}
