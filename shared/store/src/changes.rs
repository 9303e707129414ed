//! Changes: a subscription read, changed by a pure function, and written under the write rule.

use super::{IdempotentRequest, Item, KeptAnswer, Replayed, Table, TableError};
use billing::{AccountId, Settlement, Subscription, SubscriptionId};
use dynamo::key_of;
use dynamo::{Next, Rewritten, versioned_after};

/// What changing a subscription came to; `E` is why the change was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changed<E> {
    /// It is now this.
    Applied(Box<Subscription>),
    /// Its idempotency key was used before.
    Replayed(Replayed),
    /// The change was refused for the item as it is stored, and nothing was written.
    Refused(E),
    /// There is no such subscription.
    Missing,
}

/// Why nothing was changed.
enum Unchanged<E> {
    Refused(E),
    Replayed(Replayed),
}

impl Table {
    /// Writes what `change` makes of the stored subscription: UpdateItem, or TransactWriteItems with the months waived by it
    /// and the idempotency record of `request`, whose answer `answer` makes of what will be stored. When somebody else writes in between,
    /// it is computed again from what is stored then.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_subscription<E, S: Into<Settlement>>(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        request: Option<&IdempotentRequest>,
        answer: impl Fn(&Subscription) -> String,
        change: impl Fn(&Subscription) -> Result<S, E>,
    ) -> Result<Changed<E>, TableError> {
        let Some(stored) = self.get_subscription(account, id).await? else { return Ok(Changed::Missing) };
        let next = |stored: &Subscription| {
            let settlement = change(stored).map_err(Unchanged::Refused)?.into();
            let answer = request.map(|request| {
                let after = versioned_after(stored, settlement.subscription.clone());
                let answer = KeptAnswer { json: answer(&after), version: after.version };
                self.keep_answer(&IdempotentRequest { answer, ..request.clone() })
            });
            Ok(Next { answer, ..self.next(settlement) })
        };
        let replayed = |record: &Item| match request {
            Some(request) => request.replayed(record).map(Unchanged::Replayed),
            None => Err(TableError::Exists { key: key_of(record) }),
        };
        Ok(match self.rewrite(stored, next, replayed).await? {
            Rewritten::Applied(written) => Changed::Applied(Box::new(written)),
            Rewritten::Left(Unchanged::Refused(refusal)) => Changed::Refused(refusal),
            Rewritten::Left(Unchanged::Replayed(replayed)) => Changed::Replayed(replayed),
            Rewritten::Gone => Changed::Missing,
        })
    }

    /// Writes what `change` makes of `stored`, computed again when somebody else writes in between. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn rewrite_subscription<R>(
        &self,
        stored: Subscription,
        change: impl Fn(&Subscription) -> Result<Subscription, R>,
    ) -> Result<Rewritten<Subscription, R>, TableError> {
        let next = |stored: &Subscription| Ok(Next::only(change(stored)?));
        self.rewrite(stored, next, |item| Err(TableError::Exists { key: key_of(item) })).await
    }
}
