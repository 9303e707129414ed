//! Imports the rows of a file into the table, several rows concurrently.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync;
use std::sync::atomic::AtomicBool;

use backon::{ExponentialBuilder, Retryable as _};
use billing::{AccountId, NewSubscription, Refusal, Subscription, SubscriptionId};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::{StreamExt as _, stream};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use indicatif::{HumanCount, ProgressBar};
use store::{CreateOutcome, IdempotentRequest, StoredResponse, TableError};
use tokio::sync::Mutex;

use super::batch::{MAX_BATCH_ROWS, split_into_batches};
use super::column::Column;
use super::rejects::{Rejected, Rejects};
use super::row::Row;
use super::rows::{ReadRow, Rows};
use super::summary::ImportReport;
use crate::Failure;
use crate::context::Context;
use crate::machine::open_table::OpenTable;

/// The largest number of retries of a row after a transient error of the table.
const MAX_RETRIES: usize = 5;
/// The lifetime of the idempotency records of an import. Two imports that run at the same time must both end within
/// this time.
const IDEMPOTENCY_RECORD_LIFETIME: TimeDelta = TimeDelta::days(7);
/// The number of locks that prevent two concurrent rows from creating the same subscription. Rows whose subscription
/// ids have the same hash use the same lock, so that they are created one after the other.
const IDENTIFIER_LOCKS: usize = 1 << u8::BITS;
/// The smallest burst of the rate limiter, in rows. Even at a low rate, the rate limiter must admit a whole batch at
/// once.
const MIN_BURST: NonZeroU32 = NonZeroU32::new(MAX_BATCH_ROWS as u32).expect("not zero");

/// The outcome of the import of one row.
pub(super) enum Outcome {
    /// The subscription was created, or in a dry run would be created.
    Created(Box<Subscription>),
    /// The subscription exists with the same values.
    AlreadyThere,
    /// The subscription exists with other values.
    Differs(Vec<Rejected>),
    /// The row is invalid. Contains one entry for each invalid cell, or one for the whole row.
    Rejected(Vec<Rejected>),
}

/// The line number of a row in the file, and the outcome of its import.
pub(super) type LineOutcome = (u64, Outcome);

/// Imports rows into one table.
pub struct Importer<'a> {
    pub(super) context: &'a Context,
    pub(super) open_table: OpenTable,
    today: NaiveDate,
    pub(super) is_dry_run: bool,
    /// Limits the rows per second; `None` without a limit.
    rate_limiter: Option<DefaultDirectRateLimiter>,
    identifier_locks: Vec<Mutex<()>>,
    /// Whether the rows of the next batch are assumed to be new, because the assumption was right for the last batch.
    pub(super) expects_new_rows: AtomicBool,
    /// The accounts that this import has created most recently.
    pub(super) created_accounts: sync::Mutex<HashSet<AccountId>>,
}

/// In a dry run, the first row for each subscription id: the hash of the row's values, and its line number.
type SeenRows = HashMap<SubscriptionId, (u64, u64)>;

impl<'a> Importer<'a> {
    /// Creates an importer that imports at most `rate` rows per second; `None` means no limit.
    pub fn new(context: &'a Context, open_table: OpenTable, is_dry_run: bool, rate: Option<NonZeroU32>) -> Self {
        let rate_limiter =
            rate.map(|rate| RateLimiter::direct(Quota::per_second(rate).allow_burst(rate.max(MIN_BURST))));
        let identifier_locks = (0..IDENTIFIER_LOCKS).map(|_| Mutex::default()).collect();
        let (expects_new_rows, created_accounts) = (AtomicBool::new(true), sync::Mutex::default());
        Self {
            context,
            open_table,
            today: context.today(),
            is_dry_run,
            rate_limiter,
            identifier_locks,
            expects_new_rows,
            created_accounts,
        }
    }

    /// Imports all rows. The memory usage does not depend on the size of the file, except in a dry run, which keeps the
    /// subscription ids of all rows.
    ///
    /// # Errors
    /// If the file, the table or the file of rejects can no longer be used.
    pub async fn import(
        &self,
        mut rows: Rows<impl Read>,
        mut rejects: Rejects,
        bar: &ProgressBar,
    ) -> Result<ImportReport, Failure> {
        let mut report = ImportReport { dry_run: self.is_dry_run, ..ImportReport::default() };
        let mut seen = SeenRows::new();
        let read = std::iter::from_fn(|| rows.next_row().transpose());
        let concurrency = self.context.config.limits.concurrency;
        let batches =
            stream::iter(split_into_batches(read)).map(|rows| self.import_batch(rows)).buffered(concurrency.max(1));
        let mut outcomes = pin!(batches.flat_map(stream::iter));
        while let Some(outcome) = outcomes.next().await {
            report.rows += 1;
            let (line, outcome) = outcome?;
            let rejections = match self.compare_with_earlier_rows(outcome, line, &mut seen) {
                Outcome::Created(subscription) => {
                    report.count_created(&subscription);
                    Vec::new()
                }
                Outcome::AlreadyThere => {
                    report.already_there += 1;
                    Vec::new()
                }
                Outcome::Differs(rejections) => {
                    report.differs += 1;
                    rejections
                }
                Outcome::Rejected(rejections) => {
                    report.rejected += 1;
                    rejections
                }
            };
            rejections.into_iter().try_for_each(|rejected| rejects.add(rejected))?;
            bar.set_message(format!("{} rows", HumanCount(report.rows)));
        }
        report.rejects = (!report.is_complete()).then_some(rejects.path);
        Ok(report)
    }

    /// In a dry run, compares a new row with an earlier row of the file that has the same subscription id. The table
    /// does not contain the earlier row, because a dry run writes nothing.
    fn compare_with_earlier_rows(&self, outcome: Outcome, line: u64, seen: &mut SeenRows) -> Outcome {
        let Outcome::Created(subscription) = &outcome else { return outcome };
        if !self.is_dry_run {
            return outcome;
        }
        let hash = hash(&file_values(subscription));
        match seen.entry(subscription.id) {
            Entry::Vacant(vacant) => {
                vacant.insert((hash, line));
                outcome
            }
            Entry::Occupied(earlier) if earlier.get().0 == hash => Outcome::AlreadyThere,
            Entry::Occupied(earlier) => {
                let reason =
                    format!("line {} has the same id with other values; only the first line counts", earlier.get().1);
                Outcome::Differs(vec![Rejected { field: Some(Column::ExternalId), ..Rejected::row(line, reason) }])
            }
        }
    }

    /// Imports one row without the other rows of its batch.
    pub(super) async fn import_row(&self, row: io::Result<ReadRow>) -> Result<LineOutcome, Failure> {
        match row? {
            Ok((line, row)) => {
                let id = row.external_id.subscription_id(&row.account);
                self.create_row(line, &row, id).await
            }
            Err(rejections) => Ok(Self::outcome_of_rejected_row(rejections)),
        }
    }

    /// Returns the outcome of an invalid row, with the reasons. Changes nothing in the table.
    pub(super) fn outcome_of_rejected_row(rejections: Vec<Rejected>) -> LineOutcome {
        (rejections.first().map_or(0, |first| first.line), Outcome::Rejected(rejections))
    }

    /// Waits until the rate limit allows `rows` more rows.
    pub(super) async fn wait_for_rate_limit(&self, rows: usize) {
        let rows = u32::try_from(rows).ok().and_then(NonZeroU32::new);
        if let (Some(rate_limiter), Some(rows)) = (&self.rate_limiter, rows) {
            // The result is ignored: the rate limiter refuses only more rows than its burst, and the burst is at least
            // as large as a batch.
            let _ = rate_limiter.until_n_ready(rows).await;
        }
    }

    /// Creates the subscription of a row without the other rows of its batch, unless the subscription exists. Retries
    /// transient errors.
    pub(super) async fn create_row(&self, line: u64, row: &Row, id: SubscriptionId) -> Result<LineOutcome, Failure> {
        let _lock = self.identifier_locks[usize::from(hash(&id) as u8)].lock().await;
        let delays = ExponentialBuilder::new().with_max_times(MAX_RETRIES).with_jitter();
        let create = || self.try_create_row(line, row, id);
        match create.retry(delays).sleep(tokio::time::sleep).when(TableError::is_transient).await {
            Err(error @ TableError::Unreadable { .. }) => {
                let reason = format!("the subscription already exists, but {error}");
                Ok((
                    line,
                    Outcome::Rejected(vec![Rejected::cell(line, Column::ExternalId, row.external_id.as_str(), reason)]),
                ))
            }
            outcome => Ok((line, outcome?)),
        }
    }

    /// Creates the subscription of `row` and its account, unless they exist.
    async fn try_create_row(&self, line: u64, row: &Row, id: SubscriptionId) -> Result<Outcome, TableError> {
        let table = &self.open_table.table;
        let new = row.clone().subscription(id);
        if let Some(stored) = table.get_subscription(&row.account, id).await? {
            return Ok(compare_with_stored(line, &stored, &new));
        }
        let now = self.context.clock.now();
        let subscription = match self.new_subscription(row, id, now) {
            Ok(subscription) => subscription,
            Err(refusal) => {
                let date = row.first_payment_on.map(|date| date.to_string()).unwrap_or_default();
                let rejected = Rejected::cell(line, Column::FirstPaymentDate, &date, refusal.to_string());
                return Ok(Outcome::Rejected(vec![rejected]));
            }
        };
        if self.is_dry_run {
            return Ok(Outcome::Created(Box::new(subscription)));
        }
        // Two concurrent imports may create rows with the same subscription id but different SKUs. These rows are
        // different items of the table, so only the idempotency record makes the second write fail. Later imports find
        // the stored subscription.
        let record = self.idempotency_record(&row.account, id, now);
        // Most rows belong to an account that an earlier row has created, so the account is created only if it is
        // missing.
        let mut created = table.create_subscription(&subscription, Some(&record)).await?;
        if created == CreateOutcome::NoAccount {
            table.create_account(&row.new_account(now)).await?;
            created = table.create_subscription(&subscription, Some(&record)).await?;
        }
        match created {
            CreateOutcome::Created => return Ok(Outcome::Created(Box::new(subscription))),
            CreateOutcome::AccountErased { .. } => {
                let reason = "the account was erased; no account can have its id again".to_owned();
                let rejected = Rejected::cell(line, Column::Account, row.account.as_str(), reason);
                return Ok(Outcome::Rejected(vec![rejected]));
            }
            CreateOutcome::Exists | CreateOutcome::NoAccount | CreateOutcome::Replayed(_) => {}
        }
        let stored = table.get_subscription(&row.account, id).await?;
        Ok(stored.map_or(Outcome::AlreadyThere, |stored| compare_with_stored(line, &stored, &new)))
    }

    /// Returns the new subscription of `row` with its first due date.
    ///
    /// # Errors
    /// If the first payment date is not allowed.
    pub(super) fn new_subscription(
        &self,
        row: &Row,
        id: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<Subscription, Refusal> {
        let shard = self.open_table.settings.shard_of(&row.account);
        row.clone().subscription(id).into_subscription(shard, self.context.config.billing.policy.lead, self.today, now)
    }

    /// Returns the idempotency record that allows only one subscription with the id `id` in `account`.
    pub(super) fn idempotency_record(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        now: DateTime<Utc>,
    ) -> IdempotentRequest {
        IdempotentRequest {
            made_at: now,
            key_hash: format!("import-{account}-{id}"),
            request_hash: String::new(),
            response: StoredResponse::default(),
            expires_at: now + IDEMPOTENCY_RECORD_LIFETIME,
        }
    }
}

/// Returns the hash of `value`.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the values of a subscription that come from the file. Each entry contains the column, the value, and whether
/// messages may show the value.
fn file_values(subscription: &Subscription) -> [(Column, String, bool); 8] {
    let Subscription { sku, product_name, payment_day, price, payment_method, first_due_on, .. } = subscription;
    [
        (Column::Sku, sku.to_string(), true),
        (Column::ProductName, product_name.as_str().to_owned(), true),
        (Column::PaymentDay, payment_day.to_string(), true),
        (Column::Amount, price.decimal(), true),
        (Column::Currency, price.currency().to_string(), true),
        (Column::Customer, payment_method.customer.as_str().to_owned(), false),
        (Column::PaymentMethod, payment_method.payment_method.as_str().to_owned(), false),
        (Column::FirstPaymentDate, first_due_on.to_string(), true),
    ]
}

/// Compares the stored subscription with the subscription that the row on `line` would create.
pub(super) fn compare_with_stored(line: u64, stored: &Subscription, new: &NewSubscription) -> Outcome {
    let intended = Subscription {
        sku: new.sku.clone(),
        product_name: new.product_name.clone(),
        payment_day: new.payment_day,
        price: new.price,
        payment_method: new.payment_method.clone(),
        first_due_on: new.first_payment_on.unwrap_or(stored.first_due_on),
        ..stored.clone()
    };
    let different =
        file_values(stored).into_iter().zip(file_values(&intended)).filter(|(stored, intended)| stored != intended);
    let rejections: Vec<Rejected> = different
        .map(|((column, stored, is_public), (_, intended, _))| {
            if is_public {
                let reason = format!("differs: the table contains {stored}, which is not changed");
                Rejected::cell(line, column, &intended, reason)
            } else {
                let reason = "differs: the table contains another value, which is not changed";
                Rejected::private_cell(line, column, reason.to_owned())
            }
        })
        .collect();
    if rejections.is_empty() { Outcome::AlreadyThere } else { Outcome::Differs(rejections) }
}
