//! Puts rows into the table, several at a time.

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
use store::{Created, IdempotentRequest, KeptAnswer, TableError};
use tokio::sync::Mutex;

use super::batch::{ROWS_AT_ONCE, batches};
use super::column::Column;
use super::rejects::{Rejected, Rejects};
use super::row::Row;
use super::rows::{ReadRow, Rows};
use super::summary::Imported;
use crate::Failure;
use crate::context::Context;
use crate::machine::opened::Opened;

/// A row whose request the table does not carry out is tried again this many times.
const MAX_RETRIES: usize = 5;
/// No two imports that overlap take longer than this.
const ONE_OF_AN_IDENTIFIER: TimeDelta = TimeDelta::days(7);
/// Rows of one identifier come one after the other: each waits at the place that its identifier leads to.
const PLACES: usize = 1 << u8::BITS;
/// A whole batch may go at once, whatever the rate.
const BURST: NonZeroU32 = NonZeroU32::new(ROWS_AT_ONCE as u32).expect("not zero");

pub(super) enum Outcome {
    /// Created, or, in a dry run, not there yet.
    Created(Box<Subscription>),
    AlreadyThere,
    /// It is there with other values.
    Differs(Vec<Rejected>),
    Rejected(Vec<Rejected>),
}

/// What became of a row, and its line.
pub(super) type Numbered = (u64, Outcome);

/// Imports on one day into one table.
pub struct Importer<'a> {
    pub(super) context: &'a Context,
    pub(super) opened: Opened,
    today: NaiveDate,
    pub(super) is_dry_run: bool,
    rate: Option<DefaultDirectRateLimiter>,
    places: Vec<Mutex<()>>,
    /// Whether the last rows were new, as far as is known.
    pub(super) are_new: AtomicBool,
    /// Accounts that this import has created.
    pub(super) created: sync::Mutex<HashSet<AccountId>>,
}

/// What a dry run has seen of each identifier: its values, hashed, and its line.
type Seen = HashMap<SubscriptionId, (u64, u64)>;

impl<'a> Importer<'a> {
    /// At most `rate` rows a second, if that is given.
    pub fn new(context: &'a Context, opened: Opened, is_dry_run: bool, rate: Option<NonZeroU32>) -> Self {
        let rate = rate.map(|rate| RateLimiter::direct(Quota::per_second(rate).allow_burst(rate.max(BURST))));
        let places = (0..PLACES).map(|_| Mutex::default()).collect();
        let (are_new, created) = (AtomicBool::new(true), sync::Mutex::default());
        Self { context, opened, today: context.today(), is_dry_run, rate, places, are_new, created }
    }

    /// Imports row by row, several at a time; what is in memory does not grow with the file, but for a dry run's
    /// identifiers.
    ///
    /// # Errors
    /// [`Failure`]: the file, the table or the list of rejects cannot be used any more.
    pub async fn import(
        &self,
        mut rows: Rows<impl Read>,
        mut rejects: Rejects,
        bar: &ProgressBar,
    ) -> Result<Imported, Failure> {
        let mut imported = Imported { dry_run: self.is_dry_run, ..Imported::default() };
        let mut seen = Seen::new();
        let read = std::iter::from_fn(|| rows.next_row().transpose());
        let concurrency = self.context.config.limits.concurrency;
        let batches = stream::iter(batches(read)).map(|rows| self.batch(rows)).buffered(concurrency.max(1));
        let mut outcomes = pin!(batches.flat_map(stream::iter));
        while let Some(outcome) = outcomes.next().await {
            imported.rows += 1;
            let (line, outcome) = outcome?;
            let listed = match self.as_in_file(outcome, line, &mut seen) {
                Outcome::Created(subscription) => {
                    imported.create(&subscription);
                    Vec::new()
                }
                Outcome::AlreadyThere => {
                    imported.already_there += 1;
                    Vec::new()
                }
                Outcome::Differs(values) => {
                    imported.differs += 1;
                    values
                }
                Outcome::Rejected(wrong) => {
                    imported.rejected += 1;
                    wrong
                }
            };
            listed.into_iter().try_for_each(|rejected| rejects.add(rejected))?;
            bar.set_message(format!("{} rows", HumanCount(imported.rows)));
        }
        imported.rejects = (!imported.is_all_in()).then_some(rejects.path);
        Ok(imported)
    }

    /// In a dry run nothing is written, so that a row does not meet an earlier one of its identifier in the table.
    fn as_in_file(&self, outcome: Outcome, line: u64, seen: &mut Seen) -> Outcome {
        let Outcome::Created(subscription) = &outcome else { return outcome };
        if !self.is_dry_run {
            return outcome;
        }
        let hash = hash(&values(subscription));
        match seen.entry(subscription.id) {
            Entry::Vacant(vacant) => {
                vacant.insert((hash, line));
                outcome
            }
            Entry::Occupied(earlier) if earlier.get().0 == hash => Outcome::AlreadyThere,
            Entry::Occupied(earlier) => {
                let reason = format!("line {} has it too, with other values; the first one counts", earlier.get().1);
                Outcome::Differs(vec![Rejected { field: Some(Column::ExternalId), ..Rejected::row(line, reason) }])
            }
        }
    }

    pub(super) async fn row(&self, row: io::Result<ReadRow>) -> Result<Numbered, Failure> {
        match row? {
            Ok((line, row)) => {
                let id = row.external_id.subscription_of(&row.account);
                self.put_alone(line, &row, id).await
            }
            Err(wrong) => Ok(Self::rejected(wrong)),
        }
    }

    pub(super) fn rejected(wrong: Vec<Rejected>) -> Numbered {
        (wrong.first().map_or(0, |first| first.line), Outcome::Rejected(wrong))
    }

    /// Waits until so many rows more may be put.
    pub(super) async fn at_its_rate(&self, rows: usize) {
        let rows = u32::try_from(rows).ok().and_then(NonZeroU32::new);
        if let (Some(rate), Some(rows)) = (&self.rate, rows) {
            // There is room for a whole batch.
            let _ = rate.until_n_ready(rows).await;
        }
    }

    /// Puts a row by itself, unless it is there.
    pub(super) async fn put_alone(&self, line: u64, row: &Row, id: SubscriptionId) -> Result<Numbered, Failure> {
        let _turn = self.places[usize::from(hash(&id) as u8)].lock().await;
        let delays = ExponentialBuilder::new().with_max_times(MAX_RETRIES).with_jitter();
        let put = || self.put(line, row, id);
        match put.retry(delays).sleep(tokio::time::sleep).when(TableError::is_transient).await {
            Err(error @ TableError::Unreadable { .. }) => {
                let reason = format!("it is there already, but {error}");
                Ok((
                    line,
                    Outcome::Rejected(vec![Rejected::cell(line, Column::ExternalId, row.external_id.as_str(), reason)]),
                ))
            }
            outcome => Ok((line, outcome?)),
        }
    }

    /// Creates the subscription of `row`, and its account, unless they are there.
    async fn put(&self, line: u64, row: &Row, id: SubscriptionId) -> Result<Outcome, TableError> {
        let table = &self.opened.table;
        let new = row.clone().subscription(id);
        if let Some(stored) = table.get_subscription(&row.account, id).await? {
            return Ok(compared(line, &stored, &new));
        }
        let now = self.context.clock.now();
        let subscription = match self.begun(row, id, now) {
            Ok(subscription) => subscription,
            Err(refusal) => {
                let named = row.first_payment_on.map(|date| date.to_string()).unwrap_or_default();
                let wrong = Rejected::cell(line, Column::FirstPaymentDate, &named, refusal.to_string());
                return Ok(Outcome::Rejected(vec![wrong]));
            }
        };
        if self.is_dry_run {
            return Ok(Outcome::Created(Box::new(subscription)));
        }
        // Two imports may put rows of one identifier, with different SKUs, at the same time: the record admits one of
        // them. Later ones find the subscription itself.
        let once = self.once(&row.account, id, now);
        // Most rows are of an account that an earlier one has made.
        let mut created = table.create_subscription(&subscription, Some(&once)).await?;
        if created == Created::NoAccount {
            table.create_account(&row.new_account(now)).await?;
            created = table.create_subscription(&subscription, Some(&once)).await?;
        }
        if created == Created::Created {
            return Ok(Outcome::Created(Box::new(subscription)));
        }
        let stored = table.get_subscription(&row.account, id).await?;
        Ok(stored.map_or(Outcome::AlreadyThere, |stored| compared(line, &stored, &new)))
    }

    /// The subscription of `row` as it begins.
    pub(super) fn begun(&self, row: &Row, id: SubscriptionId, now: DateTime<Utc>) -> Result<Subscription, Refusal> {
        let shard = self.opened.settings.shard_of(&row.account);
        row.clone().subscription(id).begin(shard, self.context.config.billing.policy.lead, self.today, now)
    }

    /// The record that admits one row of an identifier.
    pub(super) fn once(&self, account: &AccountId, id: SubscriptionId, now: DateTime<Utc>) -> IdempotentRequest {
        IdempotentRequest {
            made_at: now,
            key_hash: format!("import-{account}-{id}"),
            request_hash: String::new(),
            answer: KeptAnswer::default(),
            expires_at: now + ONE_OF_AN_IDENTIFIER,
        }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// What a file says of a subscription, and whether it may be shown.
fn values(subscription: &Subscription) -> [(Column, String, bool); 8] {
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

/// Whether `stored` is what the row on `line` would have made.
pub(super) fn compared(line: u64, stored: &Subscription, new: &NewSubscription) -> Outcome {
    let meant = Subscription {
        sku: new.sku.clone(),
        product_name: new.product_name.clone(),
        payment_day: new.payment_day,
        price: new.price,
        payment_method: new.payment_method.clone(),
        first_due_on: new.first_payment_on.unwrap_or(stored.first_due_on),
        ..stored.clone()
    };
    let different = values(stored).into_iter().zip(values(&meant)).filter(|(stored, meant)| stored != meant);
    let listed: Vec<Rejected> = different
        .map(|((column, stored, is_public), (_, meant, _))| {
            if is_public {
                Rejected::cell(line, column, &meant, format!("is {stored} in the table, and left so"))
            } else {
                Rejected::secret(line, column, "is another in the table, and left so".to_owned())
            }
        })
        .collect();
    if listed.is_empty() { Outcome::AlreadyThere } else { Outcome::Differs(listed) }
}
