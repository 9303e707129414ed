//! Lists of one partition's items, page by page.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};

use crate::{Dynamo, Item, Key, Query, TableError, n, s, values};

/// A page of a list.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Items of the page that cannot be read: one of them does not hide the others.
    pub unreadable: Vec<TableError>,
    /// Where the next page goes on; `None` at the list's end.
    pub next: Option<Cursor>,
}

/// Where a list goes on: after this sort key, in whichever partition it is used for. It names no account and so reaches
/// none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor(String);

/// Which part of a list is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paging {
    pub after: Option<Cursor>,
    /// At most this many items; `None` is all.
    pub limit: Option<usize>,
}

/// A list: the items of one partition whose sort keys begin with `prefix`.
#[derive(Debug)]
pub struct List {
    partition: String,
    prefix: String,
    is_forward: bool,
    /// TTL deletes within days: items that have expired by then are left out.
    unexpired_at: Option<DateTime<Utc>>,
}

impl List {
    /// The items of `partition` whose sort keys begin with `prefix`, in ascending order, expired or not.
    pub fn of(partition: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { partition: partition.into(), prefix: prefix.into(), is_forward: true, unexpired_at: None }
    }

    /// The same list without the items that have expired by `now`.
    pub fn unexpired_at(self, now: DateTime<Utc>) -> Self {
        Self { unexpired_at: Some(now), ..self }
    }

    /// The same list in descending order.
    pub fn backward(self) -> Self {
        Self { is_forward: false, ..self }
    }
}

impl Cursor {
    /// The cursor that goes on after what `text` says, in a list that knows how to read it.
    pub fn after(text: String) -> Self {
        Self(text)
    }

    /// A sort key is at most 1,024 bytes.
    pub fn in_list(prefix: &str, text: String) -> Option<Self> {
        (text.starts_with(prefix) && text.len() <= 1_024).then_some(Self(text))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Paging {
    /// The whole list.
    pub fn all() -> Self {
        Self { after: None, limit: None }
    }
}

impl<T> Page<T> {
    /// The page with each item read by `read`, and beside them those that cannot be.
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

    /// The page with each item by `view`.
    pub fn map<U>(self, view: impl Fn(T) -> U) -> Page<U> {
        let items = self.items.into_iter().map(view).collect();
        Page { items, unreadable: self.unreadable, next: self.next }
    }

    /// Whether nothing stands there, readable or not.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.unreadable.is_empty()
    }

    /// The page, if every item of it can be read.
    pub fn whole(mut self) -> Result<Self, TableError> {
        match self.unreadable.pop() {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }

    /// The page's items, if every one of them can be read.
    ///
    /// # Errors
    /// [`TableError::Unreadable`].
    pub fn into_items(self) -> Result<Vec<T>, TableError> {
        self.whole().map(|page| page.items)
    }
}

impl<S> Dynamo<S> {
    /// The part of `list` that `paging` asks for. Query, strongly consistent, as many pages as it takes.
    pub async fn list(&self, list: &List, paging: &Paging) -> Result<Page<Item>, TableError> {
        const KEYS: &str = "#PK = :partition AND begins_with(#SK, :prefix)";
        const UNEXPIRED: &str = "#TTL > :now";
        // One more than asked for tells whether there are more.
        let wanted = paging.limit.map(|limit| limit.saturating_add(1));
        let mut values = values([(":partition", s(&list.partition)), (":prefix", s(&list.prefix))]);
        values.extend(list.unexpired_at.map(|now| (":now".to_owned(), n(now.timestamp()))));
        let after = paging.after.as_ref().map(|Cursor(sk)| Key { pk: list.partition.clone(), sk: sk.clone() });
        let query = Query {
            filter: list.unexpired_at.map(|_| UNEXPIRED),
            is_forward: list.is_forward,
            page_items: wanted,
            after: after.map(Key::attributes),
            ..Query::of(KEYS, values)
        };
        let mut items = self.query(query).first(wanted).await?;
        let has_more = paging.limit.is_some_and(|limit| items.len() > limit);
        if has_more {
            items.pop();
        }
        let last = items.last().and_then(|item| item.get("SK")).and_then(|sk: &AttributeValue| sk.as_s().ok());
        let next = last.filter(|_| has_more).map(|sk| Cursor(sk.clone()));
        Ok(Page { items, unreadable: Vec::new(), next })
    }
}
