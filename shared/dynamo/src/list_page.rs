//! Paginated lists of the items of one partition.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};

use crate::{DynamoTable, Item, Key, Query, TableError, n, s, values};

/// One page of a paginated list.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// One error for each item that cannot be read. `items` contains the readable items.
    pub unreadable: Vec<TableError>,
    /// The cursor of the next page; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// A cursor of a list: the sort key after which the next page starts. The cursor does not contain the partition key, so
/// a caller cannot use it to read the items of another account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor(String);

/// The part of a list that a caller requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paging {
    /// The cursor after which the list page starts; `None` for the first page.
    pub after: Option<Cursor>,
    /// The largest number of items in the page; `None` for all items of the list.
    pub limit: Option<usize>,
}

/// A list: the items of one partition whose sort keys begin with `prefix`.
#[derive(Debug)]
pub struct PrefixQuery {
    partition: String,
    prefix: String,
    is_ascending: bool,
    /// Items that have expired by this time are left out of the list. With `None`, the list also contains expired
    /// items, which DynamoDB deletes only days after their expiry.
    unexpired_at: Option<DateTime<Utc>>,
}

impl PrefixQuery {
    /// Creates the list of the items of `partition` whose sort keys begin with `prefix`, in ascending order, including
    /// expired items.
    pub fn new(partition: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { partition: partition.into(), prefix: prefix.into(), is_ascending: true, unexpired_at: None }
    }

    /// Returns the same list without the items that have expired at `now`.
    pub fn unexpired_at(self, now: DateTime<Utc>) -> Self {
        Self { unexpired_at: Some(now), ..self }
    }

    /// Returns the same list in descending order.
    pub fn descending(self) -> Self {
        Self { is_ascending: false, ..self }
    }
}

impl Cursor {
    /// Creates a cursor from `text` without checking it. The caller must pass a `text` that is valid for the list that
    /// gets this cursor.
    pub fn after(text: String) -> Self {
        Self(text)
    }

    /// Creates the cursor of a list whose sort keys begin with `prefix`. Returns `None` if `text` cannot be such a sort
    /// key: it does not begin with `prefix`, or is longer than 1,024 bytes, DynamoDB's limit for a sort key.
    pub fn with_prefix(prefix: &str, text: String) -> Option<Self> {
        (text.starts_with(prefix) && text.len() <= 1_024).then_some(Self(text))
    }

    /// Returns the text of the cursor.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Paging {
    /// Returns the paging that requests the whole list as one page.
    pub fn all() -> Self {
        Self { after: None, limit: None }
    }
}

impl<T> Page<T> {
    /// Converts every item with `read`. If `read` fails for an item, its error is added to `unreadable`.
    pub fn read<U>(self, read: impl Fn(T) -> Result<U, TableError>) -> Page<U> {
        let mut page = Page { items: Vec::new(), unreadable: self.unreadable, next: self.next };
        for item in self.items {
            match read(item) {
                Ok(item) => page.items.push(item),
                Err(error) => page.unreadable.push(error),
            }
        }
        page
    }

    /// Converts every item with `convert`.
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> Page<U> {
        let items = self.items.into_iter().map(convert).collect();
        Page { items, unreadable: self.unreadable, next: self.next }
    }

    /// Returns whether the page has neither readable nor unreadable items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.unreadable.is_empty()
    }

    /// Returns the page if all its items can be read, or else the error of one unreadable item.
    pub fn require_all_readable(mut self) -> Result<Self, TableError> {
        match self.unreadable.pop() {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }

    /// Returns the items of the page if all of them can be read, or else the error of one unreadable item.
    pub fn into_items(self) -> Result<Vec<T>, TableError> {
        self.require_all_readable().map(|page| page.items)
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Returns the part of `list` that `paging` requests. Sends one strongly consistent Query request for each page of
    /// DynamoDB (1 MB).
    pub async fn list_items(&self, list: &PrefixQuery, paging: &Paging) -> Result<Page<Item>, TableError> {
        const KEY_CONDITION: &str = "#PK = :partition AND begins_with(#SK, :prefix)";
        const UNEXPIRED: &str = "#TTL > :now";
        // Request one item more than `limit`: if this item exists, the list has a next page.
        let limit_and_one = paging.limit.map(|limit| limit.saturating_add(1));
        let mut values = values([(":partition", s(&list.partition)), (":prefix", s(&list.prefix))]);
        values.extend(list.unexpired_at.map(|now| (":now".to_owned(), n(now.timestamp()))));
        let after = paging.after.as_ref().map(|Cursor(sk)| Key { pk: list.partition.clone(), sk: sk.clone() });
        let query = Query {
            filter: list.unexpired_at.map(|_| UNEXPIRED),
            is_ascending: list.is_ascending,
            page_items: limit_and_one,
            after: after.map(Key::attributes),
            ..Query::new(KEY_CONDITION, values)
        };
        let mut items = self.query(query).read_up_to(limit_and_one).await?;
        let has_more = paging.limit.is_some_and(|limit| items.len() > limit);
        if has_more {
            items.pop();
        }
        let last = items.last().and_then(|item| item.get("SK")).and_then(|sk: &AttributeValue| sk.as_s().ok());
        let next = last.filter(|_| has_more).map(|sk| Cursor(sk.clone()));
        Ok(Page { items, unreadable: Vec::new(), next })
    }
}
