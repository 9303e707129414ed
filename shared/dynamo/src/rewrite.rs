//! The write rule: the new content of an item is computed from the stored item by a pure function, and written on
//! condition that the version of the stored item is unchanged. Every write increments the version. On a write conflict,
//! the same function computes the content again from the newly stored item.

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem, Update};

use crate::Backoff;
use crate::build_difference;
use crate::{DynamoTable, Entity, Item, TableError};
use crate::{TransactionOutcome, UpdateItemOutcome, n};

/// A condition expression that is true if the stored version is the version that was read.
const VERSION_UNCHANGED: &str = "#Version = :seen";

/// The largest number of write conflicts after which one call of [`DynamoTable::rewrite_item`] tries again. After one more
/// conflict it fails with [`TableError::Contended`].
const MAX_CONFLICTS: u32 = 8;

/// An entity with a version number, which every write increments.
pub trait VersionedEntity<Schema>: Entity<Schema> + Clone + PartialEq + Send + Sync {
    /// Returns the version of the entity.
    fn version(&self) -> u64;
    /// Returns the same entity with another version.
    fn with_version(self, version: u64) -> Self;
}

/// Implements [`VersionedEntity`] for entities of the schema `$schema` that have a field `version`.
#[macro_export]
macro_rules! versioned {
    ($schema:ty: $($entity:ty),+ $(,)?) => {
        $(
            impl $crate::VersionedEntity<$schema> for $entity {
                fn version(&self) -> u64 {
                    self.version
                }

                fn with_version(self, version: u64) -> Self {
                    Self { version, ..self }
                }
            }
        )+
    };
}

/// The new content of a stored item, and further writes in the same transaction. If the conditions of several writes
/// fail, the first failed write in this order decides the result: idempotency record, item, records.
#[derive(Debug)]
pub struct ItemRewrite<T> {
    pub item: T,
    /// The write of the request's idempotency record; `None` if the request has no idempotency key. In the transaction,
    /// this write is before the write of the item, so that a repeated request gets the stored response even if the item
    /// has changed after the first request.
    pub idempotency_record: Option<TransactWriteItem>,
    /// The writes of the receipt or other records that belong to the change. In the transaction, these writes are after
    /// the write of the item.
    pub records: Vec<TransactWriteItem>,
    /// The write of the action-log entry of the change; `None` if the change is not logged. This write has no
    /// condition, and is left out if the item does not change.
    pub log_entry: Option<TransactWriteItem>,
}

impl<T> ItemRewrite<T> {
    /// Creates a rewrite of `item` without further writes.
    pub fn without_records(item: T) -> Self {
        Self { item, idempotency_record: None, records: Vec::new(), log_entry: None }
    }
}

/// The reason why a rewrite wrote nothing.
#[derive(Debug)]
pub enum NotRewritten<R> {
    /// The function rejected the stored item, or the idempotency record or another record exists already.
    Unchanged(R),
    /// The item does not exist any more.
    Missing,
    /// A request to the table failed, so the write may have taken effect nevertheless.
    Table(TableError),
}

impl<R> NotRewritten<R> {
    /// Returns the reason for which nothing was written; `None` if the item does not exist any more.
    ///
    /// # Errors
    /// The [`TableError`], if a request to the table failed.
    pub fn into_reason(self) -> Result<Option<R>, TableError> {
        match self {
            Self::Unchanged(reason) => Ok(Some(reason)),
            Self::Missing => Ok(None),
            Self::Table(error) => Err(error),
        }
    }
}

/// Ignores that a rewrite was refused: for callers that need to do nothing if the item does not exist, or no longer has the
/// state in which it must be written. `result` is the result of the rewrite.
///
/// # Errors
/// The [`TableError`], if a request to the table failed.
pub fn ignore_refusal<T, R>(result: Result<T, NotRewritten<R>>) -> Result<(), TableError> {
    result.map(drop).or_else(|refused| refused.into_reason().map(drop))
}

impl<R> From<TableError> for NotRewritten<R> {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

/// What a write of a transaction writes.
#[derive(Clone, Copy)]
enum WritePart {
    /// The rewritten item.
    Item,
    /// The idempotency record, another record, or the action-log entry.
    Record,
}

/// The reason why one try to write a [`ItemRewrite`] wrote nothing.
enum NotWritten<T> {
    /// Another worker has changed the item. Contains the stored item, or `None` if it does not exist any more.
    Conflict(Option<T>),
    /// The idempotency record or one of the other records exists already. Contains the stored record.
    Exists(Item),
    Table(TableError),
}

impl<T> From<TableError> for NotWritten<T> {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Computes the new content of `stored` with `compute`, and writes it. On a write conflict, computes the content
    /// again from the newly stored item. Retries with back-off after a transient error. Sends one UpdateItem request
    /// for each try, or one TransactWriteItems request if there are further writes. If the content is already the same,
    /// writes nothing. Returns the item that is stored afterwards.
    ///
    /// The further writes can create records, such as an idempotency record. If such a record exists already, `exists`
    /// converts the stored record to the reason in [`NotRewritten::Unchanged`].
    ///
    /// # Errors
    /// [`NotRewritten`] if nothing was written; [`TableError::Contended`] after too many write conflicts.
    pub async fn rewrite_item<T: VersionedEntity<Schema>, R>(
        &self,
        stored: T,
        compute: impl Fn(&T) -> Result<ItemRewrite<T>, R>,
        exists: impl Fn(&Item) -> Result<R, TableError>,
    ) -> Result<T, NotRewritten<R>> {
        let compute = |stored: &T| compute(stored).map(|rewrite| (rewrite, ()));
        self.rewrite_with_output(stored, compute, exists).await.map(|(written, ())| written)
    }

    /// Like [`DynamoTable::rewrite_item`], but `compute` also returns an output. Returns the item that is stored afterwards, with
    /// the output of the computation that was written.
    ///
    /// # Errors
    /// The same errors as in [`DynamoTable::rewrite_item`].
    pub async fn rewrite_with_output<T: VersionedEntity<Schema>, O, R>(
        &self,
        mut stored: T,
        compute: impl Fn(&T) -> Result<(ItemRewrite<T>, O), R>,
        exists: impl Fn(&Item) -> Result<R, TableError>,
    ) -> Result<(T, O), NotRewritten<R>> {
        let (mut backoff, mut conflicts) = (Backoff::new(&self.client), 0);
        loop {
            let (next, output) = compute(&stored).map_err(NotRewritten::Unchanged)?;
            match self.write_with_version_check(&stored, next).await {
                Ok(written) => return Ok((written, output)),
                Err(NotWritten::Exists(item)) => return Err(NotRewritten::Unchanged(exists(&item)?)),
                Err(NotWritten::Conflict(None)) => return Err(NotRewritten::Missing),
                Err(NotWritten::Conflict(Some(newer))) if conflicts < MAX_CONFLICTS => {
                    (stored, conflicts) = (newer, conflicts + 1);
                }
                Err(NotWritten::Conflict(Some(_))) => return Err(TableError::Contended { key: stored.key() }.into()),
                Err(NotWritten::Table(error)) if error.is_transient() && backoff.wait().await => {
                    tracing::warn!(%error, error_type = "Table", "retrying a write after a transient error");
                }
                Err(NotWritten::Table(error)) => return Err(error.into()),
            }
        }
    }

    /// Writes the item that `change` computes from `stored`. After a write conflict, `change` computes the item again
    /// from the newly stored item. If `change` returns `None`, nothing is written. Returns the item that is stored
    /// afterwards; `None` if it does not exist any more.
    pub async fn change_item<T: VersionedEntity<Schema>>(
        &self,
        stored: T,
        change: impl Fn(&T) -> Option<T>,
    ) -> Result<Option<T>, TableError> {
        self.change_with_records(stored, |stored| change(stored).map(ItemRewrite::without_records)).await
    }

    /// Like [`DynamoTable::change_item`], with further writes in the same transaction.
    pub async fn change_with_records<T: VersionedEntity<Schema>>(
        &self,
        stored: T,
        change: impl Fn(&T) -> Option<ItemRewrite<T>>,
    ) -> Result<Option<T>, TableError> {
        let changed = |stored: &T| change(stored).ok_or_else(|| Box::new(stored.clone()));
        let record_exists = |item: &Item| Err(TableError::Exists { key: crate::key_of_item(item) });
        match self.rewrite_item(stored, changed, record_exists).await {
            Ok(written) => Ok(Some(written)),
            Err(refused) => Ok(refused.into_reason()?.map(|stored| *stored)),
        }
    }

    /// Tries once to write `next`, on condition that the stored item still has the version of `before`.
    async fn write_with_version_check<T: VersionedEntity<Schema>>(
        &self,
        before: &T,
        next: ItemRewrite<T>,
    ) -> Result<T, NotWritten<T>> {
        let written = with_next_version(before, next.item);
        let update = self.build_versioned_update(before, &written);
        let conflict = |item: Option<Item>| match item.map(|item| T::from_item(&item)).transpose() {
            Ok(stored) => NotWritten::Conflict(stored),
            Err(error) => NotWritten::Table(error),
        };
        let log_entry = next.log_entry.filter(|_| update.is_some());
        let has_records = next.idempotency_record.is_some() || !next.records.is_empty();
        if !has_records && log_entry.is_none() {
            let Some(update) = update else { return Ok(written) };
            return match self.send_update(update, ReturnValue::None).await? {
                UpdateItemOutcome::Updated(_) => Ok(written),
                // The SDK has retried the write: an earlier try succeeded, but its response was lost.
                UpdateItemOutcome::ConditionFailed(Some(item)) if T::from_item(&item)? == written => Ok(written),
                UpdateItemOutcome::ConditionFailed(item) => Err(conflict(item)),
            };
        }
        let update = update.map(|update| TransactWriteItem::builder().update(update).build());
        let records_after_item = next.records.into_iter().chain(log_entry).map(|write| (WritePart::Record, write));
        let item = update.into_iter().map(|write| (WritePart::Item, write));
        let idempotency_record = next.idempotency_record.into_iter().map(|write| (WritePart::Record, write));
        let (parts, writes): (Vec<WritePart>, _) = idempotency_record.chain(item).chain(records_after_item).unzip();
        let TransactionOutcome::ConditionFailed(failed) = self.transact(writes).await? else {
            return Ok(written);
        };
        match parts.into_iter().zip(failed).find_map(|(part, item)| Some((part, item?))) {
            // The SDK has retried the transaction: an earlier try succeeded, but its response was lost.
            Some((_, item)) if !has_records && !item.is_empty() && T::from_item(&item)? == written => Ok(written),
            Some((WritePart::Item, item)) => Err(conflict(Some(item).filter(|item| !item.is_empty()))),
            Some((WritePart::Record, item)) => Err(NotWritten::Exists(item)),
            None => Err(TableError::Contended { key: before.key() }.into()),
        }
    }

    /// Builds the update of the attributes in which `written` differs from the stored item `before`, on condition that
    /// the stored version is the version of `before`. Returns `None` if `before` and `written` are equal.
    pub fn build_versioned_update<T: VersionedEntity<Schema>>(&self, before: &T, written: &T) -> Option<Update> {
        let mut change = build_difference(&before.to_item(), written.to_item())?;
        change.values.insert(":seen".to_owned(), n(before.version()));
        Some(self.build_update(before.key(), &change.update, VERSION_UNCHANGED, change.values))
    }
}

/// Returns `after` with the version that it will have in the table: the version of `before` plus 1, or the version of
/// `before` itself if `before` and `after` have the same content.
pub fn with_next_version<Schema, T: VersionedEntity<Schema>>(before: &T, after: T) -> T {
    let after = after.with_version(before.version());
    if after == *before { after } else { after.with_version(before.version() + 1) }
}
