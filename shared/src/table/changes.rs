//! Changes: a subscription read, changed by a pure function, and written under the write rule.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::subscriptions::read;
use super::{IdempotentRequest, MAX_ROUNDS, Replayed, Table, TableError, Updated};
use crate::billing::{AccountId, Subscription, SubscriptionId};

/// What changing a subscription came to; `E` is why the change was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changed<E> {
    /// It is now this.
    Written(Box<Subscription>),
    /// Its idempotency key was used before.
    Replayed(Replayed),
    /// The change was refused for the item as it is stored, and nothing was written.
    Refused(E),
    /// There is no such subscription.
    Missing,
}

impl Table {
    /// Writes what `change` makes of the stored subscription: UpdateItem, or TransactWriteItems with the idempotency
    /// record of `request`, whose answer `answer` makes of what will be stored. When somebody else writes in between,
    /// it is computed again from what is stored then.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_subscription<E>(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        request: Option<&IdempotentRequest>,
        answer: impl Fn(&Subscription) -> String,
        change: impl Fn(&Subscription) -> Result<Subscription, E>,
    ) -> Result<Changed<E>, TableError> {
        let Some(mut stored) = self.get_subscription(account, id).await? else { return Ok(Changed::Missing) };
        for _ in 0..MAX_ROUNDS {
            let after = match change(&stored) {
                Ok(after) => after,
                Err(refusal) => return Ok(Changed::Refused(refusal)),
            };
            let newer = match request {
                None => match self.update_subscription(&stored, &after).await? {
                    Updated::Written(written) => return Ok(Changed::Written(Box::new(written))),
                    // Written by a try of the SDK whose answer was lost.
                    Updated::Conflict(Some(newer))
                        if newer.version == stored.version + 1 && is_same(&newer, &after) =>
                    {
                        return Ok(Changed::Written(Box::new(newer)));
                    }
                    Updated::Conflict(newer) => newer,
                },
                Some(request) => {
                    let update = self.subscription_update(&stored, &after);
                    let written = update.as_ref().map_or_else(|| stored.clone(), |(_, written)| written.clone());
                    let request = IdempotentRequest { answer: answer(&written), ..request.clone() };
                    let mut writes = vec![self.keep_answer(&request)];
                    writes.extend(update.map(|(update, _)| TransactWriteItem::builder().update(update).build()));
                    let Some(refused) = self.transact_patiently(writes).await? else {
                        return Ok(Changed::Written(Box::new(written)));
                    };
                    let mut refused = refused.into_iter();
                    if let Some(record) = refused.next().flatten() {
                        return Ok(Changed::Replayed(request.replayed(&record)?));
                    }
                    refused.next().flatten().filter(|item| !item.is_empty()).map(read).transpose()?
                }
            };
            match newer {
                Some(newer) => stored = newer,
                None => return Ok(Changed::Missing),
            }
        }
        Err(TableError::Contended { operation: "change_subscription" })
    }
}

/// Whether both are the same but for their versions.
fn is_same(one: &Subscription, other: &Subscription) -> bool {
    *one == Subscription { version: one.version, ..other.clone() }
}
