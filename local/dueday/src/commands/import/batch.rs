//! Many rows in one transaction: a table that is written durably is as fast as its transactions are many, and most rows of
//! an import are new.
//!
//! As long as they are, nothing is read before: a customer that the transaction creates, or an earlier one of this import has
//! created, has no other subscriptions than this import's, whose identifiers are on record. A batch that is refused is looked up, and
//! what is new of it created; where that is refused too, it is put row by row.

use std::collections::HashMap;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use billing::{Account, AccountId, SubscriptionId};
use futures::{StreamExt as _, stream};
use store::CreateMany;

use super::importer::{Importer, Numbered, Outcome, compared};
use super::row::Row;
use super::rows::ReadRow;
use crate::Failure;

/// Rows of one transaction: each writes a subscription, its identifier's record and perhaps its account, and a transaction
/// holds a hundred writes.
pub const ROWS_AT_ONCE: usize = 32;

/// A batch of so many rows ends where a customer ends: rows of one that is being created by another batch would be refused.
const FULL: usize = 24;

/// So many customers that were created are remembered: a customer's rows mostly stand together.
const CREATED_REMEMBERED: usize = 10_000;

/// What a row is found to be before it is written.
enum Found {
    Done(Numbered),
    /// To be put, with its account if that is not there.
    New {
        line: u64,
        row: Box<Row>,
        id: SubscriptionId,
        account: Option<Account>,
    },
}

/// Rows that are put together.
pub(super) fn batches(
    rows: impl Iterator<Item = io::Result<ReadRow>>,
) -> impl Iterator<Item = Vec<io::Result<ReadRow>>> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        let mut batch = vec![rows.next()?];
        while batch.len() < ROWS_AT_ONCE {
            let follows = batch.last().and_then(account) == rows.peek().and_then(account);
            if batch.len() >= FULL && !follows {
                break;
            }
            let Some(row) = rows.next() else { break };
            batch.push(row);
        }
        Some(batch)
    })
}

fn account(row: &io::Result<ReadRow>) -> Option<&AccountId> {
    let (_, row) = row.as_ref().ok()?.as_ref().ok()?;
    Some(&row.account)
}

/// Whether a row is new, and its account with it: what can be guessed wrong.
fn novelty(found: &Result<Found, Failure>) -> Option<bool> {
    match found {
        Ok(Found::New { account, .. }) => Some(account.is_some()),
        _ => None,
    }
}

impl Importer<'_> {
    /// Imports `rows`: what became of each, in their order.
    pub(super) async fn batch(&self, rows: Vec<io::Result<ReadRow>>) -> Vec<Result<Numbered, Failure>> {
        self.at_its_rate(rows.len()).await;
        if self.is_dry_run {
            return stream::iter(rows).map(|row| self.row(row)).buffered(ROWS_AT_ONCE).collect().await;
        }
        let mut found: Vec<Result<Found, Failure>> = rows.into_iter().map(|row| self.guess(row)).collect();
        let mut created = if self.are_new.load(Ordering::Relaxed) { self.create(&found).await } else { None };
        if created.is_none() {
            let guessed: Vec<Option<bool>> = found.iter().map(novelty).collect();
            found = stream::iter(found).map(|found| self.look_up(found)).buffered(ROWS_AT_ONCE).collect().await;
            created = self.create(&found).await;
            // The next batches are most likely as this one.
            self.are_new.store(found.iter().map(novelty).eq(guessed), Ordering::Relaxed);
        }
        let mut done = Vec::with_capacity(found.len());
        for (place, found) in found.into_iter().enumerate() {
            done.push(match found {
                Err(failure) => Err(failure),
                Ok(Found::Done(numbered)) => Ok(numbered),
                Ok(Found::New { line, row, id, .. }) => match created.as_ref().and_then(|all| all.get(&place)) {
                    Some(subscription) => Ok((line, Outcome::Created(Box::new(subscription.clone())))),
                    // One of them was there by now, or cannot begin: each says so itself.
                    None => self.put_alone(line, &row, id).await,
                },
            });
        }
        done
    }

    /// Takes a row for new, and its account too unless this import has created it.
    fn guess(&self, row: io::Result<ReadRow>) -> Result<Found, Failure> {
        let (line, row) = match row? {
            Ok(row) => row,
            Err(wrong) => return Ok(Found::Done(Self::rejected(wrong))),
        };
        let id = row.external_id.subscription_of(&row.account);
        let is_created = self.created.lock().unwrap_or_else(PoisonError::into_inner).contains(&row.account);
        let account = (!is_created).then(|| row.new_account(self.context.clock.now()));
        Ok(Found::New { line, row: Box::new(row), id, account })
    }

    /// Looks up whether a row is there already.
    async fn look_up(&self, found: Result<Found, Failure>) -> Result<Found, Failure> {
        let (line, row, id) = match found? {
            Found::New { line, row, id, .. } => (line, row, id),
            done => return Ok(done),
        };
        let account = match self.opened.table.get_account(&row.account).await {
            Ok(None) => Some(row.new_account(self.context.clock.now())),
            Ok(Some(_)) => match self.opened.table.get_subscription(&row.account, id).await {
                Ok(Some(stored)) => {
                    return Ok(Found::Done((line, compared(line, &stored, &Row::clone(&row).subscription(id)))));
                }
                Ok(None) => None,
                // Putting it alone tries again, and tells what is wrong with it.
                Err(_) => return Ok(Found::Done(self.put_alone(line, &row, id).await?)),
            },
            Err(_) => return Ok(Found::Done(self.put_alone(line, &row, id).await?)),
        };
        Ok(Found::New { line, row, id, account })
    }

    /// Puts all that are new, in one transaction; `None` if it was refused or its outcome is not known.
    async fn create(&self, found: &[Result<Found, Failure>]) -> Option<HashMap<usize, billing::Subscription>> {
        let now = self.context.clock.now();
        let (mut all, mut accounts) = (HashMap::new(), HashMap::<AccountId, Option<Account>>::new());
        let mut many = CreateMany::default();
        for (place, found) in found.iter().enumerate() {
            let Ok(Found::New { row, id, account, .. }) = found else { continue };
            // One that cannot begin is put alone, which says why; it keeps no other waiting.
            let Ok(subscription) = self.begun(row, *id, now) else { continue };
            accounts.entry(row.account.clone()).or_insert_with(|| account.clone());
            many.subscriptions.push((subscription.clone(), self.once(&row.account, *id, now)));
            all.insert(place, subscription);
        }
        many.accounts = accounts.into_iter().collect();
        if all.is_empty() {
            return Some(all);
        }
        // What is wrong with it, each row that is put alone tells.
        if !self.opened.table.create_many(&many).await.unwrap_or(false) {
            return None;
        }
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        if created.len() >= CREATED_REMEMBERED {
            created.clear();
        }
        created.extend(many.accounts.into_iter().filter_map(|(id, new)| new.map(|_| id)));
        Some(all)
    }
}
