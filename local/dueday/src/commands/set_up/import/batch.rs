//! Imports many rows in one transaction, because the number of transactions limits the speed of an import.
//!
//! The importer assumes that all accounts of a batch are new, and writes them without reading the table, as long as this
//! assumption was right for the last batch. This is safe: the transaction fails if an account exists. Then the importer
//! reads the accounts of the batch with their subscriptions, and creates only the missing subscriptions in a second
//! transaction. If the second transaction also fails, the importer creates the subscriptions one by one. Accounts that
//! this import has created are always read.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use billing::{AccountId, AccountRecords, SubscriptionId};
use futures::{StreamExt as _, stream};
use store::{AccountOfNewSubscriptions as AccountOfRows, AccountState, NewSubscriptions};
use tokio::sync::MutexGuard;

use super::importer::{Importer, MAX_BATCH_ROWS};
use super::outcome::{LineOutcome, RowImportOutcome, compare_with_stored};
use super::row::ImportRow;
use super::rows::ReadRow;
use crate::Failure;
use crate::commands::hash::compute_hash;

/// If a batch has at least this many rows, it ends before the first row of another account. Rows of one account in two
/// concurrent batches would conflict, because both batches would create the account.
const MIN_ROWS_TO_SPLIT: usize = 18;

/// The largest number of created accounts that the importer remembers. This is enough because the rows of an account
/// are usually next to each other.
const MAX_REMEMBERED_ACCOUNTS: usize = 10_000;

/// A row of a batch.
enum BatchRow {
    /// The row is invalid, so its outcome is already known.
    Invalid(LineOutcome),
    /// The row can be read.
    Valid { line: u64, row: Box<ImportRow>, id: SubscriptionId },
}

/// An account that was read before the transaction.
enum ReadAccount {
    Stored(AccountState),
    Missing,
    /// An item of the account cannot be read.
    Unreadable,
}

/// The accounts of a batch that were read.
type ReadAccounts = HashMap<AccountId, ReadAccount>;

/// Splits `rows` into batches of at most [`MAX_BATCH_ROWS`] rows, where possible between two accounts.
pub(super) fn split_into_batches(
    rows: impl Iterator<Item = io::Result<ReadRow>>,
) -> impl Iterator<Item = Vec<io::Result<ReadRow>>> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        let mut batch = vec![rows.next()?];
        while batch.len() < MAX_BATCH_ROWS {
            let is_same_account = batch.last().and_then(account_of_row) == rows.peek().and_then(account_of_row);
            if batch.len() >= MIN_ROWS_TO_SPLIT && !is_same_account {
                break;
            }
            let Some(row) = rows.next() else { break };
            batch.push(row);
        }
        Some(batch)
    })
}

/// Returns the account of a row; `None` if the row is invalid or could not be read.
fn account_of_row(row: &io::Result<ReadRow>) -> Option<&AccountId> {
    let (_, row) = row.as_ref().ok()?.as_ref().ok()?;
    Some(&row.account)
}

impl Importer<'_> {
    /// Imports `rows`. Returns the outcome of each row in the same order, up to the first failure: after a failure,
    /// such as a full disk, the import ends, so the other rows are not tried.
    pub(super) async fn import_batch(&self, rows: Vec<io::Result<ReadRow>>) -> Vec<Result<LineOutcome, Failure>> {
        self.wait_for_rate_limit(rows.len()).await;
        if self.is_dry_run {
            return stream::iter(rows).map(|row| self.import_row(row)).buffered(MAX_BATCH_ROWS).collect().await;
        }
        let rows: Vec<Result<BatchRow, Failure>> = rows.into_iter().map(read_batch_row).collect();
        let accounts: BTreeSet<AccountId> = rows.iter().filter_map(account_of_batch_row).cloned().collect();
        let _locks = self.lock_accounts(&accounts).await;
        let expects_new = self.expects_new_rows.load(Ordering::Relaxed);
        let must_read = |account: &&AccountId| !expects_new || self.has_created_account(account);
        let mut read = self.read_accounts(accounts.iter().filter(must_read)).await;
        let mut outcomes = self.create_batch(&rows, &read).await;
        if outcomes.is_none() && expects_new {
            read = self.read_accounts(accounts.iter()).await;
            outcomes = self.create_batch(&rows, &read).await;
        }
        if read.len() == accounts.len() {
            // If the assumption was right for this batch, it is probably right for the next batches.
            let is_new = |(account, read): (&AccountId, &ReadAccount)| {
                matches!(read, ReadAccount::Missing) || self.has_created_account(account)
            };
            self.expects_new_rows.store(read.iter().all(is_new), Ordering::Relaxed);
        }
        let mut outcomes = outcomes.unwrap_or_default();
        let mut done = Vec::with_capacity(rows.len());
        for (index, row) in rows.into_iter().enumerate() {
            done.push(match row {
                Err(failure) => Err(failure),
                Ok(BatchRow::Invalid(outcome)) => Ok(outcome),
                Ok(BatchRow::Valid { line, row, id }) => match outcomes.remove(&index) {
                    Some(outcome) => Ok((line, outcome)),
                    // The transactions failed, or the account cannot be read. Creating the row alone returns the reason.
                    None => self.create_row(line, &row, id).await,
                },
            });
            if done.last().is_some_and(Result::is_err) {
                break;
            }
        }
        done
    }

    /// Locks `accounts` for this batch. Two batches with rows of one account would conflict, because both count their
    /// subscriptions in the account.
    async fn lock_accounts(&self, accounts: &BTreeSet<AccountId>) -> Vec<MutexGuard<'_, ()>> {
        let lock_of =
            |account| usize::try_from(compute_hash(account) % self.account_locks.len() as u64).unwrap_or_default();
        // Lock in one order, so that two batches never wait for each other.
        let locks: BTreeSet<usize> = accounts.iter().map(lock_of).collect();
        let mut guards = Vec::with_capacity(locks.len());
        for lock in locks {
            guards.push(self.account_locks[lock].lock().await);
        }
        guards
    }

    /// Returns whether this import has created `account`.
    fn has_created_account(&self, account: &AccountId) -> bool {
        self.created_accounts.lock().unwrap_or_else(PoisonError::into_inner).contains(account)
    }

    /// Reads `accounts` with their subscriptions from the table.
    async fn read_accounts(&self, accounts: impl Iterator<Item = &AccountId>) -> ReadAccounts {
        let read = async |account: &AccountId| {
            let read = match self.open_table.table.get_account_state(account).await {
                Ok(state) if state.exists => ReadAccount::Stored(state),
                Ok(_) => ReadAccount::Missing,
                Err(_) => ReadAccount::Unreadable,
            };
            (account.clone(), read)
        };
        stream::iter(accounts).map(read).buffered(MAX_BATCH_ROWS).collect().await
    }

    /// Creates the subscriptions of all new rows in one transaction. An account that is not in `read` is assumed to be
    /// new. Returns the outcomes of the rows by their index; a row without an outcome must be created alone. Returns
    /// `None` if the transaction failed or its outcome is unknown.
    async fn create_batch(
        &self,
        rows: &[Result<BatchRow, Failure>],
        read: &ReadAccounts,
    ) -> Option<HashMap<usize, RowImportOutcome>> {
        let now = self.context.clock.now();
        let (mut outcomes, mut many) = (HashMap::new(), NewSubscriptions::default());
        let mut records = HashMap::<&AccountId, AccountRecords>::new();
        for (index, row) in rows.iter().enumerate() {
            let Ok(BatchRow::Valid { line, row, id }) = row else { continue };
            let (account, is_first) = (&row.account, !records.contains_key(&row.account));
            let (stored, account_of_row) = match read.get(account) {
                Some(ReadAccount::Unreadable) => continue,
                Some(ReadAccount::Stored(state)) => {
                    (state.records.clone(), AccountOfRows::Existing(account.clone(), state.clone()))
                }
                Some(ReadAccount::Missing) | None => {
                    (AccountRecords::default(), AccountOfRows::New(row.new_account(now)))
                }
            };
            let records = records.entry(account).or_insert(stored);
            if let Some(stored) = records.subscriptions.iter().find(|stored| stored.id == *id) {
                outcomes.insert(index, compare_with_stored(*line, stored, row));
                continue;
            }
            match self.new_subscription(*line, row, *id, records, now) {
                Ok(subscription) => {
                    if is_first || !many.accounts.iter().any(|known| known.id() == account) {
                        many.accounts.push(account_of_row);
                    }
                    records.subscriptions.push(subscription.clone());
                    many.subscriptions.push((subscription.clone(), self.idempotency_record(account, *id, now)));
                    let (subscription, allow_second) = (Box::new(subscription), row.allow_second);
                    outcomes.insert(index, RowImportOutcome::Created { subscription, allow_second });
                }
                Err(rejections) if read.contains_key(account) => {
                    outcomes.insert(index, RowImportOutcome::Rejected(rejections));
                }
                // The account was not read, so the subscription may exist already, and need not be created.
                Err(_) => {}
            }
        }
        if many.subscriptions.is_empty() {
            return Some(outcomes);
        }
        // The error of the transaction is dropped, because each row is then created alone, which returns the error of
        // this row.
        if !self.open_table.table.create_subscriptions(&many).await.unwrap_or(false) {
            return None;
        }
        let mut created = self.created_accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if created.len() >= MAX_REMEMBERED_ACCOUNTS {
            created.clear();
        }
        created.extend(many.accounts.into_iter().filter_map(|account| match account {
            AccountOfRows::New(account) => Some(account.id),
            AccountOfRows::Existing(..) => None,
        }));
        Some(outcomes)
    }
}

/// Returns the row of a batch that was read from the file.
fn read_batch_row(row: io::Result<ReadRow>) -> Result<BatchRow, Failure> {
    Ok(match row? {
        Ok((line, row)) => {
            let id = row.id;
            BatchRow::Valid { line, row: Box::new(row), id }
        }
        Err(rejections) => BatchRow::Invalid(Importer::outcome_of_rejected_row(rejections)),
    })
}

/// Returns the account of a row of a batch; `None` if the row is invalid.
fn account_of_batch_row(row: &Result<BatchRow, Failure>) -> Option<&AccountId> {
    match row {
        Ok(BatchRow::Valid { row, .. }) => Some(&row.account),
        Ok(BatchRow::Invalid(_)) | Err(_) => None,
    }
}
