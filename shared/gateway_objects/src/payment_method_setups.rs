//! Payment method setups: a customer enters a payment method on a checkout page of the gateway, so that no card data
//! reaches this software. The payment method is then stored in the account's subscriptions, and the next run charges
//! their owed payments.

use std::sync::Arc;

use chrono::NaiveDate;
use ulid::Ulid;

use crate::GatewayAccountCheck;
use billing::{
    Account, AccountId, ActionKind, Actor, ActorName, ChangeRefusal, GatewayToken, NewAction, PaymentMethodSetup,
    Subscription, SubscriptionChanges, SubscriptionId, SubscriptionStatus,
};
use clock::Clock;
use gateways::{CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayError};
use store::{ChangeOutcome, ChangeRecords, Paging, Table, TableError};

/// The reason why a payment method setup was not opened or completed.
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

/// Opens and completes payment method setups.
#[derive(Clone, Debug)]
pub struct PaymentMethodSetups {
    table: Table,
    pages: Arc<dyn CheckoutPages>,
    account_check: GatewayAccountCheck,
    clock: Arc<dyn Clock>,
}

impl PaymentMethodSetups {
    /// Creates the service for the accounts in `table`, with the checkout pages of one gateway.
    pub fn new(table: Table, pages: Arc<dyn CheckoutPages>, clock: Arc<dyn Clock>) -> Self {
        Self { table, pages, account_check: GatewayAccountCheck::default(), clock }
    }

    /// Opens a checkout page for `account` and returns a new setup, which the caller must store with
    /// `Table::create_setup`. `subscriptions` will use the payment method; `None` means all subscriptions of the
    /// account. `return_url` computes, from the id of the setup, the URL to which the gateway sends the customer after
    /// the checkout page.
    ///
    /// # Errors
    /// - [`SetupError::NoSubscription`] or [`SetupError::Cancelled`] if one of `subscriptions` does not exist or is
    ///   cancelled.
    /// - [`SetupError::Table`] or [`SetupError::Gateway`] if a request to the table or to the gateway failed.
    pub async fn open(
        &self,
        account: &Account,
        subscriptions: Option<Vec<SubscriptionId>>,
        return_url: impl Fn(Ulid) -> String,
    ) -> Result<PaymentMethodSetup, SetupError> {
        self.account_check.check::<SetupError>(&self.table, self.pages.as_ref()).await?;
        let (id, created_at) = (self.clock.ulid(), self.clock.now());
        let customer = self.common_customer(&account.id, subscriptions.as_deref()).await?;
        let request = CheckoutPageRequest {
            setup: id,
            account: account.id.clone(),
            email: account.email.clone(),
            customer,
            return_url: return_url(id),
        };
        let page = self.pages.create_checkout_page(&request).await?;
        Ok(PaymentMethodSetup {
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

    /// Returns the gateway's id of the customer, if all subscriptions in `named` have the same customer. If `named` is
    /// `None`, compares the customers of all subscriptions of `account` that are not cancelled. Returns `None` if the
    /// customers differ, or if there is no subscription.
    async fn common_customer(
        &self,
        account: &AccountId,
        named: Option<&[SubscriptionId]>,
    ) -> Result<Option<GatewayToken>, SetupError> {
        let stored =
            self.table.get_subscriptions_by_account(account, &Paging::all()).await?.require_all_readable()?.items;
        for id in named.unwrap_or_default() {
            match stored.iter().find(|subscription| subscription.id == *id) {
                None => return Err(SetupError::NoSubscription(*id)),
                Some(found) if found.status == SubscriptionStatus::Cancelled => return Err(SetupError::Cancelled(*id)),
                Some(_) => {}
            }
        }
        let is_selected = |id: &SubscriptionId| named.is_none_or(|named| named.contains(id));
        let mut customers = stored
            .iter()
            .filter(|subscription| {
                is_selected(&subscription.id) && subscription.status != SubscriptionStatus::Cancelled
            })
            .map(|subscription| &subscription.payment_method.customer);
        let first = customers.next().cloned();
        Ok(first.filter(|first| customers.all(|other| other == first)))
    }

    /// Reads the state of the checkout page of `setup` from the gateway. If the customer has entered a payment method,
    /// stores this payment method in the subscriptions and returns the completed setup. Otherwise, returns `setup`
    /// unchanged. Does not change a subscription whose payment method was entered later, so an older setup never
    /// replaces a newer payment method. Writes an entry to the action log for each changed subscription; the actor of
    /// the entry is the customer, identified by the public name of the setup. If the call is interrupted, the next call
    /// completes the setup.
    ///
    /// # Errors
    /// [`SetupError::Table`] or [`SetupError::Gateway`] if a request to the table or to the gateway failed.
    pub async fn complete(
        &self,
        setup: PaymentMethodSetup,
        today: NaiveDate,
    ) -> Result<PaymentMethodSetup, SetupError> {
        if setup.payment_method.is_some() {
            return Ok(setup);
        }
        self.account_check.check::<SetupError>(&self.table, self.pages.as_ref()).await?;
        let CheckoutPageState::Complete { payment_method: entered, given_at } =
            self.pages.checkout_page_state(&setup.page).await?
        else {
            return Ok(setup);
        };
        let ids = match &setup.subscriptions {
            Some(named) => named.clone(),
            None => {
                let all = self
                    .table
                    .get_subscriptions_by_account(&setup.account, &Paging::all())
                    .await?
                    .require_all_readable()?;
                all.items.into_iter().map(|subscription| subscription.id).collect()
            }
        };
        // Use the time at which the setup was created if the gateway's time is earlier: the gateway's clock may be
        // behind ours, but the customer entered the payment method after the setup was created.
        let payment_method_at = Some(given_at.max(setup.created_at));
        let payment_method = Some(entered.clone());
        let changes = SubscriptionChanges { payment_method, payment_method_at, ..SubscriptionChanges::default() };
        let disputes = self.table.get_disputes_by_account(&setup.account).await?;
        let actor = Actor::Customer(ActorName::new(&setup.public_name()));
        let action = NewAction { at: self.clock.now(), actor, kind: ActionKind::ChangeSubscription, reason: None };
        for id in ids {
            let records = ChangeRecords { request: None, action: Some(&action) };
            let change = |stored: &Subscription| {
                Ok::<_, ChangeRefusal>(
                    stored
                        .apply_changes(&changes, self.table.policy().lead, today)?
                        .with_dispute_mark_if_method_changed(stored, &disputes),
                )
            };
            let changed =
                self.table.change_subscription(&setup.account, id, records, |_| String::new(), change).await?;
            match changed {
                ChangeOutcome::Applied(_) => {}
                // The subscription was cancelled or erased after the setup was opened, so it needs no payment method.
                ChangeOutcome::Refused(_) | ChangeOutcome::Missing | ChangeOutcome::Replayed(_) => {
                    tracing::info!(account = %setup.account, subscription = %id, "a cancelled or erased subscription does not get the payment method");
                }
            }
        }
        let completed = |stored: &PaymentMethodSetup| {
            let payment_method = stored.payment_method.clone().or_else(|| Some(entered.clone()));
            Some(PaymentMethodSetup { payment_method, ..stored.clone() })
        };
        let stored = self.table.change_setup(setup.clone(), completed).await?;
        Ok(stored.unwrap_or(PaymentMethodSetup { payment_method: Some(entered), ..setup }))
    }
}
