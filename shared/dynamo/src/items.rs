//! The items that a Scan or a Query returns, read page by page.

use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;

use crate::{Item, TableError};

/// The items that a Scan or a Query returns, in order. At most one page is in memory.
#[derive(Debug)]
pub struct Items {
    request: ItemsRequest,
    next: NextPage,
    /// Items of the page that was read last, which the caller has not taken yet.
    buffered: VecDeque<Item>,
}

/// The request that returns one page of the items.
#[derive(Debug)]
enum ItemsRequest {
    Query(QueryFluentBuilder),
    Scan(ScanFluentBuilder),
}

/// The page that the next request returns.
#[derive(Debug)]
enum NextPage {
    /// The first page, which starts after this key; with `None`, it starts at the first item.
    First(Option<Item>),
    /// A later page, which starts after this key.
    After(Item),
    /// There is no next page: the last page was read.
    None,
}

impl Items {
    /// Creates the items that the Query `request` returns, after the key `after`.
    pub(crate) fn from_query(request: QueryFluentBuilder, after: Option<Item>) -> Self {
        Self { request: ItemsRequest::Query(request), next: NextPage::First(after), buffered: VecDeque::new() }
    }

    /// Creates the items that the Scan `request` returns, after the key `after`.
    pub(crate) fn from_scan(request: ScanFluentBuilder, after: Option<Item>) -> Self {
        Self { request: ItemsRequest::Scan(request), next: NextPage::First(after), buffered: VecDeque::new() }
    }

    /// Requests and returns the next page of items; `None` after the last page. A page may be empty even if it is not
    /// the last page. After an error, the next call requests the same page again.
    pub async fn read_page(&mut self) -> Result<Option<Vec<Item>>, TableError> {
        let after = match &self.next {
            NextPage::First(after) => after.clone(),
            NextPage::After(key) => Some(key.clone()),
            NextPage::None => return Ok(None),
        };
        // The SDK's futures need much memory. They are boxed so that the futures of all callers stay small.
        let (items, last) = match &self.request {
            ItemsRequest::Query(query) => {
                let page = Box::pin(query.clone().set_exclusive_start_key(after).send()).await;
                let page = page.map_err(|error| TableError::from_sdk_error("Query", error))?;
                (page.items, page.last_evaluated_key)
            }
            ItemsRequest::Scan(scan) => {
                let page = Box::pin(scan.clone().set_exclusive_start_key(after).send()).await;
                let page = page.map_err(|error| TableError::from_sdk_error("Scan", error))?;
                (page.items, page.last_evaluated_key)
            }
        };
        self.next = last.filter(|key| !key.is_empty()).map_or(NextPage::None, NextPage::After);
        Ok(Some(items.unwrap_or_default()))
    }

    /// Returns the key after which the next page starts; `None` before the first page was read and after the last page.
    pub fn last_evaluated_key(&self) -> Option<&Item> {
        match &self.next {
            NextPage::After(key) => Some(key),
            NextPage::First(_) | NextPage::None => None,
        }
    }

    /// Returns the next item, and does not advance: the next call of `peek` or [`Items::next`] returns the same item.
    /// Returns `None` at the end.
    pub async fn peek(&mut self) -> Result<Option<&Item>, TableError> {
        while self.buffered.is_empty() {
            match self.read_page().await? {
                Some(page) => self.buffered.extend(page),
                None => break,
            }
        }
        Ok(self.buffered.front())
    }

    /// Returns the next item; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Item>, TableError> {
        self.peek().await?;
        Ok(self.buffered.pop_front())
    }

    /// Returns the first `limit` items, or all items if `limit` is `None`. Requests only the pages with these items.
    pub async fn read_up_to(mut self, limit: Option<usize>) -> Result<Vec<Item>, TableError> {
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
    pub async fn read_all(self) -> Result<Vec<Item>, TableError> {
        self.read_up_to(None).await
    }
}
