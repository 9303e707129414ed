//! Creates the subscription of one row of an imported file.

use std::collections::HashSet;
use std::io;
use std::num::NonZeroU32;
use std::sync;
use std::sync::atomic::AtomicBool;

use backon::{ExponentialBuilder, Retryable as _};
use billing::{AccountId, AccountRecords, AmountRefusal, AmountRules, CreationRefusal, Subscription, SubscriptionId};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use store::{CreateOutcome, IdempotentRequest, StoredResponse, TableError};
use tokio::sync::Mutex;

use super::column::ImportColumn;
use super::file_rows::ALLOW_SECOND;
use super::outcome::{LineOutcome, RowImportOutcome, compare_with_stored};
use super::rejects::Rejected;
use super::row::ImportRow;
use super::rows::ReadRow;
use crate::Failure;
use crate::commands::hash::compute_hash;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;

/// The largest number of rows in one transaction. A row writes up to four items: the subscription, the item by which
/// the subscription's code is looked up, the idempotency record, and the account. DynamoDB allows a hundred items per
/// transaction.
pub const MAX_BATCH_ROWS: usize = 25;
/// The largest number of retries of a row after a transient error of the table.
const MAX_RETRIES: usize = 5;
/// The lifetime of the idempotency records of an import. Two imports that run at the same time must both end within
/// this time.
const IDEMPOTENCY_RECORD_LIFETIME: TimeDelta = TimeDelta::days(7);
/// The number of locks that prevent two concurrent rows from creating the same subscription. Rows whose subscription
/// ids have the same hash use the same lock, so that they are created one after the other.
const IDENTIFIER_LOCKS: usize = 1 << u8::BITS;
/// The number of locks that prevent two concurrent batches from creating subscriptions of the same account.
const ACCOUNT_LOCKS: usize = 4_096;
/// The smallest burst of the rate limiter, in rows. Even at a low rate, the rate limiter must admit a whole batch at
/// once.
const MIN_BURST: NonZeroU32 = NonZeroU32::new(MAX_BATCH_ROWS as u32).expect("not zero");

/// Imports rows into one table.
pub struct Importer<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) open_table: OpenTable,
    today: NaiveDate,
    pub(super) is_dry_run: bool,
    /// The amounts that the gateway can charge. New subscriptions with other prices are rejected.
    amount_rules: AmountRules,
    /// Limits the rows per second; `None` without a limit.
    rate_limiter: Option<DefaultDirectRateLimiter>,
    identifier_locks: Vec<Mutex<()>>,
    pub(super) account_locks: Vec<Mutex<()>>,
    /// Whether the rows of the next batch are assumed to be new, because the assumption was right for the last batch.
    pub(super) expects_new_rows: AtomicBool,
    /// The accounts that this import has created most recently.
    pub(super) created_accounts: sync::Mutex<HashSet<AccountId>>,
}

impl<'a> Importer<'a> {
    /// Creates an importer that imports at most `rate` rows per second; `None` means no limit. Asks the gateway which
    /// amounts it can charge, unless they are known.
    pub async fn new(
        context: &'a CommandContext,
        open_table: OpenTable,
        is_dry_run: bool,
        rate: Option<NonZeroU32>,
    ) -> Self {
        let rate_limiter =
            rate.map(|rate| RateLimiter::direct(Quota::per_second(rate).allow_burst(rate.max(MIN_BURST))));
        let identifier_locks = (0..IDENTIFIER_LOCKS).map(|_| Mutex::default()).collect();
        let (expects_new_rows, created_accounts) = (AtomicBool::new(true), sync::Mutex::default());
        Self {
            context,
            amount_rules: open_table.amount_rules(context).await,
            today: context.today(&open_table.table),
            open_table,
            is_dry_run,
            rate_limiter,
            identifier_locks,
            account_locks: (0..ACCOUNT_LOCKS).map(|_| Mutex::default()).collect(),
            expects_new_rows,
            created_accounts,
        }
    }

    /// Imports one row without the other rows of its batch.
    pub(super) async fn import_row(&self, row: io::Result<ReadRow>) -> Result<LineOutcome, Failure> {
        match row? {
            Ok((line, row)) => self.create_row(line, &row, row.id).await,
            Err(rejections) => Ok(Self::outcome_of_rejected_row(rejections)),
        }
    }

    /// Returns the outcome of an invalid row, with the reasons. Changes nothing in the table.
    pub(super) fn outcome_of_rejected_row(rejections: Vec<Rejected>) -> LineOutcome {
        (rejections.first().map_or(0, |first| first.line), RowImportOutcome::Rejected(rejections))
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
    pub(super) async fn create_row(
        &self,
        line: u64,
        row: &ImportRow,
        id: SubscriptionId,
    ) -> Result<LineOutcome, Failure> {
        let _lock = self.identifier_locks[usize::from(compute_hash(&id) as u8)].lock().await;
        let delays = ExponentialBuilder::new().with_max_times(MAX_RETRIES).with_jitter();
        let create = || self.try_create_row(line, row, id);
        match create.retry(delays).sleep(tokio::time::sleep).when(TableError::is_transient).await {
            Err(error @ TableError::Unreadable { .. }) => {
                let reason = format!("the subscription already exists, but {error}");
                Ok((
                    line,
                    RowImportOutcome::Rejected(vec![Rejected::cell(
                        line,
                        ImportColumn::Subscription,
                        &id.to_string(),
                        reason,
                    )]),
                ))
            }
            outcome => Ok((line, outcome?)),
        }
    }

    /// Creates the subscription of `row` and its account, unless they exist.
    async fn try_create_row(
        &self,
        line: u64,
        row: &ImportRow,
        id: SubscriptionId,
    ) -> Result<RowImportOutcome, TableError> {
        let table = &self.open_table.table;
        if let Some(stored) = table.get_subscription(&row.account, id).await? {
            return Ok(compare_with_stored(line, &stored, row));
        }
        let now = self.context.clock.now();
        let allow_second = row.allow_second;
        let compute = |existing: &AccountRecords| self.new_subscription(line, row, id, existing, now);
        if self.is_dry_run {
            let existing = table.get_account_state(&row.account).await?.records;
            return Ok(match compute(&existing) {
                Ok(subscription) => RowImportOutcome::Created { subscription: Box::new(subscription), allow_second },
                Err(rejections) => RowImportOutcome::Rejected(rejections),
            });
        }
        // Two concurrent imports may create rows with the same subscription id but different SKUs. These rows are
        // different items of the table, so only the idempotency record makes the second write fail. Later imports find
        // the stored subscription.
        let record = self.idempotency_record(&row.account, id, now);
        let create = async || {
            let to_json = |_: &Subscription| String::new();
            table.create_subscription_of_account(&row.account, Some(&record), to_json, compute).await
        };
        // Most rows belong to an account that an earlier row has created, so the account is created only if it is
        // missing.
        let mut created = create().await?;
        if matches!(created, Ok((CreateOutcome::NoAccount, _))) {
            table.create_account(&row.new_account(now)).await?;
            created = create().await?;
        }
        match created {
            Err(rejections) => return Ok(RowImportOutcome::Rejected(rejections)),
            Ok((CreateOutcome::Created, subscription)) => {
                return Ok(RowImportOutcome::Created { subscription: Box::new(subscription), allow_second });
            }
            Ok((CreateOutcome::AccountErased { .. }, _)) => {
                let reason = "the account was erased; no account can have its id again".to_owned();
                let rejected = Rejected::cell(line, ImportColumn::Account, row.account.as_str(), reason);
                return Ok(RowImportOutcome::Rejected(vec![rejected]));
            }
            Ok((
                CreateOutcome::Exists
                | CreateOutcome::NoAccount
                | CreateOutcome::Replayed(_)
                | CreateOutcome::AccountChanged,
                _,
            )) => {}
        }
        let stored = table.get_subscription(&row.account, id).await?;
        Ok(stored.map_or(RowImportOutcome::AlreadyThere, |stored| compare_with_stored(line, &stored, row)))
    }

    /// Returns the new subscription of `row`, which begins on line `line` of the file. Its account has the records
    /// `existing`.
    ///
    /// # Errors
    /// The cells with a price that the gateway can never charge, with a first payment date, a status or a cancel date that
    /// is not allowed, or with a SKU of which the account has a subscription.
    pub(super) fn new_subscription(
        &self,
        line: u64,
        row: &ImportRow,
        id: SubscriptionId,
        existing: &AccountRecords,
        now: DateTime<Utc>,
    ) -> Result<Subscription, Vec<Rejected>> {
        let shard = self.open_table.settings.shard_of(&row.account);
        let lead = self.open_table.table.policy().lead;
        let created = row.check_status(line).and_then(|()| {
            let created = row.clone().subscription(id).into_subscription(existing, shard, lead, self.today, now);
            created.map_err(|refusal| rejected_creation(line, row, &refusal))
        });
        let created = created.and_then(|created| row.with_initial_state(created, line, self.today));
        let refused_price = self.amount_rules.check_amount(row.price).err().map(|refusal| match refusal {
            AmountRefusal::Currency { currency, .. } => {
                Rejected::cell(line, ImportColumn::Currency, currency.code(), refusal.to_string())
            }
            _ => Rejected::cell(line, ImportColumn::Amount, &row.price.decimal(), refusal.to_string()),
        });
        match (refused_price, created) {
            (None, Ok(subscription)) => Ok(subscription),
            (refused_price, created) => Err(refused_price.into_iter().chain(created.err()).collect()),
        }
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

/// Returns the rejection of the row on `line`, whose subscription is not created because of `refusal`.
fn rejected_creation(line: u64, row: &ImportRow, refusal: &CreationRefusal) -> Rejected {
    match refusal {
        CreationRefusal::FirstPayment(refusal) => {
            let date = row.first_payment_on.map(|date| date.to_string()).unwrap_or_default();
            Rejected::cell(line, ImportColumn::FirstPaymentDate, &date, refusal.to_string())
        }
        CreationRefusal::AlreadySubscribed { id, sku, status } => {
            let reason =
                format!("the account already has the subscription {id} of this SKU, which is {status}; {ALLOW_SECOND}");
            Rejected::cell(line, ImportColumn::Sku, sku.as_str(), reason)
        }
    }
}
