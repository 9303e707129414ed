//! `dueday duplicates`: lists probable duplicates in the table. A dry run of an import uses the same comparison.
//!
//! A spreadsheet may change an id, for example `0004712` to `4712`. The import then takes the row for a new
//! subscription, and the customer is charged twice.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::ControlFlow;

use billing::{AccountId, Subscription, SubscriptionStatus};
use clap::Args;
use icu_normalizer::ComposingNormalizerBorrowed;
use serde::Serialize;
use store::Table;

use crate::commands::hash::compute_hash;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};

/// The largest number of groups that are printed as text. The JSON output contains all groups.
const MAX_GROUPS_SHOWN: usize = 50;

/// The arguments of `dueday duplicates`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads all subscriptions of the table. Two ids are probably the same if they differ only in case, in leading zeros, or in \
the Unicode form of their letters: 0004712 and 4712, SUB-7 and sub-7. Compares the ids of accounts, and the external ids \
of an account's subscriptions. Cancelled subscriptions are not compared.

The command exits with 1 if it finds probable duplicates, or if a subscription cannot be read. Ask the customer, and \
cancel the subscription that is not wanted.

Examples:
  dueday duplicates
  dueday duplicates --json --table TABLE")]
pub struct DuplicatesArgs {}

/// An account, or a subscription that was imported with an external id. `line` is its line in an imported file; `None`
/// if it is stored in the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct ComparedId {
    pub account: AccountId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl fmt::Display for ComparedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.account)?;
        self.external_id.iter().try_for_each(|id| write!(f, " {id:?}"))?;
        self.line.iter().try_for_each(|line| write!(f, " (line {line})"))
    }
}

/// Ids that probably mean the same account or subscription.
pub type DuplicateGroup = Vec<ComparedId>;

/// Finds ids that differ only in case, leading zeros or Unicode form. All compared ids are in memory, with about a
/// hundred bytes each.
#[derive(Debug, Default)]
pub struct DuplicateSearch {
    /// The first id of each hash of folded ids.
    first: HashMap<u64, CompactId>,
    /// The groups of at least two ids, by the hash of their folded ids.
    groups: BTreeMap<u64, BTreeSet<ComparedId>>,
}

/// The account and the external id of a [`ComparedId`], separated by a line break, and its line; line 0 means `None`.
#[derive(Debug)]
struct CompactId {
    text: Box<str>,
    line: u32,
}

impl DuplicateSearch {
    /// Adds the ids of `subscription`, unless it is cancelled. `line` is its line in an imported file; `None` if it is
    /// stored in the table.
    pub fn add_subscription(&mut self, subscription: &Subscription, line: Option<u64>) {
        if subscription.status == SubscriptionStatus::Cancelled {
            return;
        }
        let account = &subscription.account;
        let folded_account = fold_id(account.as_str());
        self.add_id(&folded_account, ComparedId { account: account.clone(), external_id: None, line });
        if let Some(id) = &subscription.external_id {
            let folded = format!("{folded_account}\n{}", fold_id(id.as_str()));
            let external_id = Some(id.as_str().to_owned());
            self.add_id(&folded, ComparedId { account: account.clone(), external_id, line });
        }
    }

    /// Adds `id`, whose folded form is `folded`.
    fn add_id(&mut self, folded: &str, id: ComparedId) {
        let hash = compute_hash(&folded);
        match self.first.entry(hash) {
            Entry::Vacant(vacant) => drop(vacant.insert(CompactId::from(&id))),
            Entry::Occupied(first) if *first.get().text == *compact_text(&id) => {}
            Entry::Occupied(first) => {
                let group = self.groups.entry(hash).or_default();
                group.extend(first.get().to_compared_id());
                if !group.iter().any(|known| compact_text(known) == compact_text(&id)) {
                    group.insert(id);
                }
            }
        }
    }

    /// Returns the groups of at least two ids that are probably the same.
    pub fn find_duplicate_groups(&self) -> Vec<DuplicateGroup> {
        let mut groups: Vec<DuplicateGroup> = self.groups.values().map(|ids| ids.iter().cloned().collect()).collect();
        groups.sort();
        groups
    }

    /// Adds all subscriptions of `table`. Returns whether all of them were compared; prints how many cannot be read.
    /// Shows the progress.
    ///
    /// # Errors
    /// If a request to the table fails.
    pub async fn add_subscriptions_of_table(&mut self, table: &Table) -> Result<bool, Failure> {
        let progress = ProgressDisplay::of_read_items("subscriptions");
        let mut unreadable = 0_u64;
        let each = |subscription: Result<Subscription, _>| {
            progress.inc(1);
            match subscription {
                Ok(subscription) => self.add_subscription(&subscription, None),
                Err(_) => unreadable = unreadable.saturating_add(1),
            }
            ControlFlow::Continue(())
        };
        table.scan_subscriptions(each).await?;
        drop(progress);
        if unreadable > 0 {
            let count = format_count(unreadable, "subscription");
            output::print_message(format!("{count} cannot be read and was not compared: run `dueday audit`"));
        }
        Ok(unreadable == 0)
    }
}

impl CompactId {
    /// Returns the compared id.
    fn to_compared_id(&self) -> Option<ComparedId> {
        let (account, external_id) = match self.text.split_once('\n') {
            Some((account, id)) => (account, Some(id.to_owned())),
            None => (&*self.text, None),
        };
        let line = Some(u64::from(self.line)).filter(|line| *line > 0);
        Some(ComparedId { account: account.parse().ok()?, external_id, line })
    }
}

impl From<&ComparedId> for CompactId {
    fn from(id: &ComparedId) -> Self {
        let line = id.line.map_or(0, |line| u32::try_from(line).unwrap_or(u32::MAX));
        Self { text: compact_text(id).into(), line }
    }
}

/// Returns the text that [`CompactId`] stores for `id`: the account id and, if there is an external id, a line break and
/// the external id.
fn compact_text(id: &ComparedId) -> String {
    match &id.external_id {
        Some(external_id) => format!("{}\n{external_id}", id.account),
        None => id.account.to_string(),
    }
}

/// Returns `id` in a form that is equal for ids that differ only in case, in leading zeros of a number, or in the
/// Unicode form of the letters.
fn fold_id(id: &str) -> String {
    let mut folded = String::with_capacity(id.len());
    let normalized = ComposingNormalizerBorrowed::new_nfkc().normalize(id).to_lowercase();
    let mut chars = normalized.chars().peekable();
    while let Some(c) = chars.next() {
        let is_after_digit = folded.ends_with(|last: char| last.is_ascii_digit());
        let is_before_digit = chars.peek().is_some_and(char::is_ascii_digit);
        if c != '0' || is_after_digit || !is_before_digit {
            folded.push(c);
        }
    }
    folded
}

/// Formats `groups`, one line each.
pub fn duplicate_groups_text(groups: &[DuplicateGroup]) -> String {
    let line = |group: &DuplicateGroup| {
        format!("  {}\n", group.iter().map(ToString::to_string).collect::<Vec<_>>().join("   "))
    };
    let count = format_count(u64::try_from(groups.len()).unwrap_or(u64::MAX), "group");
    let shown: String = groups.iter().take(MAX_GROUPS_SHOWN).map(line).collect();
    let more = if groups.len() > MAX_GROUPS_SHOWN { "  ... (--json shows all)\n" } else { "" };
    format!("{count} of ids that are probably the same:\n{shown}{more}")
}

/// Runs `dueday duplicates`.
pub async fn run_duplicates_command(context: &CommandContext, _: &DuplicatesArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let mut search = DuplicateSearch::default();
    let is_complete = search.add_subscriptions_of_table(&open_table.table).await?;
    let groups = search.find_duplicate_groups();
    let text = || match groups.is_empty() {
        true if is_complete => "No ids are probably the same.\n".to_owned(),
        true => "No ids that can be read are probably the same.\n".to_owned(),
        false => duplicate_groups_text(&groups),
    };
    context.print(&groups, text)?;
    Ok(Exit::done_if(is_complete && groups.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_a_spreadsheet_may_have_changed_are_the_same() {
        for (one, other) in [
            ("0004712", "4712"),
            ("SUB-7", "sub-7"),
            ("sub-007", "SUB-7"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("0", "000"),
            ("\u{ff21}1", "a1"),
        ] {
            assert_eq!(fold_id(one), fold_id(other), "{one} {other}");
        }
        for (one, other) in [("10", "1"), ("100", "10"), ("sub-7", "sub-70"), ("0", ""), ("a", "b"), ("1001", "11")] {
            assert_ne!(fold_id(one), fold_id(other), "{one} {other}");
        }
    }
}
