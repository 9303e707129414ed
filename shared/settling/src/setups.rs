//! How a customer gives a payment method: on a page of the gateway's own, so that no card data ever reaches us. What was given
//! there is attached to the account's subscriptions, and makes what they owe payable at the next run.

use std::sync::Arc;

use chrono::NaiveDate;
use ulid::Ulid;

use crate::Ours;
use billing::{
    Account, AccountId, Changes, GatewayToken, LeadDays, Refusal, Setup, Status, Subscription, SubscriptionId,
};
use clock::Clock;
use gateways::{GatewayError, PageRequest, PageState, PaymentMethodPages};
use store::{Changed, Paging, Table, TableError};

/// Why a setup was not opened or completed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error("there is no subscription {0} in the account")]
    NoSubscription(SubscriptionId),
    #[error("the subscription {0} is cancelled")]
    Cancelled(SubscriptionId),
}

/// Opens and completes setups.
#[derive(Clone, Debug)]
pub struct Setups {
    table: Table,
    pages: Arc<dyn PaymentMethodPages>,
    ours: Ours,
    lead: LeadDays,
    clock: Arc<dyn Clock>,
}

impl Setups {
    /// Setups on the pages of one gateway, of the accounts in `table`.
    pub fn new(table: Table, pages: Arc<dyn PaymentMethodPages>, lead: LeadDays, clock: Arc<dyn Clock>) -> Self {
        Self { table, pages, ours: Ours::default(), lead, clock }
    }

    /// Opens a page for `account`, from which the customer comes back to what `return_url` makes of the setup's id. It is not
    /// kept yet: `Table::create_setup` keeps it.
    ///
    /// # Errors
    /// [`SetupError`].
    pub async fn open(
        &self,
        account: &Account,
        subscriptions: Option<Vec<SubscriptionId>>,
        return_url: impl Fn(Ulid) -> String,
    ) -> Result<Setup, SetupError> {
        self.ours.check::<SetupError>(&self.table, self.pages.as_ref()).await?;
        let (id, created_at) = (self.clock.ulid(), self.clock.now());
        let customer = self.customer(&account.id, subscriptions.as_deref()).await?;
        let request = PageRequest {
            setup: id,
            account: account.id.clone(),
            email: account.email.clone(),
            customer,
            return_url: return_url(id),
        };
        let page = self.pages.open_page(&request).await?;
        Ok(Setup {
            id,
            account: account.id.clone(),
            page: page.id,
            url: page.url,
            subscriptions,
            created_at,
            expires_at: page.expires_at,
            payment_method: None,
            version: 1,
        })
    }

    /// The gateway's customer, if all subscriptions that are to use what is given have the same one.
    async fn customer(
        &self,
        account: &AccountId,
        named: Option<&[SubscriptionId]>,
    ) -> Result<Option<GatewayToken>, SetupError> {
        let stored = self.table.get_subscriptions_by_account(account, &Paging::all()).await?.whole()?.items;
        for id in named.unwrap_or_default() {
            match stored.iter().find(|subscription| subscription.id == *id) {
                None => return Err(SetupError::NoSubscription(*id)),
                Some(found) if found.status == Status::Cancelled => return Err(SetupError::Cancelled(*id)),
                Some(_) => {}
            }
        }
        let is_meant = |id: &SubscriptionId| named.is_none_or(|named| named.contains(id));
        let mut customers = stored
            .iter()
            .filter(|subscription| is_meant(&subscription.id) && subscription.status != Status::Cancelled)
            .map(|subscription| &subscription.payment_method.customer);
        let first = customers.next().cloned();
        Ok(first.filter(|first| customers.all(|other| other == first)))
    }

    /// Asks the gateway what has become of `setup`, and attaches what was given, where nothing was given later: whoever comes back to
    /// an older setup does not put an older card in the place of a newer one. Cut short, it is completed when it is asked again.
    ///
    /// # Errors
    /// [`SetupError`].
    pub async fn complete(&self, setup: Setup, today: NaiveDate) -> Result<Setup, SetupError> {
        if setup.payment_method.is_some() {
            return Ok(setup);
        }
        self.ours.check::<SetupError>(&self.table, self.pages.as_ref()).await?;
        let PageState::Complete { payment_method: given, given_at } = self.pages.page_state(&setup.page).await? else {
            return Ok(setup);
        };
        let ids = match &setup.subscriptions {
            Some(named) => named.clone(),
            None => {
                let all = self.table.get_subscriptions_by_account(&setup.account, &Paging::all()).await?.whole()?;
                all.items.into_iter().map(|subscription| subscription.id).collect()
            }
        };
        let (payment_method, payment_method_at) = (Some(given.clone()), Some(given_at));
        let changes = Changes { payment_method, payment_method_at, ..Changes::default() };
        let disputes = self.table.get_disputes_by_account(&setup.account).await?;
        for id in ids {
            let change = |stored: &Subscription| {
                Ok::<_, Refusal>(stored.change(&changes, self.lead, today)?.disputed_anew(stored, &disputes))
            };
            let changed = self.table.change_subscription(&setup.account, id, None, |_| String::new(), change).await?;
            match changed {
                Changed::Applied(_) => {}
                // It was cancelled meanwhile: there is nothing to pay.
                Changed::Refused(_) | Changed::Missing | Changed::Replayed(_) => {
                    tracing::info!(account = %setup.account, subscription = %id, "needs no payment method any more");
                }
            }
        }
        let completed = |stored: &Setup| {
            let payment_method = stored.payment_method.clone().or_else(|| Some(given.clone()));
            Some(Setup { payment_method, ..stored.clone() })
        };
        let kept = self.table.change_setup(setup.clone(), completed).await?;
        Ok(kept.unwrap_or(Setup { payment_method: Some(given), ..setup }))
    }
}
