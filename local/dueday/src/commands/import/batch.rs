//! Imports many rows in one transaction, because the number of transactions limits the speed of an import.
//!
//! The importer assumes that all rows of a batch are new, and writes them without reading the table, as long as this
//! assumption was right for the last batch. This is safe. The transaction fails if the account of a row exists, unless
//! this import has created the account. So all subscriptions of the account come from this import, and have idempotency
//! records, which prevent a second creation. If the transaction fails, the importer looks up the rows of the batch in
//! the table, and creates only the new rows in a second transaction. If the second transaction also fails, the importer
//! creates the new rows one by one.

use std::collections::HashMap;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use billing::{Account, AccountId, SubscriptionId};
use futures::{StreamExt as _, stream};
use store::NewSubscriptions;

use super::importer::{Importer, LineOutcome, Outcome, compare_with_stored};
use super::row::Row;
use super::rows::ReadRow;
use crate::Failure;

/// The largest number of rows in one transaction. A row writes up to four items: the subscription, the item by which
/// the subscription's code is looked up, the idempotency record, and the account. DynamoDB allows a hundred items per
/// transaction.
pub const MAX_BATCH_ROWS: usize = 25;

/// If a batch has at least this many rows, it ends before the first row of another account. Rows of one account in two
/// concurrent batches would conflict, because both batches would create the account.
const MIN_ROWS_TO_SPLIT: usize = 18;

/// The largest number of created accounts that the importer remembers. This is enough because the rows of an account
/// are usually next to each other.
const MAX_REMEMBERED_ACCOUNTS: usize = 10_000;

/// The state of a row before the transaction that creates the new rows.
enum RowState {
    /// The row needs no transaction: its outcome is already known.
    Done(LineOutcome),
    /// The subscription must be created, with its account if `account` is set.
    New { line: u64, row: Box<Row>, id: SubscriptionId, account: Option<Account> },
}

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

/// Returns whether the account of a new row must be created, too; `None` if the row is not new. If the row was not
/// looked up in the table, the result is only an assumption.
fn is_new_with_account(found: &Result<RowState, Failure>) -> Option<bool> {
    match found {
        Ok(RowState::New { account, .. }) => Some(account.is_some()),
        _ => None,
    }
}

impl Importer<'_> {
    /// Imports `rows`. Returns the outcome of each row in the same order.
    pub(super) async fn import_batch(&self, rows: Vec<io::Result<ReadRow>>) -> Vec<Result<LineOutcome, Failure>> {
        self.wait_for_rate_limit(rows.len()).await;
        if self.is_dry_run {
            return stream::iter(rows).map(|row| self.import_row(row)).buffered(MAX_BATCH_ROWS).collect().await;
        }
        let mut found: Vec<Result<RowState, Failure>> = rows.into_iter().map(|row| self.mark_row_as_new(row)).collect();
        let mut created =
            if self.expects_new_rows.load(Ordering::Relaxed) { self.create_batch(&found).await } else { None };
        if created.is_none() {
            let assumed: Vec<Option<bool>> = found.iter().map(is_new_with_account).collect();
            found =
                stream::iter(found).map(|assumed| self.look_up_row(assumed)).buffered(MAX_BATCH_ROWS).collect().await;
            created = self.create_batch(&found).await;
            // If the assumptions were right for this batch, they are probably right for the next batches.
            self.expects_new_rows.store(found.iter().map(is_new_with_account).eq(assumed), Ordering::Relaxed);
        }
        let mut done = Vec::with_capacity(found.len());
        for (index, found) in found.into_iter().enumerate() {
            done.push(match found {
                Err(failure) => Err(failure),
                Ok(RowState::Done(outcome)) => Ok(outcome),
                Ok(RowState::New { line, row, id, .. }) => match created.as_ref().and_then(|all| all.get(&index)) {
                    Some(subscription) => Ok((line, Outcome::Created(Box::new(subscription.clone())))),
                    // The transaction failed, or the row cannot be created. Creating the row alone returns the reason.
                    None => self.create_row(line, &row, id).await,
                },
            });
        }
        done
    }

    /// Returns the state of a row that is assumed to be new. Its account is assumed to be new as well, unless this
    /// import has created it.
    fn mark_row_as_new(&self, row: io::Result<ReadRow>) -> Result<RowState, Failure> {
        let (line, row) = match row? {
            Ok(row) => row,
            Err(rejections) => return Ok(RowState::Done(Self::outcome_of_rejected_row(rejections))),
        };
        let id = row.external_id.subscription_id(&row.account);
        let is_created = self.created_accounts.lock().unwrap_or_else(PoisonError::into_inner).contains(&row.account);
        let account = (!is_created).then(|| row.new_account(self.context.clock.now()));
        Ok(RowState::New { line, row: Box::new(row), id, account })
    }

    /// Looks up the account and the subscription of a row in the table, and returns the actual state of the row.
    /// `assumed` is the state that `mark_row_as_new` returned. A state other than `New` is returned unchanged.
    async fn look_up_row(&self, assumed: Result<RowState, Failure>) -> Result<RowState, Failure> {
        let (line, row, id) = match assumed? {
            RowState::New { line, row, id, .. } => (line, row, id),
            done => return Ok(done),
        };
        let account = match self.open_table.table.get_account(&row.account).await {
            Ok(None) => Some(row.new_account(self.context.clock.now())),
            Ok(Some(_)) => match self.open_table.table.get_subscription(&row.account, id).await {
                Ok(Some(stored)) => {
                    return Ok(RowState::Done((
                        line,
                        compare_with_stored(line, &stored, &Row::clone(&row).subscription(id)),
                    )));
                }
                Ok(None) => None,
                // The stored item cannot be read. Creating the row alone repeats the look-up, and returns what is wrong
                // with the item.
                Err(_) => return Ok(RowState::Done(self.create_row(line, &row, id).await?)),
            },
            Err(_) => return Ok(RowState::Done(self.create_row(line, &row, id).await?)),
        };
        Ok(RowState::New { line, row, id, account })
    }

    /// Creates the subscriptions of all new rows in one transaction, and returns them by the index of their row.
    /// Returns `None` if the transaction failed or its outcome is unknown.
    async fn create_batch(&self, found: &[Result<RowState, Failure>]) -> Option<HashMap<usize, billing::Subscription>> {
        let now = self.context.clock.now();
        let (mut all, mut accounts) = (HashMap::new(), HashMap::<AccountId, Option<Account>>::new());
        let mut many = NewSubscriptions::default();
        for (index, found) in found.iter().enumerate() {
            let Ok(RowState::New { row, id, account, .. }) = found else { continue };
            // A row that is refused, such as for a first payment date in the past, is left out, so that the transaction
            // of the other rows succeeds.
            let Ok(subscription) = self.new_subscription(row, *id, now) else { continue };
            accounts.entry(row.account.clone()).or_insert_with(|| account.clone());
            many.subscriptions.push((subscription.clone(), self.idempotency_record(&row.account, *id, now)));
            all.insert(index, subscription);
        }
        many.accounts = accounts.into_iter().collect();
        if all.is_empty() {
            return Some(all);
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
        created.extend(many.accounts.into_iter().filter_map(|(id, new)| new.map(|_| id)));
        Some(all)
    }
}
