//! The creation of subscriptions (access pattern createSubscription). Each subscription that an API, a file or a command
//! creates goes through this module.
//!
//! A new subscription is computed from the other subscriptions and the disputes of its account, so two requests must not
//! create subscriptions of one account without seeing each other. The account item therefore counts the creations
//! (`Creations`). A creation reads the count before the subscriptions, and increments it on condition that it is
//! unchanged. The count is no part of the account's `Version` and of its events.

use aws_sdk_dynamodb::types::TransactWriteItem;
use dynamo::{ABSENT, Entity as _, TransactionOutcome, n};

use crate::entities::actions::ChangeRecords;
use crate::entities::erasures::IS_NOT_ERASED;
use crate::entities::subscriptions::CreateOutcome;
use crate::entities::subscriptions::subscription_code_item;
use crate::items::{CREATIONS, creations_of_account};
use crate::keys;
use crate::table::payments_table::Table;
use billing::{Account, AccountId, AccountRecords, Subscription};
use dynamo::{IdempotentRequest, Paging, StoredResponse, TableError};

/// The largest number of concurrent creations in one account after which a creation tries again.
const MAX_CONFLICTS: u32 = 8;

/// An account as a creation has read it: the records that decide about the new subscription, and the count that shows
/// whether another subscription was created since.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountState {
    /// Whether the account exists. The mark of an erased account counts as an account.
    pub exists: bool,
    pub records: AccountRecords,
    creations: u64,
}

/// Subscriptions to create together in one transaction, with their accounts.
#[derive(Clone, Debug, Default)]
pub struct NewSubscriptions {
    /// The accounts of the subscriptions, each account once.
    pub accounts: Vec<AccountOfNewSubscriptions>,
    /// The subscriptions, each with the idempotency record of the request that creates it.
    pub subscriptions: Vec<(Subscription, IdempotentRequest)>,
}

/// The account of new subscriptions.
#[derive(Clone, Debug)]
pub enum AccountOfNewSubscriptions {
    /// The account is created in the same transaction.
    New(Account),
    /// The account exists, and no subscription was created since this state was read.
    Existing(AccountId, AccountState),
}

impl AccountOfNewSubscriptions {
    /// Returns the id of the account.
    pub fn id(&self) -> &AccountId {
        match self {
            Self::New(account) => &account.id,
            Self::Existing(id, _) => id,
        }
    }
}

impl Table {
    /// Returns the state of `account` for a creation. An account that does not exist has no records. Sends a strongly
    /// consistent GetItem request, and then strongly consistent Query requests for the subscriptions and the disputes.
    pub async fn get_account_state(&self, account: &AccountId) -> Result<AccountState, TableError> {
        // Read the count first: a subscription that is created after this read changes the count.
        let stored = self.get(keys::key_of_account(account)).await?;
        let creations = stored.as_ref().map_or(0, creations_of_account);
        let subscriptions = self.get_subscriptions_by_account(account, &Paging::all()).await?;
        let records = AccountRecords {
            subscriptions: subscriptions.require_all_readable()?.items,
            disputes: self.get_disputes_by_account(account).await?,
        };
        Ok(AccountState { exists: stored.is_some(), records, creations })
    }

    /// createSubscription: creates the subscription of `account` that `compute` returns for the records of the account,
    /// and `records`. The idempotency record gets the response that `to_json` returns. Sends the requests of
    /// [`Table::get_account_state`] and one TransactWriteItems request; after a concurrent creation in the same account,
    /// sends them again. Returns the created subscription with [`CreateOutcome::Created`]; with another outcome, the
    /// subscription was not created. Returns `Ok(Err(_))` if `compute` returns an error.
    ///
    /// # Errors
    /// [`TableError::Contended`] after too many concurrent creations.
    pub async fn create_subscription_of_account<'a, E>(
        &self,
        account: &AccountId,
        records: impl Into<ChangeRecords<'a>>,
        to_json: impl Fn(&Subscription) -> String,
        compute: impl Fn(&AccountRecords) -> Result<Subscription, E>,
    ) -> Result<Result<(CreateOutcome, Subscription), E>, TableError> {
        let ChangeRecords { request, action } = records.into();
        for _ in 0..=MAX_CONFLICTS {
            let state = self.get_account_state(account).await?;
            let subscription = match compute(&state.records) {
                Ok(subscription) => subscription,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let request = request.map(|request| IdempotentRequest {
                response: StoredResponse { json: to_json(&subscription), version: subscription.version },
                ..request.clone()
            });
            let records = ChangeRecords { request: request.as_ref(), action };
            let count = self.build_creation_count(account, &state, 1);
            match self.write_new_subscription(count, &subscription, records).await? {
                CreateOutcome::AccountChanged => {}
                outcome => return Ok(Ok((outcome, subscription))),
            }
        }
        Err(TableError::Contended { key: keys::key_of_account(account) })
    }

    /// Creates all accounts and subscriptions of `many` or nothing, in one TransactWriteItems request of at most 100
    /// writes: one for each account and three for each subscription. Returns `false`, and creates nothing, in these
    /// cases: an account or a subscription to create, or an idempotency record, exists already; an account that must
    /// exist does not exist; its erasure was requested; or another subscription of it was created since it was read.
    pub async fn create_subscriptions(&self, many: &NewSubscriptions) -> Result<bool, TableError> {
        let created_in = |account: &AccountId| {
            many.subscriptions.iter().filter(|(subscription, _)| subscription.account == *account).count()
        };
        let accounts = many.accounts.iter().map(|account| match account {
            AccountOfNewSubscriptions::New(account) => {
                let mut item = account.to_item();
                item.insert(CREATIONS.to_owned(), n(created_in(&account.id)));
                self.build_put_if(item, ABSENT, None)
            }
            AccountOfNewSubscriptions::Existing(id, state) => self.build_creation_count(id, state, created_in(id)),
        });
        let subscriptions = many.subscriptions.iter().flat_map(|(subscription, request)| {
            [
                self.build_put_if(subscription.to_item(), ABSENT, None),
                self.build_put(subscription_code_item(subscription)),
                self.build_idempotency_put(request),
            ]
        });
        let outcome = self.transact_with_retries(accounts.chain(subscriptions).collect()).await?;
        Ok(matches!(outcome, TransactionOutcome::Written))
    }

    /// Builds the write that adds `created` creations to the count of `account`, on condition that the account exists,
    /// that its erasure was not requested, and that the count is still that of `state`.
    fn build_creation_count(&self, account: &AccountId, state: &AccountState, created: usize) -> TransactWriteItem {
        let is_unchanged = match state.creations {
            0 => "attribute_not_exists(#Creations)",
            _ => "#Creations = :seen",
        };
        let created = u64::try_from(created).unwrap_or(u64::MAX);
        let mut values = dynamo::values([(":after", n(state.creations.saturating_add(created)))]);
        if state.creations > 0 {
            values.insert(":seen".to_owned(), n(state.creations));
        }
        let condition = format!("{IS_NOT_ERASED} AND {is_unchanged}");
        let update = self.build_update(keys::key_of_account(account), "SET #Creations = :after", &condition, values);
        TransactWriteItem::builder().update(update).build()
    }
}
