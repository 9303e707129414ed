//! Reading of lists, one list page at a time. The items of a list can be in several partitions of an index.
//!
//! A cursor contains the sort text (the text by which the list is sorted) and the partition key of the last item on the
//! list page, and the key of the list. A list of orders accepts only its own cursors, but with any status and days. If an
//! order changes its status while a list page is read, the list page can miss the order: the query for the old status
//! can run after the change, and the query for the new status before the change.

use chrono::{DateTime, Utc};
use futures::future::{join_all, try_join_all};
use serde::{Deserialize, Serialize};

use super::super::{Buckets, DateRange, EmployeeId, OrderStatus, ProductId};
use super::index::{Partition, Selection};
use super::{OrdersTable, items, keys};
use billing::AccountId;
use dynamo::{Cursor, Item, Page, Paging, TableError, key_of};

/// A part of a list: the items of one partition of an index whose `Data` lies in a range.
#[derive(Clone, Debug)]
pub(super) struct PartitionRange {
    pub partition: Partition,
    /// The common prefix of `Data` of these items. The sort order of the list ignores it.
    pub prefix: String,
    /// The smallest and the largest text in `Data` after the prefix, both included.
    pub bounds: (String, String),
}

impl PartitionRange {
    /// Returns the range of the orders in `partition` that have `status` and were placed in the given days.
    pub fn of_orders(partition: Partition, status: OrderStatus, (from, to): DateRange) -> Self {
        Self { partition, prefix: keys::status_prefix(status), bounds: keys::instant_text_bounds(from, to) }
    }

    /// Returns the range of the edges in `partition` that come from entities whose keys begin with `prefix`.
    pub fn of_entities(partition: Partition, prefix: &str) -> Self {
        Self { partition, prefix: prefix.to_owned(), bounds: (String::new(), keys::AFTER_ANY_ID.to_owned()) }
    }
}

/// The sort position of an item in its list: first its sort text (the rest of `Data` after the prefix of the range),
/// then its partition key.
type SortPosition = (String, String);

fn sort_position(item: &Item, prefix: &str) -> Result<SortPosition, TableError> {
    let data = items::data_attribute(item)?;
    Ok((data.strip_prefix(prefix).unwrap_or(data).to_owned(), key_of(item).pk))
}

/// Returns whether `found` is certain to contain the first `limit` items of a list, and at least one more item. `found`
/// is sorted by the sort text only; an index does not order items with equal texts. Therefore the list page is complete
/// only if an item with a larger text than the last item of the list page was read.
fn is_page_complete<T>(found: &[(SortPosition, T)], limit: usize) -> bool {
    let last_on_page = limit.checked_sub(1).and_then(|last| found.get(last));
    last_on_page.zip(found.last()).is_some_and(|(((on_page, _), _), ((last_read, _), _))| on_page < last_read)
}

/// A list of orders.
#[derive(Clone, Copy, Debug)]
pub enum OrderList<'a> {
    /// The orders of all customers.
    All,
    OfCustomer(&'a AccountId),
    OfProduct(&'a ProductId),
    OfRepresentative(&'a EmployeeId),
}

impl OrderList<'_> {
    /// Returns the key of the list, which its cursors contain: the key of the entity to which its orders have edges.
    fn key(self) -> String {
        match self {
            Self::All => ALL_ORDERS.to_owned(),
            Self::OfCustomer(id) => keys::key_of_customer(id),
            Self::OfProduct(id) => keys::key_of_product(id),
            Self::OfRepresentative(id) => keys::key_of_employee(id),
        }
    }
}

/// The key of the list of all orders. It is not the key of an entity.
const ALL_ORDERS: &str = "ORDERS";
/// The key of the list of employees that is sorted by hire date.
pub(super) const HIRED_EMPLOYEES: &str = "HIRED";

/// The content of a cursor: the sort position, and the key of the list.
#[derive(Serialize, Deserialize)]
struct CursorText(SortPosition, String);

/// Parses a cursor from `text`. Returns `None` if `text` is not a cursor, if its partition key does not begin with
/// `prefix`, or if `is_valid_sort_text` rejects the sort text together with the identifier in the partition key.
fn parse_cursor(text: String, prefix: &str, is_valid_sort_text: impl Fn(&str, &str) -> bool) -> Option<Cursor> {
    let CursorText((data, partition), _) = serde_json::from_str(&text).ok()?;
    is_valid_sort_text(&data, partition.strip_prefix(prefix)?).then(|| Cursor::after(text))
}

/// Returns whether the sort text `data` is the identifier `id` itself, as in lists that are sorted by id.
fn is_sort_text_the_id(data: &str, id: &str) -> bool {
    data == id && data.len() <= 64
}

impl OrdersTable {
    /// Parses a cursor of `list`. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_orders(list: OrderList<'_>, text: String) -> Option<Cursor> {
        let CursorText(_, key) = serde_json::from_str(&text).ok()?;
        if key != list.key() {
            return None;
        }
        parse_cursor(text, keys::ORDERS, |data, _| data.parse::<DateTime<Utc>>().is_ok())
    }

    /// Parses the cursor of a list of employees that is sorted by id. Returns `None` if `text` is not such a cursor.
    pub fn cursor_of_employees(text: String) -> Option<Cursor> {
        parse_cursor(text, keys::EMPLOYEES, is_sort_text_the_id)
    }

    /// Parses the cursor of a list of employees that is sorted by hire date. Returns `None` if `text` is not such a
    /// cursor.
    pub fn cursor_of_hired(text: String) -> Option<Cursor> {
        parse_cursor(text, keys::EMPLOYEES, |data, _| billing::parse_date(data).is_ok())
    }

    /// Parses the cursor of a list of customers. Returns `None` if `text` is not such a cursor.
    pub fn cursor_of_customers(text: String) -> Option<Cursor> {
        parse_cursor(text, keys::CUSTOMERS, is_sort_text_the_id)
    }

    /// Parses the cursor of a list of products. Returns `None` if `text` is not such a cursor.
    pub fn cursor_of_products(text: String) -> Option<Cursor> {
        parse_cursor(text, keys::PRODUCTS, is_sort_text_the_id)
    }

    /// Replaces each id in `page` by its entity, read with `read`. An index can lag behind the table, so an id whose
    /// entity does not exist is left out. Entities that cannot be parsed are listed as unreadable.
    pub async fn read_entities<I, T>(
        &self,
        page: Page<I>,
        read: impl AsyncFn(&Self, &I) -> Result<Option<T>, TableError>,
    ) -> Result<Page<T>, TableError> {
        let mut entities = Page { items: Vec::new(), unreadable: page.unreadable, next: page.next };
        for item in join_all(page.items.iter().map(|id| read(self, id))).await {
            match item {
                Ok(item) => entities.items.extend(item),
                Err(error @ TableError::Unreadable { .. }) => entities.unreadable.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(entities)
    }

    /// Returns a list page of the orders that have an edge to the entity `end`, have one of `statuses` and were placed
    /// in `days`, oldest first.
    pub(super) async fn page_of_orders_with_edge_to(
        &self,
        end: &str,
        statuses: &[OrderStatus],
        days: DateRange,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let range = |status: &OrderStatus| PartitionRange::of_orders(Partition::edges_to(end), *status, days);
        self.page_of_ranges(end, statuses.iter().map(range).collect(), paging).await
    }

    /// Returns a list page of all orders that have one of `statuses` and were placed in `days`, oldest first.
    pub(super) async fn page_of_all_orders(
        &self,
        statuses: &[OrderStatus],
        days: DateRange,
        buckets: Buckets,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let in_status = |status: &OrderStatus| {
            let status = *status;
            (0..buckets.count())
                .map(move |bucket| PartitionRange::of_orders(Partition::of_bucket(bucket), status, days))
        };
        self.page_of_ranges(ALL_ORDERS, statuses.iter().flat_map(in_status).collect(), paging).await
    }

    /// Returns a list page of the entities whose keys begin with `prefix` and that have an edge to the entity `end`,
    /// sorted by id.
    pub(super) async fn page_of_entities_with_edge_to(
        &self,
        end: impl AsRef<str>,
        prefix: &str,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let (end, range) = (end.as_ref(), PartitionRange::of_entities(Partition::edges_to(end.as_ref()), prefix));
        self.page_of_ranges(end, vec![range], paging).await
    }

    /// Returns a list page of the items of all `ranges`, sorted together. The cursor for the next list page contains
    /// `list`, the key of the list. Queries all ranges in parallel, and reads as
    /// many result pages of each query as needed.
    pub(super) async fn page_of_ranges(
        &self,
        list: &str,
        ranges: Vec<PartitionRange>,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let after = paging.after.as_ref().and_then(|cursor| serde_json::from_str(cursor.as_str()).ok());
        let after: Option<SortPosition> = after.map(|CursorText(position, _)| position);
        let found = ranges.iter().map(|range| self.read_items_of_range(range, after.as_ref(), paging.limit));
        let mut found = try_join_all(found).await?.concat();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        // An item that moved from one range to another while the ranges were read can be found in both ranges.
        found.dedup_by(|(a, _), (b, _)| a == b);
        let has_more = paging.limit.is_some_and(|limit| found.len() > limit);
        found.truncate(paging.limit.unwrap_or(usize::MAX));
        let next = found.last().filter(|_| has_more).map(|(position, _)| CursorText(position.clone(), list.to_owned()));
        let next = next.map(|text| Cursor::after(serde_json::to_string(&text).expect("three texts are representable")));
        let items = found.into_iter().map(|(_, item)| item).collect();
        Ok(Page { items, unreadable: Vec::new(), next })
    }

    /// Reads the items of a range that follow the position `after`, or all items if `after` is `None`. Can stop as soon
    /// as there are enough items for a list page of `limit` items.
    async fn read_items_of_range(
        &self,
        range: &PartitionRange,
        after: Option<&SortPosition>,
        limit: Option<usize>,
    ) -> Result<Vec<(SortPosition, Item)>, TableError> {
        let (from, to) = &range.bounds;
        let from = after.map_or(from, |(data, _)| data.max(from));
        if from > to {
            return Ok(Vec::new());
        }
        let selection =
            Selection::with_sort_key_between((format!("{}{from}", range.prefix), format!("{}{to}", range.prefix)));
        let page_items = limit.map(|limit| limit.saturating_add(1));
        let mut found: Vec<(SortPosition, Item)> = Vec::new();
        let mut items = self.query(&range.partition, Selection { limit: page_items, ..selection });
        while let Some(item) = items.next().await? {
            let position = sort_position(&item, &range.prefix)?;
            if after.is_some_and(|after| position <= *after) {
                continue;
            }
            found.push((position, item));
            if limit.is_some_and(|limit| is_page_complete(&found, limit)) {
                break;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_complete_only_after_all_items_with_the_same_sort_text_were_read() {
        let found = |texts: &str| -> Vec<(SortPosition, ())> {
            texts.chars().zip('a'..).map(|(text, pk)| ((text.to_string(), pk.to_string()), ())).collect()
        };
        // The columns are: the sort texts of the items that were read (one letter each), the page size, and whether the
        // list page is complete.
        for (texts, limit, is_complete) in [
            ("", 1, false),
            ("a", 1, false),
            ("aa", 1, false),
            ("ab", 1, true),
            ("ab", 2, false),
            ("abb", 2, false),
            ("abbb", 2, false),
            ("abbbc", 2, true),
            ("abbc", 3, true),
        ] {
            assert_eq!(is_page_complete(&found(texts), limit), is_complete, "{texts} by {limit}");
        }
    }
}
