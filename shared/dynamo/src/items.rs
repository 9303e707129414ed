//! Items that are read page by page, by a Scan or a Query.

use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;

use crate::{Item, TableError};

/// The items that a Scan or a Query reads, in its order. One page is in memory at a time.
#[derive(Debug)]
pub struct Items {
    request: Request,
    next: NextPage,
    /// Items of the pages read so far that were not returned yet.
    read: VecDeque<Item>,
}

#[derive(Debug)]
enum Request {
    Query(QueryFluentBuilder),
    Scan(ScanFluentBuilder),
}

#[derive(Debug)]
enum NextPage {
    /// The first page; it starts after this key, if there is one.
    First(Option<Item>),
    After(Item),
    None,
}

impl Items {
    pub(crate) fn of_query(request: QueryFluentBuilder, after: Option<Item>) -> Self {
        Self { request: Request::Query(request), next: NextPage::First(after), read: VecDeque::new() }
    }

    pub(crate) fn of_scan(request: ScanFluentBuilder, after: Option<Item>) -> Self {
        Self { request: Request::Scan(request), next: NextPage::First(after), read: VecDeque::new() }
    }

    /// Returns the next page: one request. A page may be empty though others follow; `None` is the end. After an error, the
    /// same page is requested again.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn page(&mut self) -> Result<Option<Vec<Item>>, TableError> {
        let after = match &self.next {
            NextPage::First(after) => after.clone(),
            NextPage::After(key) => Some(key.clone()),
            NextPage::None => return Ok(None),
        };
        // The futures of the SDK are large: boxed, they do not add to the types of all the futures that await a page.
        let (items, last) = match &self.request {
            Request::Query(query) => {
                let page = Box::pin(query.clone().set_exclusive_start_key(after).send()).await;
                let page = page.map_err(|error| TableError::request("Query", error))?;
                (page.items, page.last_evaluated_key)
            }
            Request::Scan(scan) => {
                let page = Box::pin(scan.clone().set_exclusive_start_key(after).send()).await;
                let page = page.map_err(|error| TableError::request("Scan", error))?;
                (page.items, page.last_evaluated_key)
            }
        };
        self.next = last.filter(|key| !key.is_empty()).map_or(NextPage::None, NextPage::After);
        Ok(Some(items.unwrap_or_default()))
    }

    /// The key after which the next page starts; `None` before the first page and after the last one.
    pub fn position(&self) -> Option<&Item> {
        match &self.next {
            NextPage::After(key) => Some(key),
            NextPage::First(_) | NextPage::None => None,
        }
    }

    /// Returns the next item and keeps it: the next call returns it again. `None` is the end.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn peek(&mut self) -> Result<Option<&Item>, TableError> {
        while self.read.is_empty() {
            match self.page().await? {
                Some(page) => self.read.extend(page),
                None => break,
            }
        }
        Ok(self.read.front())
    }

    /// Returns the next item; `None` is the end.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn next(&mut self) -> Result<Option<Item>, TableError> {
        self.peek().await?;
        Ok(self.read.pop_front())
    }

    /// Returns the first `limit` items, or all of them if there is no limit. It requests no page that it does not need.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn first(mut self, limit: Option<usize>) -> Result<Vec<Item>, TableError> {
        let mut items = Vec::new();
        while limit.is_none_or(|limit| items.len() < limit) {
            match self.next().await? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(items)
    }

    /// Returns all items.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn all(self) -> Result<Vec<Item>, TableError> {
        self.first(None).await
    }
}
