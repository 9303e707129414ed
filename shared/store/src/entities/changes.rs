//! Changes of subscriptions: the subscription is read, changed by a pure function, and written on condition that its
//! version is unchanged.

use crate::entities::actions::ChangeRecords;
use crate::table::payments_table::Table;
use billing::{AccountId, Settlement, Subscription, SubscriptionId};
use dynamo::key_of_item;
use dynamo::{IdempotencyKeyReuse, IdempotentRequest, Item, StoredResponse, TableError};
use dynamo::{ItemRewrite, NotRewritten, with_next_version};

/// The result of changing a subscription. `E` is the type of the reason why a change is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeOutcome<E> {
    /// The subscription now has this content.
    Applied(Box<Subscription>),
    /// The idempotency key was used before; nothing was written.
    Replayed(IdempotencyKeyReuse),
    /// The change is not allowed in the subscription's current state; nothing was written.
    Refused(E),
    /// The subscription does not exist.
    Missing,
}

/// The reason why a change wrote nothing.
enum NoChangeReason<E> {
    Refused(E),
    Replayed(IdempotencyKeyReuse),
}

impl Table {
    /// Changes the subscription `id` with `change`, and computes the change again on a write conflict. In the same
    /// transaction, also stores `records`: the idempotency record and the action-log entry. The idempotency record
    /// contains the response that `to_json` returns for the changed subscription. The action-log entry is stored only
    /// if the subscription changes.
    ///
    /// Each try sends one UpdateItem request. If the try also writes records (also those of waived periods), it sends
    /// one TransactWriteItems request instead.
    pub async fn change_subscription<'a, E, S: Into<Settlement>>(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        records: impl Into<ChangeRecords<'a>>,
        to_json: impl Fn(&Subscription) -> String,
        change: impl Fn(&Subscription) -> Result<S, E>,
    ) -> Result<ChangeOutcome<E>, TableError> {
        let ChangeRecords { request, action } = records.into();
        let Some(stored) = self.get_subscription(account, id).await? else { return Ok(ChangeOutcome::Missing) };
        let next = |stored: &Subscription| {
            let settlement: Settlement = change(stored).map_err(NoChangeReason::Refused)?.into();
            let idempotency_record = request.map(|request| {
                let after = with_next_version(stored, settlement.subscription.clone());
                let response = StoredResponse { json: to_json(&after), version: after.version };
                self.build_idempotency_put(&IdempotentRequest { response, ..request.clone() })
            });
            let log_entry = action.map(|action| {
                let entry = action.on_subscription(Some(stored), &settlement.subscription);
                self.build_action_put(&entry)
            });
            Ok(ItemRewrite { idempotency_record, log_entry, ..self.rewrite_of_settlement(&settlement) })
        };
        let replayed = |record: &Item| match request {
            Some(request) => request.compare_with_record(record).map(NoChangeReason::Replayed),
            None => Err(TableError::Exists { key: key_of_item(record) }),
        };
        Ok(match self.rewrite_item(stored, next, replayed).await {
            Ok(written) => ChangeOutcome::Applied(Box::new(written)),
            Err(NotRewritten::Unchanged(NoChangeReason::Refused(refusal))) => ChangeOutcome::Refused(refusal),
            Err(NotRewritten::Unchanged(NoChangeReason::Replayed(replayed))) => ChangeOutcome::Replayed(replayed),
            Err(NotRewritten::Missing) => ChangeOutcome::Missing,
            Err(NotRewritten::Table(error)) => return Err(error),
        })
    }

    /// Changes the subscription `stored` with `change`, and computes the change again on a write conflict. Sends one
    /// UpdateItem request per try. Returns the stored subscription.
    ///
    /// # Errors
    /// [`NotRewritten`] if nothing was written.
    pub async fn rewrite_subscription<R>(
        &self,
        stored: Subscription,
        change: impl Fn(&Subscription) -> Result<Subscription, R>,
    ) -> Result<Subscription, NotRewritten<R>> {
        let next = |stored: &Subscription| Ok(ItemRewrite::without_records(change(stored)?));
        self.rewrite_item(stored, next, |item| Err(TableError::Exists { key: key_of_item(item) })).await
    }
}
