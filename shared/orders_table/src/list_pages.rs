//! Reading of lists, one list page at a time. The items of a list can be in several partitions of an index. The part of
//! a list that is in one partition is a range.
//!
//! A list is sorted by the sort text: the rest of `Data` after the prefix of the range. Items with equal sort texts are
//! sorted by the name of their range, and within a range as in the index. So a query can continue after any item, and a
//! list page needs no request for the items of earlier list pages, even if many items have the same sort text.
//!
//! A cursor contains the sort position of the last item on the list page, and the key of the list. A list accepts only
//! its own cursors. A list of orders accepts its cursors even if the request filters by another status or by other
//! days. If an order changes its status while a list is read, the list can miss the order: the query for the old status
//! can run after the change, and the query for the new status before the change.

use std::cmp::Ordering;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

use crate::buckets::BucketCount;
use crate::partition_queries::{ItemPosition, ItemSelection, QueriedPartition};
use crate::{OrdersTable, items, keys};
use billing::AccountId;
use dynamo::{Cursor, Entity, Item, Key, Page, Paging, TableError, key_of_item};
use orders::{DateRange, EmployeeId, OrderStatus, Product, ProductId, WarehouseId};

/// A part of a list: the items of one partition of an index whose `Data` lies in a range.
#[derive(Clone, Debug)]
pub(crate) struct PartitionRange {
    pub partition: QueriedPartition,
    /// The name of the range, by which the list sorts items with equal texts. All ranges of a list have different names.
    pub name: String,
    /// The prefix with which `Data` of each item of the range begins. The list is sorted by the rest of `Data`.
    pub prefix: String,
    /// The smallest and the largest text in `Data` after the prefix, both included.
    pub bounds: (String, String),
}

impl PartitionRange {
    /// Returns the range of the orders in `partition` that have `status` and were placed in the given days. `bucket` is
    /// the index of the bucket if the list is read from all buckets of GSI-2; otherwise 0.
    pub fn of_orders(partition: QueriedPartition, bucket: u32, status: OrderStatus, (from, to): DateRange) -> Self {
        let name = format!("{status}-{bucket:04}");
        Self { partition, name, prefix: keys::status_prefix(status), bounds: keys::instant_text_bounds(from, to) }
    }

    /// Returns the range of the items in `partition` whose `Data` begins with `prefix`, the key prefix of one kind of
    /// entity.
    pub fn of_entities(partition: QueriedPartition, prefix: &str) -> Self {
        let name = String::new();
        Self { partition, name, prefix: prefix.to_owned(), bounds: (String::new(), keys::AFTER_ANY_ID.to_owned()) }
    }
}

/// A text that is appended to a sort text, to continue a list after all items with this sort text. The result sorts
/// after the sort text, but before every longer sort text with the same beginning, because identifiers, dates and times
/// contain only characters that are larger than this text.
const BEFORE_ANY_TEXT: &str = " ";

/// The position of an item in the sort sequence of its list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct SortPosition {
    /// The sort text: the rest of `Data` after the prefix of the range.
    text: String,
    /// The name of the range.
    range: String,
    pk: String,
    sk: String,
}

impl SortPosition {
    /// Returns the sort position of `item`, which was read from `range`.
    fn of_item(item: &Item, range: &PartitionRange) -> Result<Self, TableError> {
        let (data, Key { pk, sk }) = (items::data_attribute(item)?, key_of_item(item));
        let text = data.strip_prefix(&range.prefix).unwrap_or(data).to_owned();
        Ok(Self { text, range: range.name.clone(), pk, sk })
    }

    /// Returns where a query of `range` continues after this position: the smallest sort text, and the item after which
    /// the query starts. If this sort text is larger than the largest sort text of the range, no items are left.
    fn continue_in(&self, range: &PartitionRange) -> (String, Option<ItemPosition>) {
        let (from, _) = &range.bounds;
        if self.text < *from {
            return (from.clone(), None);
        }
        match range.name.cmp(&self.range) {
            // Earlier list pages contain all items of this range that have the sort text of the position.
            Ordering::Less => (format!("{}{BEFORE_ANY_TEXT}", self.text), None),
            Ordering::Equal => {
                let key = Key { pk: self.pk.clone(), sk: self.sk.clone() };
                let data = format!("{}{}", range.prefix, self.text);
                (self.text.clone(), Some(ItemPosition { data, key }))
            }
            Ordering::Greater => (self.text.clone(), None),
        }
    }
}

/// A list of orders.
#[derive(Clone, Copy, Debug)]
pub enum OrderList<'a> {
    /// The orders of all customers.
    All,
    OfCustomer(&'a AccountId),
    OfProduct(&'a ProductId),
    OfRepresentative(&'a EmployeeId),
    OfWarehouse(&'a WarehouseId),
}

impl OrderList<'_> {
    /// Returns the key of the list, which the cursors of the list contain: the key of the entity to which the orders of
    /// the list are related.
    fn key(self) -> String {
        match self {
            Self::All => ALL_ORDERS.to_owned(),
            Self::OfCustomer(id) => keys::key_of_customer(id),
            Self::OfProduct(id) => keys::key_of_product(id),
            Self::OfRepresentative(id) => keys::key_of_employee(id),
            Self::OfWarehouse(id) => keys::key_of_warehouse(id),
        }
    }
}

/// The key of the list of all orders, which the cursors of this list contain. It is not the key of an item.
const ALL_ORDERS: &str = "ORDERS";

/// The content of a cursor: the sort position of the last item on the list page, and the key of the list.
#[derive(Serialize, Deserialize)]
struct CursorContent(SortPosition, String);

impl CursorContent {
    /// Returns the cursor after the position `last` in the list with the key `list`.
    fn cursor(last: SortPosition, list: &str) -> Cursor {
        let text = serde_json::to_string(&Self(last, list.to_owned()));
        Cursor::after(text.expect("texts are representable"))
    }

    /// Returns the sort position in the cursor of `paging`; `None` if `paging` has no cursor.
    fn position(paging: &Paging) -> Option<SortPosition> {
        let Self(position, _) = serde_json::from_str(paging.after.as_ref()?.as_str()).ok()?;
        Some(position)
    }
}

/// The largest length of a key in a cursor, in bytes. DynamoDB allows sort keys of at most 1,024 bytes.
const MAX_KEY_LEN: usize = 1_024;

/// Parses a cursor from `text`. Returns `None` if `text` is not a cursor, if its partition key does not begin with `prefix`,
/// or if `is_valid_sort_text` returns false for its sort text and the identifier in its partition key.
pub(crate) fn parse_cursor(
    text: String,
    prefix: &str,
    is_valid_sort_text: impl Fn(&str, &str) -> bool,
) -> Option<Cursor> {
    let CursorContent(position, _) = serde_json::from_str(&text).ok()?;
    let is_key = |key: &str| (1..=MAX_KEY_LEN).contains(&key.len());
    let is_valid = is_key(&position.sk) && is_valid_sort_text(&position.text, position.pk.strip_prefix(prefix)?);
    (is_valid && is_key(&position.pk) && position.range.len() <= MAX_KEY_LEN).then(|| Cursor::after(text))
}

/// Checks that `text` is a cursor of the list with the key `list`. Returns `None` if it is not.
pub(crate) fn check_cursor_list(list: &str, text: &str) -> Option<()> {
    let CursorContent(_, key) = serde_json::from_str(text).ok()?;
    (key == list).then_some(())
}

/// Returns whether the sort text `data` is the identifier `id` itself, as in lists that are sorted by id.
fn is_sort_text_the_id(data: &str, id: &str) -> bool {
    data == id && data.len() <= 64
}

impl OrdersTable {
    /// Parses a cursor of `list`. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_orders(list: OrderList<'_>, text: String) -> Option<Cursor> {
        check_cursor_list(&list.key(), &text)?;
        parse_cursor(text, keys::ORDER_PREFIX, |data, _| data.parse::<DateTime<Utc>>().is_ok())
    }

    /// Parses a cursor of the list with the key `list`, which is sorted by id, and whose entities have keys with `prefix`.
    /// Returns `None` if `text` is not such a cursor.
    pub(crate) fn cursor_of_list(list: &str, prefix: &str, text: String) -> Option<Cursor> {
        check_cursor_list(list, &text)?;
        parse_cursor(text, prefix, is_sort_text_the_id)
    }

    /// Parses a cursor of the list of the customers of `representative`. Returns `None` if `text` is not a cursor of
    /// this list.
    pub fn cursor_of_customers(representative: &EmployeeId, text: String) -> Option<Cursor> {
        Self::cursor_of_list(&keys::key_of_employee(representative), keys::CUSTOMER_PREFIX, text)
    }

    /// Parses a cursor of the list of products. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_products(text: String) -> Option<Cursor> {
        Self::cursor_of_list(keys::ALL_PRODUCTS, keys::PRODUCT_PREFIX, text)
    }

    /// Replaces each id in `page` by its product. An index can lag behind the table, so an id is left out if its
    /// product does not exist. Products that cannot be parsed are listed as unreadable. Sends one BatchGetItem request
    /// for each 100 ids.
    pub async fn read_products(&self, page: Page<ProductId>) -> Result<Page<Product>, TableError> {
        let keys: Vec<Key> = page.items.iter().map(|id| keys::key_of_own_item(keys::key_of_product(id))).collect();
        let items = self.dynamo.get_all(&keys).await?.into_iter().flatten().collect();
        Ok(Page { items, unreadable: page.unreadable, next: page.next }.read(|item| Product::from_item(&item)))
    }

    /// Returns a list page of the orders that are related to the entity with the key `end`, have one of `statuses` and
    /// were placed in `days`, oldest first.
    pub(crate) async fn page_of_orders_related_to(
        &self,
        end: &str,
        statuses: &[OrderStatus],
        days: DateRange,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let range =
            |status: &OrderStatus| PartitionRange::of_orders(QueriedPartition::relations_to(end), 0, *status, days);
        self.page_of_ranges(end, statuses.iter().map(range).collect(), paging).await
    }

    /// Returns a list page of all orders that have one of `statuses` and were placed in `days`, oldest first.
    pub(crate) async fn page_of_all_orders(
        &self,
        statuses: &[OrderStatus],
        days: DateRange,
        buckets: BucketCount,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let in_status = |status: &OrderStatus| {
            let status = *status;
            (0..buckets.count())
                .map(move |bucket| PartitionRange::of_orders(QueriedPartition::of_bucket(bucket), bucket, status, days))
        };
        self.page_of_ranges(ALL_ORDERS, statuses.iter().flat_map(in_status).collect(), paging).await
    }

    /// Returns a list page of the entities whose keys begin with `prefix` and that are related to the entity or list
    /// with the key `end`, sorted by id.
    pub(crate) async fn page_of_entities_related_to(
        &self,
        end: impl AsRef<str>,
        prefix: &str,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let (end, range) =
            (end.as_ref(), PartitionRange::of_entities(QueriedPartition::relations_to(end.as_ref()), prefix));
        self.page_of_ranges(end, vec![range], paging).await
    }

    /// Returns a list page of the items of all `ranges`, sorted together. The cursor for the next list page contains
    /// `list`, the key of the list. Queries all ranges in parallel, and reads as many result pages of each query as
    /// needed.
    pub(crate) async fn page_of_ranges(
        &self,
        list: &str,
        ranges: Vec<PartitionRange>,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let after = CursorContent::position(paging);
        let found = ranges.iter().map(|range| self.read_items_of_range(range, after.as_ref(), paging.limit));
        let mut found = try_join_all(found).await?.concat();
        // The sort is stable, so it keeps the order of the index within a range.
        found.sort_by(|(a, _), (b, _)| (&a.text, &a.range).cmp(&(&b.text, &b.range)));
        // If an item moved from one range to another while the ranges were read, both ranges can contain it.
        let mut seen = HashSet::new();
        found.retain(|(position, _)| seen.insert((position.text.clone(), position.pk.clone())));
        let has_more = paging.limit.is_some_and(|limit| found.len() > limit);
        found.truncate(paging.limit.unwrap_or(usize::MAX));
        let next = found.last().filter(|_| has_more).map(|(position, _)| CursorContent::cursor(position.clone(), list));
        let items = found.into_iter().map(|(_, item)| item).collect();
        Ok(Page { items, unreadable: Vec::new(), next })
    }

    /// Returns a list page of the items of `range`, sorted by `Data`, in descending order unless `is_ascending` is true. The
    /// cursor for the next list page contains the key of `list`.
    pub(crate) async fn page_of_range(
        &self,
        list: OrderList<'_>,
        range: &PartitionRange,
        is_ascending: bool,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let after = CursorContent::position(paging).map(|SortPosition { text, pk, sk, .. }| {
            let data = format!("{}{text}", range.prefix);
            ItemPosition { data, key: Key { pk, sk } }
        });
        let limit = paging.limit.map(|limit| limit.saturating_add(1));
        let selection =
            ItemSelection { is_ascending, limit, after, ..ItemSelection::with_sort_key_prefix(range.prefix.as_str()) };
        let mut items = self.query(&range.partition, selection).read_up_to(limit).await?;
        let has_more = paging.limit.is_some_and(|limit| items.len() > limit);
        items.truncate(paging.limit.unwrap_or(usize::MAX));
        let last = items.last().filter(|_| has_more).map(|item| SortPosition::of_item(item, range)).transpose()?;
        let next = last.map(|last| CursorContent::cursor(last, &list.key()));
        Ok(Page { items, unreadable: Vec::new(), next })
    }

    /// Reads the items of a range that follow the position `after`, or all items if `after` is `None`. Stops as soon as
    /// there are more than `limit` items.
    async fn read_items_of_range(
        &self,
        range: &PartitionRange,
        after: Option<&SortPosition>,
        limit: Option<usize>,
    ) -> Result<Vec<(SortPosition, Item)>, TableError> {
        let (from, to) = &range.bounds;
        let (from, after) = after.map_or_else(|| (from.clone(), None), |after| after.continue_in(range));
        if from > *to {
            return Ok(Vec::new());
        }
        let limit = limit.map(|limit| limit.saturating_add(1));
        let bounds = (format!("{}{from}", range.prefix), format!("{}{to}", range.prefix));
        let selection = ItemSelection { limit, after, ..ItemSelection::with_sort_key_between(bounds) };
        let items = self.query(&range.partition, selection).read_up_to(limit).await?;
        items.into_iter().map(|item| Ok((SortPosition::of_item(&item, range)?, item))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_page_continues_in_each_range_after_the_last_item_of_the_page_before() {
        let range = |name: &str, from: &str| PartitionRange {
            partition: QueriedPartition::relations_to("end"),
            name: name.to_owned(),
            prefix: "OPEN-".to_owned(),
            bounds: (from.to_owned(), "z".to_owned()),
        };
        let at = SortPosition {
            text: "m".to_owned(),
            range: "b".to_owned(),
            pk: "ORDER#1".to_owned(),
            sk: "CUSTOMER#1".to_owned(),
        };
        // The columns are: the name and the smallest text of a range, and the expected smallest text that follows, with the
        // text in `Data` of the item after which the query starts.
        for (name, from, rest) in [
            ("a", "a", ("m ", None)),
            ("b", "a", ("m", Some("OPEN-m"))),
            ("c", "a", ("m", None)),
            ("a", "m", ("m ", None)),
            ("a", "n", ("n", None)),
            ("b", "n", ("n", None)),
        ] {
            let (text, after) = at.continue_in(&range(name, from));
            assert_eq!((text.as_str(), after.as_ref().map(|after| after.data.as_str())), rest, "{name} {from}");
        }
    }
}
