//! Subscriptions: createSubscription, updateSubscription, getSubscriptionsByAccount.

use aws_sdk_dynamodb::types::ReturnValue;

use super::{IdempotentRequest, Item, Page, Paging, Replayed, Table, TableError, keys};
use billing::{Account, AccountId, Subscription, SubscriptionId};
use dynamo::{ABSENT, Entity as _, List, TransactAnswer, UpdateAnswer, versioned_after};

/// What creating a subscription came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    Created,
    /// There is one of this id already.
    Exists,
    /// There is no such account.
    NoAccount,
    /// Its idempotency key was used before.
    Replayed(Replayed),
}

/// What updating a subscription came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Updated {
    /// It is now this, with its version raised (or was this already, and nothing was written).
    Applied(Subscription),
    /// It was written by somebody else: this is stored (`None`: it is gone).
    Conflict(Option<Subscription>),
}

/// Subscriptions to create together.
#[derive(Clone, Debug, Default)]
pub struct CreateMany {
    /// Their accounts, each once; one that is given is created, the others must be there.
    pub accounts: Vec<(AccountId, Option<Account>)>,
    /// Each with the record of the request that creates it.
    pub subscriptions: Vec<(Subscription, IdempotentRequest)>,
}

impl Table {
    /// Creates all of `many` or nothing, in one TransactWriteItems of at most a hundred writes; answers whether it did. It
    /// does not if anything of it is there already, or an account is missing.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_many(&self, many: &CreateMany) -> Result<bool, TableError> {
        let accounts = many.accounts.iter().map(|(id, new)| match new {
            Some(account) => self.put_of_on(account.to_item(), ABSENT, None),
            None => self.check_present(keys::account(id)),
        });
        let subscriptions = many.subscriptions.iter().flat_map(|(subscription, request)| {
            [self.put_of_on(subscription.to_item(), ABSENT, None), self.keep_answer(request)]
        });
        let answer = self.transact_when_free(accounts.chain(subscriptions).collect()).await?;
        Ok(matches!(answer, TransactAnswer::Done))
    }

    /// createSubscription: TransactWriteItems of the account's presence, a put if absent, and the idempotency record
    /// if the request has a key.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_subscription(
        &self,
        subscription: &Subscription,
        request: Option<&IdempotentRequest>,
    ) -> Result<Created, TableError> {
        let check = self.check_present(keys::account(&subscription.account));
        let mut writes = vec![check, self.put_of_on(subscription.to_item(), ABSENT, None)];
        writes.extend(request.map(|request| self.keep_answer(request)));
        let TransactAnswer::Refused(refused) = self.transact_when_free(writes).await? else {
            return Ok(Created::Created);
        };
        if let (Some(request), Some(Some(stored))) = (request, refused.get(2)) {
            return Ok(Created::Replayed(request.replayed(stored)?));
        }
        // The account's check asks for no item: what it refuses is `Some` without attributes.
        Ok(if refused.get(1).is_some_and(Option::is_some) { Created::Exists } else { Created::NoAccount })
    }

    /// updateSubscription: UpdateItem of the attributes in which `after` differs from `before`, conditional on the
    /// version of `before`. Writes nothing when they are the same.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn update_subscription(
        &self,
        before: &Subscription,
        after: &Subscription,
    ) -> Result<Updated, TableError> {
        let written = versioned_after(before, after.clone());
        let Some(update) = self.versioned_update(before, &written) else { return Ok(Updated::Applied(written)) };
        match self.update(update, ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(Updated::Applied(written)),
            UpdateAnswer::Refused(stored) => {
                stored.map(|item| Subscription::from_item(&item)).transpose().map(Updated::Conflict)
            }
        }
    }

    /// getSubscriptionsByAccount: Query `PK = ACC#<account> AND begins_with(SK, "SUB#")`, in the order of their
    /// ids, as many as `paging` asks for. Our own ids begin with the time of their creation, imported ones do not.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_subscriptions_by_account(
        &self,
        account: &AccountId,
        paging: &Paging,
    ) -> Result<Page<Subscription>, TableError> {
        let list = List::of(keys::partition(account), keys::SUBSCRIPTIONS);
        Ok(self.list(&list, paging).await?.read(read))
    }

    /// One subscription, whatever its SKU. Query `PK = ACC#<account> AND begins_with(SK, "SUB#<id>#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_subscription(
        &self,
        account: &AccountId,
        id: SubscriptionId,
    ) -> Result<Option<Subscription>, TableError> {
        let list = List::of(keys::partition(account), keys::subscription_prefix(id));
        Ok(self.list(&list, &Paging::all()).await?.read(read).whole()?.items.pop())
    }
}

/// Reads a stored subscription.
pub(super) fn read(item: Item) -> Result<Subscription, TableError> {
    Subscription::from_item(&item)
}
