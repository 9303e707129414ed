//! Lists over one or more partitions of an index, page by page.
//!
//! A cursor holds what the last item is sorted by and its partition, never whose list it is of: it goes on in whichever list it
//! is used for. What moves from one status to another while a page is read may be on none: it is where it has gone.

use chrono::{DateTime, Utc};
use futures::future::{join_all, try_join_all};

use super::super::{Buckets, Days, OrderStatus};
use super::index::{Partition, Wanted};
use super::{OrdersTable, items, keys};
use dynamo::{Cursor, Item, Page, Paging, TableError, key_of};

/// A part of a list: the items of a partition of an index whose `Data` lies in a range.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub partition: Partition,
    /// What `Data` of all of them begins with, and they are not sorted by.
    pub prefix: String,
    /// The first and the last that may follow it.
    pub range: (String, String),
}

impl Part {
    /// The orders of `partition` in `status`, placed in `days`.
    pub fn orders(partition: Partition, status: OrderStatus, (from, to): Days) -> Self {
        Self { partition, prefix: keys::status_prefix(status), range: keys::instants(from, to) }
    }

    /// What of `partition` leads to entities of the kind `prefix`.
    pub fn entities(partition: Partition, prefix: &str) -> Self {
        Self { partition, prefix: prefix.to_owned(), range: (String::new(), keys::LAST.to_owned()) }
    }
}

/// What an item is sorted by in its list: the rest of its `Data`, and its partition.
type Place = (String, String);

fn place(item: &Item, prefix: &str) -> Result<Place, TableError> {
    let data = items::data(item)?;
    Ok((data.strip_prefix(prefix).unwrap_or(data).to_owned(), key_of(item).pk))
}

/// Whether the first `limit` of `found`, which is sorted by its texts alone, are known, and that there are more: not before
/// another text than the last one's was seen, since an index keeps no order among equal ones.
fn is_enough<T>(found: &[(Place, T)], limit: usize) -> bool {
    let last_answered = limit.checked_sub(1).and_then(|last| found.get(last));
    last_answered.zip(found.last()).is_some_and(|(((answered, _), _), ((seen, _), _))| answered < seen)
}

/// The cursor that `text` is, of a list of what lies in partitions of the kind `prefix`, if what they are sorted by `is_sorted_so`
/// with the identifier of the partition.
fn cursor(text: String, prefix: &str, is_sorted_so: impl Fn(&str, &str) -> bool) -> Option<Cursor> {
    let (data, partition) = serde_json::from_str::<Place>(&text).ok()?;
    is_sorted_so(&data, partition.strip_prefix(prefix)?).then(|| Cursor::after(text))
}

fn by_id(data: &str, id: &str) -> bool {
    data == id && data.len() <= 64
}

impl OrdersTable {
    /// The cursor of a list of orders that was written as `text`.
    pub fn cursor_of_orders(text: String) -> Option<Cursor> {
        cursor(text, keys::ORDERS, |data, _| data.parse::<DateTime<Utc>>().is_ok())
    }

    /// The cursor of a list of employees, by their ids, that was written as `text`.
    pub fn cursor_of_employees(text: String) -> Option<Cursor> {
        cursor(text, keys::EMPLOYEES, by_id)
    }

    /// The cursor of a list of employees, by the days on which they were hired, that was written as `text`.
    pub fn cursor_of_hired(text: String) -> Option<Cursor> {
        cursor(text, keys::EMPLOYEES, |data, _| billing::parse_date(data).is_ok())
    }

    /// The cursor of a list of customers that was written as `text`.
    pub fn cursor_of_customers(text: String) -> Option<Cursor> {
        cursor(text, keys::CUSTOMERS, by_id)
    }

    /// The cursor of a list of products that was written as `text`.
    pub fn cursor_of_products(text: String) -> Option<Cursor> {
        cursor(text, keys::PRODUCTS, by_id)
    }

    /// `page` with what each of its ids names, by `read`. An index is a moment behind: what is not there is left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn read_each<I, T>(
        &self,
        page: Page<I>,
        read: impl AsyncFn(&Self, &I) -> Result<Option<T>, TableError>,
    ) -> Result<Page<T>, TableError> {
        let mut named = Page { items: Vec::new(), unreadable: page.unreadable, next: page.next };
        for item in join_all(page.items.iter().map(|id| read(self, id))).await {
            match item {
                Ok(item) => named.items.extend(item),
                Err(error @ TableError::Unreadable { .. }) => named.unreadable.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(named)
    }

    /// The page of the orders in all of `statuses` that lead to `end`, the oldest first.
    pub(super) async fn page_of_orders(
        &self,
        end: &str,
        statuses: &[OrderStatus],
        days: Days,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let part = |status: &OrderStatus| Part::orders(Partition::leading_to(end), *status, days);
        self.page(statuses.iter().map(part).collect(), paging).await
    }

    /// The page of all orders in all of `statuses`, the oldest first.
    pub(super) async fn page_of_buckets(
        &self,
        statuses: &[OrderStatus],
        days: Days,
        buckets: Buckets,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        let in_status = |status: &OrderStatus| {
            let status = *status;
            (0..buckets.count()).map(move |bucket| Part::orders(Partition::bucket(bucket), status, days))
        };
        self.page(statuses.iter().flat_map(in_status).collect(), paging).await
    }

    /// The page of what of kind `prefix` leads to `end`, by its id.
    pub(super) async fn page_of_entities(
        &self,
        end: impl AsRef<str>,
        prefix: &str,
        paging: &Paging,
    ) -> Result<Page<Item>, TableError> {
        self.page(vec![Part::entities(Partition::leading_to(end.as_ref()), prefix)], paging).await
    }

    /// The page of what all `parts` have together. One query for each part, in parallel, as many pages as it takes.
    pub(super) async fn page(&self, parts: Vec<Part>, paging: &Paging) -> Result<Page<Item>, TableError> {
        let after: Option<Place> = paging.after.as_ref().and_then(|cursor| serde_json::from_str(cursor.as_str()).ok());
        let found = parts.iter().map(|part| self.part(part, after.as_ref(), paging.limit));
        let mut found = try_join_all(found).await?.concat();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        // What moved from one part to another meanwhile was read in both.
        found.dedup_by(|(a, _), (b, _)| a == b);
        let has_more = paging.limit.is_some_and(|limit| found.len() > limit);
        found.truncate(paging.limit.unwrap_or(usize::MAX));
        let next = found.last().filter(|_| has_more).map(|(place, _)| serde_json::to_string(place));
        let next = next.map(|text| Cursor::after(text.expect("two texts are representable")));
        let items = found.into_iter().map(|(_, item)| item).collect();
        Ok(Page { items, unreadable: Vec::new(), next })
    }

    /// What of a part comes after `after`, as much as is enough for `limit`.
    async fn part(
        &self,
        part: &Part,
        after: Option<&Place>,
        limit: Option<usize>,
    ) -> Result<Vec<(Place, Item)>, TableError> {
        let (from, to) = &part.range;
        let from = after.map_or(from, |(data, _)| data.max(from));
        if from > to {
            return Ok(Vec::new());
        }
        let wanted = Wanted::between((format!("{}{from}", part.prefix), format!("{}{to}", part.prefix)));
        let page_items = limit.map(|limit| limit.saturating_add(1));
        let mut found: Vec<(Place, Item)> = Vec::new();
        let mut items = self.query(&part.partition, Wanted { limit: page_items, ..wanted });
        while let Some(item) = items.next().await? {
            let place = place(&item, &part.prefix)?;
            if after.is_some_and(|after| place <= *after) {
                continue;
            }
            found.push((place, item));
            if limit.is_some_and(|limit| is_enough(&found, limit)) {
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
    fn page_is_complete_only_when_all_that_is_sorted_by_the_same_text_was_read() {
        let found = |texts: &str| -> Vec<(Place, ())> {
            texts.chars().zip('a'..).map(|(text, pk)| ((text.to_string(), pk.to_string()), ())).collect()
        };
        for (texts, limit, enough) in [
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
            assert_eq!(is_enough(&found(texts), limit), enough, "{texts} by {limit}");
        }
    }
}
