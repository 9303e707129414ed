//! Reading the whole table.

use crate::{Dynamo, Items, Values, names, s, values};

/// Which items of the whole table are read, and how.
#[derive(Debug)]
pub struct Scan {
    filter: Option<&'static str>,
    values: Values,
    attributes: Option<&'static str>,
    is_consistent: bool,
}

impl Scan {
    /// Every item, with strongly consistent reads.
    pub fn all() -> Self {
        Self { filter: None, values: Values::new(), attributes: None, is_consistent: true }
    }

    /// The items for which `filter` is true, with strongly consistent reads. The filter costs no less than the whole table.
    pub fn filtered(filter: &'static str, values: Values) -> Self {
        Self { filter: Some(filter), values, ..Self::all() }
    }

    /// The items whose sort key begins with `prefix`, with strongly consistent reads.
    pub fn beginning_with(prefix: &str) -> Self {
        Self::filtered("begins_with(#SK, :prefix)", values([(":prefix", s(prefix))]))
    }

    /// The same items, each with `attributes` alone: a projection expression.
    pub fn only(self, attributes: &'static str) -> Self {
        Self { attributes: Some(attributes), ..self }
    }

    /// The same items, as eventually consistent reads show them: they cost half as much.
    pub fn eventually_consistent(self) -> Self {
        Self { is_consistent: false, ..self }
    }
}

impl<S> Dynamo<S> {
    /// Reads the items of `scan`. Scan, page by page.
    pub fn scan(&self, scan: Scan) -> Items {
        let Scan { filter, values, attributes, is_consistent } = scan;
        let names = names(&[filter.unwrap_or_default(), attributes.unwrap_or_default()]);
        let request = self
            .client
            .scan()
            .table_name(&self.name)
            .set_consistent_read(is_consistent.then_some(true))
            .set_filter_expression(filter.map(str::to_owned))
            .set_projection_expression(attributes.map(str::to_owned))
            .set_expression_attribute_names((!names.is_empty()).then_some(names))
            .set_expression_attribute_values((!values.is_empty()).then_some(values));
        Items::of_scan(request, None)
    }
}
