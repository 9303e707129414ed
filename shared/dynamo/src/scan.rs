//! Scans: reading the whole table.

use crate::{DynamoTable, Items, Key, Values, collect_attribute_names, s, values};

/// A scan: the items of the whole table that are returned, and how they are read.
#[derive(Debug)]
pub struct Scan {
    filter: Option<&'static str>,
    values: Values,
    attributes: Option<&'static str>,
    is_consistent: bool,
    after: Option<Key>,
}

impl Scan {
    /// Creates a scan of all items, with strongly consistent reads.
    pub fn all() -> Self {
        Self { filter: None, values: Values::new(), attributes: None, is_consistent: true, after: None }
    }

    /// Creates a scan that returns the items for which the filter expression `filter` is true, with strongly consistent
    /// reads. Such a scan costs as much as a scan without a filter, because DynamoDB reads the whole table.
    pub fn filtered(filter: &'static str, values: Values) -> Self {
        Self { filter: Some(filter), values, ..Self::all() }
    }

    /// Creates a scan that returns the items whose sort keys begin with `prefix`, with strongly consistent reads.
    pub fn beginning_with(prefix: &str) -> Self {
        Self::filtered("begins_with(#SK, :prefix)", values([(":prefix", s(prefix))]))
    }

    /// Returns the same scan, limited to some attributes of each item. `attributes` is a projection expression.
    pub fn project(self, attributes: &'static str) -> Self {
        Self { attributes: Some(attributes), ..self }
    }

    /// Returns the same scan, starting after the item with the key `after`; with `None`, starting at the first item.
    pub fn after(self, after: Option<Key>) -> Self {
        Self { after, ..self }
    }

    /// Returns the same scan with eventually consistent reads, which cost half as much.
    pub fn eventually_consistent(self) -> Self {
        Self { is_consistent: false, ..self }
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Returns the items of `scan`. [`Items`] sends the Scan requests, one for each page, when the caller reads the
    /// items.
    pub fn scan(&self, scan: Scan) -> Items {
        let Scan { filter, values, attributes, is_consistent, after } = scan;
        let names = collect_attribute_names(&[filter.unwrap_or_default(), attributes.unwrap_or_default()]);
        let request = self
            .client
            .scan()
            .table_name(&self.name)
            .set_consistent_read(is_consistent.then_some(true))
            .set_filter_expression(filter.map(str::to_owned))
            .set_projection_expression(attributes.map(str::to_owned))
            .set_expression_attribute_names((!names.is_empty()).then_some(names))
            .set_expression_attribute_values((!values.is_empty()).then_some(values));
        Items::from_scan(request, after.map(Key::attributes))
    }
}
