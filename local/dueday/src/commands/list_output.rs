//! The first items of a list, and the errors of items that cannot be read.

use std::ops::ControlFlow;

use billing::AccountId;
use clap::Args;
use serde::Serialize;
use store::{Page, Paging, TableError};

use super::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The option `--limit` of the commands that list items.
#[derive(Clone, Copy, Debug, Args)]
pub struct LimitArgs {
    /// The largest number of items to show
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=u32::MAX))]
    pub limit: u32,
}

/// The first items of a list, and the errors of items that cannot be read.
pub struct ListOutput<T> {
    pub items: Vec<T>,
    /// Whether further items exist that are not in this list.
    has_more: bool,
    unreadable: Vec<TableError>,
}

impl LimitArgs {
    /// Returns the parameters that request the first list page, with at most `limit` items.
    pub fn paging(self) -> Paging {
        Paging { after: None, limit: Some(self.max_items()) }
    }

    /// Returns the largest number of items to show.
    pub fn max_items(self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

impl<T> ListOutput<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self { items: Vec::new(), has_more: false, unreadable: Vec::new() }
    }

    /// Returns whether the list has no items, neither readable nor unreadable.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.unreadable.is_empty()
    }

    /// Adds `item` with [`ListOutput::push`] if `is_searched` accepts the item, or if the item cannot be read.
    pub fn push_if_selected(
        &mut self,
        item: Result<T, TableError>,
        limit: LimitArgs,
        is_searched: impl Fn(&T) -> bool,
    ) -> ControlFlow<()> {
        if item.as_ref().is_ok_and(|item| !is_searched(item)) {
            return ControlFlow::Continue(());
        }
        self.push(item, limit)
    }

    /// Adds `item`. If the list already has `limit` items, adds nothing and stops the caller's loop.
    pub fn push(&mut self, item: Result<T, TableError>, limit: LimitArgs) -> ControlFlow<()> {
        if self.items.len() == limit.max_items() {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        match item {
            Ok(item) => self.items.push(item),
            Err(error) => self.unreadable.push(error),
        }
        ControlFlow::Continue(())
    }

    /// Prints the list as JSON, or as a table with a `row` per item below `columns`. Prints the errors on standard
    /// error.
    pub fn print<V: From<T> + Serialize>(
        self,
        context: &CommandContext,
        noun: &str,
        columns: &[TableColumn],
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<Exit, Failure> {
        let text = self.text(noun, columns, row);
        context.print(&self.items.into_iter().map(V::from).collect::<Vec<_>>(), || text)?;
        for error in &self.unreadable {
            output::print_message(format!("unreadable: {error}"));
        }
        Ok(Exit::done_if(self.unreadable.is_empty()))
    }

    /// Returns the table of the items, and the number of items with their singular noun `noun`.
    fn text(&self, noun: &str, columns: &[TableColumn], row: impl Fn(&T) -> Vec<String>) -> String {
        let rows =
            if self.items.is_empty() { String::new() } else { format_table(columns, self.items.iter().map(row)) };
        rows + &shown_count_text(self.items.len(), noun, self.has_more)
    }
}

impl<T> From<Page<T>> for ListOutput<T> {
    fn from(page: Page<T>) -> Self {
        Self { items: page.items, has_more: page.next.is_some(), unreadable: page.unreadable }
    }
}

/// Returns the line below a list of `shown` items with their singular noun `noun`. `has_more` is whether further items
/// exist.
pub fn shown_count_text(shown: usize, noun: &str, has_more: bool) -> String {
    let count = format_count(u64::try_from(shown).unwrap_or(u64::MAX), noun);
    if has_more { format!("the first {count}; --limit shows more\n") } else { count + "\n" }
}

/// Begins to show the number of items that a search has read. If `is_search` is false, the command reads only the first
/// items of the list, and nothing is shown.
pub fn start_search_progress(is_search: bool, noun: &'static str) -> ProgressDisplay {
    if !is_search {
        return ProgressDisplay::hidden();
    }
    output::print_message(format!("Reading all {noun} of the table: no index contains this property."));
    ProgressDisplay::of_read_items(noun)
}

/// Returns the error for an account that does not exist.
pub fn account_not_found(account: &AccountId) -> Failure {
    Failure::Refused(format!("there is no account {account}"))
}
