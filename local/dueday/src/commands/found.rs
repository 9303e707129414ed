//! The first items of a list, and what cannot be read among them.

use std::ops::ControlFlow;

use billing::AccountId;
use clap::Args;
use serde::Serialize;
use store::{Page, Paging, TableError};

use super::values::number;
use crate::context::Context;
use crate::terminal::output::{self, count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

/// How much is shown.
#[derive(Clone, Copy, Debug, Args)]
pub struct LimitArgs {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = |text: &str| number(text, 1..=u32::MAX))]
    pub limit: u32,
}

/// The first items of a list, and what cannot be read among them.
pub struct Found<T> {
    pub items: Vec<T>,
    has_more: bool,
    unreadable: Vec<TableError>,
}

impl LimitArgs {
    /// The first page of a list.
    pub fn paging(self) -> Paging {
        Paging { after: None, limit: Some(self.items()) }
    }

    fn items(self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

impl<T> Found<T> {
    pub fn none() -> Self {
        Self { items: Vec::new(), has_more: false, unreadable: Vec::new() }
    }

    /// Whether there is nothing at all, readable or not.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.unreadable.is_empty()
    }

    /// Takes one more, up to `limit`.
    pub fn take(&mut self, item: Result<T, TableError>, limit: LimitArgs) -> ControlFlow<()> {
        if self.items.len() == limit.items() {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        match item {
            Ok(item) => self.items.push(item),
            Err(error) => self.unreadable.push(error),
        }
        ControlFlow::Continue(())
    }

    /// Shows it as JSON, or as a table of `row`s under `columns`.
    pub fn show<V: From<T> + Serialize>(
        self,
        context: &Context,
        noun: &str,
        columns: &[Column],
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<Exit, Failure> {
        let text = self.text(noun, columns, row);
        context.print(&self.items.into_iter().map(V::from).collect::<Vec<_>>(), || text)?;
        for error in &self.unreadable {
            output::tell(format!("unreadable: {error}"));
        }
        Ok(Exit::of(self.unreadable.is_empty()))
    }

    fn text(&self, noun: &str, columns: &[Column], row: impl Fn(&T) -> Vec<String>) -> String {
        let rows = if self.items.is_empty() { String::new() } else { table(columns, self.items.iter().map(row)) };
        let count = count(u64::try_from(self.items.len()).unwrap_or(u64::MAX), noun);
        rows + &if self.has_more { format!("the first {count}; --limit shows more\n") } else { count + "\n" }
    }
}

impl<T> From<Page<T>> for Found<T> {
    fn from(page: Page<T>) -> Self {
        Self { items: page.items, has_more: page.next.is_some(), unreadable: page.unreadable }
    }
}

/// That there is no such account.
pub fn no_account(account: &AccountId) -> Failure {
    Failure::Refused(format!("there is no account {account}"))
}
