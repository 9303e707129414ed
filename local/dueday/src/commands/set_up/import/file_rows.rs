//! Compares the rows of one file with each other. Only hashes and line numbers of the earlier rows are in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use billing::{Subscription, SubscriptionId};

use super::column::ImportColumn;
use super::outcome::{RowImportOutcome, values_from_file};
use super::rejects::Rejected;
use super::rows::ReadRow;
use crate::commands::hash::compute_hash;

/// The first row of each account: the hashes of its e-mail address, name and language, and its line number.
#[derive(Default)]
pub struct AccountsOfFile(HashMap<u64, ([u64; 3], u64)>);

impl AccountsOfFile {
    /// Rejects `row` if an earlier row of its account has another e-mail address, name or language: the account could
    /// have only one of them, and the others would be lost.
    pub fn check_row(&mut self, row: ReadRow) -> ReadRow {
        let (line, row) = row?;
        let hashes = [compute_hash(&row.email), compute_hash(&row.name), compute_hash(&row.locale.as_str())];
        let (first, first_line) = *self.0.entry(compute_hash(&row.account)).or_insert((hashes, line));
        if first == hashes {
            return Ok((line, row));
        }
        let cells = [
            (ImportColumn::Email, row.email.as_str()),
            (ImportColumn::Name, row.name.as_str()),
            (ImportColumn::Locale, row.locale.as_str()),
        ];
        let is_different = first.iter().zip(&hashes).map(|(first, this)| first != this);
        let different = cells.into_iter().zip(is_different).filter(|(_, is_different)| *is_different);
        let reason = format!("differs from line {first_line}: all rows of an account must have the same value");
        let rejected = different.map(|((column, text), _)| Rejected::cell(line, column, text, reason.clone()));
        Err(rejected.collect())
    }
}

/// In a dry run, the rows that the import would create. The table does not contain them, because a dry run writes
/// nothing.
#[derive(Default)]
pub struct RowsOfDryRun {
    /// For each subscription id, the hash of the values of its first row, and the line number.
    by_id: HashMap<SubscriptionId, (u64, u64)>,
    /// For each account and SKU, the line number of the first row.
    by_sku: HashMap<u64, u64>,
}

impl RowsOfDryRun {
    /// Compares `outcome`, the outcome of the row on `line`, with the earlier rows. A subscription that an earlier row
    /// would create is not created again, and is the first subscription of its SKU.
    pub fn compare_row(&mut self, outcome: RowImportOutcome, line: u64) -> RowImportOutcome {
        let RowImportOutcome::Created { subscription, allow_second } = &outcome else { return outcome };
        let values = compute_hash(&values_from_file(subscription));
        match self.by_id.entry(subscription.id) {
            Entry::Vacant(vacant) => drop(vacant.insert((values, line))),
            Entry::Occupied(earlier) if earlier.get().0 == values => return RowImportOutcome::AlreadyThere,
            Entry::Occupied(earlier) => {
                let reason =
                    format!("line {} has the same id with other values; only the first line counts", earlier.get().1);
                let rejected = Rejected { field: Some(ImportColumn::ExternalId), ..Rejected::row(line, reason) };
                return RowImportOutcome::Differs(vec![rejected]);
            }
        }
        let Subscription { account, sku, .. } = subscription.as_ref();
        let first = *self.by_sku.entry(compute_hash(&(account, sku))).or_insert(line);
        if first == line || *allow_second {
            return outcome;
        }
        let reason = format!("line {first} creates a subscription of this SKU for the same account; {ALLOW_SECOND}");
        RowImportOutcome::Rejected(vec![Rejected::cell(line, ImportColumn::Sku, sku.as_str(), reason)])
    }
}

/// How a person imports a second subscription of a SKU.
pub const ALLOW_SECOND: &str = "write true into the column allow_second if the customer really wants two";
