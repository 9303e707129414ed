//! Many rows in one transaction: a table that is written durably is as fast as its transactions are many, and most rows of
//! an import are new. A batch that is refused is put row by row.

use std::collections::HashMap;
use std::io;

use futures::{StreamExt as _, stream};
use shared::billing::{Account, AccountId, SubscriptionId};
use shared::table::CreateMany;

use super::importer::{Importer, Numbered, Outcome, compared};
use super::row::Row;
use super::rows::ReadRow;
use crate::Failure;

/// Rows of one transaction: each writes a subscription, its identifier's record and perhaps its account, and a transaction
/// holds a hundred writes.
pub const ROWS_AT_ONCE: usize = 32;

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

impl Importer<'_> {
    /// Imports `rows`: what became of each, in their order.
    pub(super) async fn batch(&self, rows: Vec<io::Result<ReadRow>>) -> Vec<Result<Numbered, Failure>> {
        self.at_its_rate(rows.len()).await;
        if self.is_dry_run {
            return stream::iter(rows).map(|row| self.row(row)).buffered(ROWS_AT_ONCE).collect().await;
        }
        let found: Vec<Result<Found, Failure>> =
            stream::iter(rows).map(|row| self.find(row)).buffered(ROWS_AT_ONCE).collect().await;
        let created = self.create(&found).await;
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

    /// Looks up whether a row is there already.
    async fn find(&self, row: io::Result<ReadRow>) -> Result<Found, Failure> {
        let (line, row) = match row? {
            Ok(row) => row,
            Err(wrong) => return Ok(Found::Done(Self::rejected(wrong))),
        };
        let id = row.external_id.subscription_of(&row.account);
        let account = match self.opened.table.get_account(&row.account).await {
            Ok(None) => Some(row.new_account(self.context.clock.now())),
            Ok(Some(_)) => match self.opened.table.get_subscription(&row.account, id).await {
                Ok(Some(stored)) => {
                    return Ok(Found::Done((line, compared(line, &stored, &row.clone().subscription(id)))));
                }
                Ok(None) => None,
                // Putting it alone tries again, and tells what is wrong with it.
                Err(_) => return Ok(Found::Done(self.put_alone(line, &row, id).await?)),
            },
            Err(_) => return Ok(Found::Done(self.put_alone(line, &row, id).await?)),
        };
        Ok(Found::New { line, row: Box::new(row), id, account })
    }

    /// Puts all that are new, in one transaction; `None` if it was refused or its outcome is not known.
    async fn create(&self, found: &[Result<Found, Failure>]) -> Option<HashMap<usize, shared::billing::Subscription>> {
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
        self.opened.table.create_many(&many).await.unwrap_or(false).then_some(all)
    }
}
