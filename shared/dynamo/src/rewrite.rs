//! The write rule: an item is only ever written from the item it was computed from, on condition of its version, which
//! every write raises by one. When somebody else was quicker, it is computed again from what is stored then, by the same
//! pure function.

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem, Update};

use crate::Backoff;
use crate::difference;
use crate::{Dynamo, Entity, Item, TableError};
use crate::{TransactAnswer, UpdateAnswer, n};

const UNCHANGED: &str = "#Version = :seen";

/// An item that loses to other writers so many times is given up.
const MAX_CONFLICTS: u32 = 8;

/// An entity with a version, which every write raises.
pub trait Versioned<S>: Entity<S> + Clone + PartialEq + Send + Sync {
    /// Its version.
    fn version(&self) -> u64;
    /// The same, at another version.
    fn at_version(self, version: u64) -> Self;
}

/// Implements [`Versioned`] of the schema `$schema` for entities that have a field `version`.
#[macro_export]
macro_rules! versioned {
    ($schema:ty: $($entity:ty),+ $(,)?) => {
        $(
            impl $crate::Versioned<$schema> for $entity {
                fn version(&self) -> u64 {
                    self.version
                }

                fn at_version(self, version: u64) -> Self {
                    Self { version, ..self }
                }
            }
        )+
    };
}

/// What is to be written on top of a stored item, in one transaction. Of several refusals, the first one counts.
#[derive(Debug)]
pub struct Next<T> {
    pub item: T,
    /// Written before it: the answer to keep under an idempotency key. Who asked already has it, whatever is stored now.
    pub answer: Option<TransactWriteItem>,
    /// Written after it: the receipt or the records that go with it.
    pub records: Vec<TransactWriteItem>,
}

/// What a rewrite came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rewritten<T, R> {
    /// It is now this (or was already, and nothing was written).
    Applied(T),
    /// Nothing is to be written on what is stored, for this reason.
    Left(R),
    /// There is no such item any more.
    Gone,
}

impl<T> Next<T> {
    /// `item`, and nothing with it.
    pub fn only(item: T) -> Self {
        Self { item, answer: None, records: Vec::new() }
    }
}

enum Write<T> {
    Applied(T),
    /// Somebody else has written this; `None`: it is gone.
    Conflict(Option<T>),
    /// This is there already, of what was to go with it.
    Exists(Item),
}

impl<S> Dynamo<S> {
    /// Writes what `compute` makes of `stored`: UpdateItem, or TransactWriteItems with what goes with it. On a conflict
    /// it is computed again from what is stored then; on a transient error it is tried again after a while. `exists` says
    /// what it means that something that was to go with it is there already.
    pub async fn rewrite<T: Versioned<S>, R>(
        &self,
        mut stored: T,
        compute: impl Fn(&T) -> Result<Next<T>, R>,
        exists: impl Fn(&Item) -> Result<R, TableError>,
    ) -> Result<Rewritten<T, R>, TableError> {
        let (mut backoff, mut conflicts) = (Backoff::new(&self.client), 0);
        loop {
            let next = match compute(&stored) {
                Ok(next) => next,
                Err(reason) => return Ok(Rewritten::Left(reason)),
            };
            match self.write(&stored, next).await {
                Ok(Write::Applied(after)) => return Ok(Rewritten::Applied(after)),
                Ok(Write::Exists(item)) => return exists(&item).map(Rewritten::Left),
                Ok(Write::Conflict(None)) => return Ok(Rewritten::Gone),
                Ok(Write::Conflict(Some(newer))) if conflicts < MAX_CONFLICTS => {
                    (stored, conflicts) = (newer, conflicts + 1);
                }
                Ok(Write::Conflict(Some(_))) => return Err(TableError::Contended { key: stored.key() }),
                Err(error) if error.is_transient() && backoff.wait().await => {
                    tracing::warn!(%error, "a write is tried again");
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub async fn change<T: Versioned<S>>(
        &self,
        stored: T,
        change: impl Fn(&T) -> Option<T>,
    ) -> Result<Option<T>, TableError> {
        self.change_with(stored, |stored| change(stored).map(Next::only)).await
    }

    /// As [`Dynamo::change`], with what is to be written beside it.
    pub async fn change_with<T: Versioned<S>>(
        &self,
        stored: T,
        change: impl Fn(&T) -> Option<Next<T>>,
    ) -> Result<Option<T>, TableError> {
        let changed = |stored: &T| change(stored).ok_or_else(|| Box::new(stored.clone()));
        let nothing_with_it = |item: &Item| Err(TableError::Exists { key: crate::key_of(item) });
        match self.rewrite(stored, changed, nothing_with_it).await? {
            Rewritten::Applied(stored) => Ok(Some(stored)),
            Rewritten::Left(theirs) => Ok(Some(*theirs)),
            Rewritten::Gone => Ok(None),
        }
    }

    async fn write<T: Versioned<S>>(&self, before: &T, next: Next<T>) -> Result<Write<T>, TableError> {
        let written = versioned_after(before, next.item);
        let update = self.versioned_update(before, &written);
        let conflict = |item: Option<Item>| item.map(|item| T::from_item(&item)).transpose().map(Write::Conflict);
        if next.answer.is_none() && next.records.is_empty() {
            let Some(update) = update else { return Ok(Write::Applied(written)) };
            return match self.update(update, ReturnValue::None).await? {
                UpdateAnswer::Done(_) => Ok(Write::Applied(written)),
                // Our own write, by a try whose answer was lost.
                UpdateAnswer::Refused(Some(item)) if T::from_item(&item)? == written => Ok(Write::Applied(written)),
                UpdateAnswer::Refused(item) => conflict(item),
            };
        }
        let place = update.as_ref().map(|_| usize::from(next.answer.is_some()));
        let update = update.map(|update| TransactWriteItem::builder().update(update).build());
        let writes = next.answer.into_iter().chain(update).chain(next.records).collect();
        let TransactAnswer::Refused(refused) = self.transact(writes).await? else { return Ok(Write::Applied(written)) };
        match (0..).zip(refused).find_map(|(place, item)| Some((place, item?))) {
            Some((refused, item)) if Some(refused) == place => conflict(Some(item).filter(|item| !item.is_empty())),
            Some((_, item)) => Ok(Write::Exists(item)),
            None => Err(TableError::Contended { key: before.key() }),
        }
    }

    /// The write of `written` on top of `before`, of the attributes in which they differ; `None` when there are none.
    pub fn versioned_update<T: Versioned<S>>(&self, before: &T, written: &T) -> Option<Update> {
        let mut change = difference(&before.to_item(), written.to_item())?;
        change.values.insert(":seen".to_owned(), n(before.version()));
        Some(self.update_of(before.key(), &change.update, UNCHANGED, change.values))
    }
}

/// `after` as it is stored on top of `before`: at the next version, unless they are the same but for their versions.
pub fn versioned_after<S, T: Versioned<S>>(before: &T, after: T) -> T {
    let after = after.at_version(before.version());
    if after == *before { after } else { after.at_version(before.version() + 1) }
}
