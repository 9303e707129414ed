//! Reading items of one partition, of the table or of an index.

use crate::{Dynamo, Item, Items, Values, names};

/// Which items of a partition are read, and how.
#[derive(Debug)]
pub struct Query {
    /// The index; `None` is the table itself, whose reads are strongly consistent.
    pub index: Option<&'static str>,
    /// The condition of the keys.
    pub keys: String,
    pub filter: Option<&'static str>,
    /// The values of both.
    pub values: Values,
    /// Whether items are read in ascending order of their sort keys.
    pub is_forward: bool,
    /// The largest number of items of a page; `None` is what DynamoDB returns at once.
    pub page_items: Option<usize>,
    /// The key after which it starts.
    pub after: Option<Item>,
}

impl Query {
    /// The items of the table for which `keys` is true, in ascending order.
    pub fn of(keys: impl Into<String>, values: Values) -> Self {
        let keys = keys.into();
        Self { index: None, keys, filter: None, values, is_forward: true, page_items: None, after: None }
    }
}

impl<S> Dynamo<S> {
    /// Reads the items of `query`. Query, page by page.
    pub fn query(&self, query: Query) -> Items {
        let Query { index, keys, filter, values, is_forward, page_items, after } = query;
        let request = self
            .client
            .query()
            .table_name(&self.name)
            .set_index_name(index.map(str::to_owned))
            .set_consistent_read(index.is_none().then_some(true))
            .set_expression_attribute_names(Some(names(&[&keys, filter.unwrap_or_default()])))
            .set_expression_attribute_values(Some(values))
            .key_condition_expression(keys)
            .set_filter_expression(filter.map(str::to_owned))
            .scan_index_forward(is_forward)
            .set_limit(page_items.and_then(|limit| i32::try_from(limit).ok()));
        Items::of_query(request, after)
    }
}
