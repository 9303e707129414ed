//! Refunds: reserved on the receipt, asked of the gateway, settled.
//!
//! The reservation and the refund's item are one transaction, so that the parts of a payment are never more than the whole. A refund
//! whose outcome is unknown is looked up in the gateway's list of the payment's refunds, and is pending until that list or a later
//! request says what has become of it. It counts against what is left of the payment meanwhile. It is asked for again only after another
//! look-up, under the same key, so that no crash refunds the same money twice.

mod ids;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

use crate::Ours;
use billing::{
    AccountId, GatewayToken, Money, NOT_ASKED, Receipt, ReceiptId, Refund, RefundRefusal, RefundStatus, RequestedAmount,
};
use clock::Clock;
use gateways as gateway;
use gateways::{GatewayError, RefundAnswer, RefundMade, RefundRequest, RefundState};
use store::{Rewritten, Table, TableError};

use ids::named_after;
pub use ids::{id_with_key, id_without_key};

/// Nobody else asks the gateway for a refund for this long: longer than a request to it takes.
const LEASE: TimeDelta = TimeDelta::minutes(2);

/// Gives payments back.
#[derive(Clone, Debug)]
pub struct Refunds {
    table: Table,
    gateway: Arc<dyn gateway::Refunds>,
    ours: Ours,
    clock: Arc<dyn Clock>,
}

/// Why nothing was given back.
#[derive(Debug, thiserror::Error)]
pub enum RefundError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error("there is no such receipt, or it has expired")]
    NoReceipt,
    #[error(transparent)]
    Refused(#[from] RefundRefusal),
    #[error("there is no refund {id} of this receipt")]
    NoRefund { id: Ulid },
    #[error("the refund {id} was asked for with another amount")]
    OtherRefund { id: Ulid },
    #[error("another request for a refund of this receipt is in progress; repeat this one in two minutes")]
    InProgress,
    #[error(
        "the gateway says that the refund {id} was given, and here it has failed: more may be given back than was asked for"
    )]
    GivenAfterAll { id: Ulid },
}

impl Refunds {
    /// Refunds of what was paid through `gateway`, on the receipts in `table`.
    pub fn new(table: Table, gateway: Arc<dyn gateway::Refunds>, clock: Arc<dyn Clock>) -> Self {
        Self { table, gateway, ours: Ours::default(), clock }
    }

    /// Refunds `minor` of the receipt, or all that is left of it, as the refund `id`. The same request under the same id is the same
    /// refund: it is made once, and looked up while it is pending. Other pending refunds of the receipt are settled first.
    ///
    /// # Errors
    /// [`RefundError::OtherRefund`] if the refund `id` was asked for with another amount. [`RefundError::InProgress`] if another request
    /// holds a refund of the receipt. [`RefundError::Gateway`] if the gateway refused the request before it began, or did not say what
    /// has become of another pending refund: nothing was made then. After a [`RefundError::Table`], repeat the same request.
    pub async fn refund(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        id: Ulid,
        minor: Option<i64>,
    ) -> Result<Refund, RefundError> {
        self.ours.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let (mut same, others): (Vec<Refund>, Vec<Refund>) =
            self.table.get_refunds_by_receipt(account, receipt).await?.into_iter().partition(|refund| refund.id == id);
        let before = same.pop();
        if before.as_ref().is_some_and(|before| !before.is_requested_by(minor)) {
            return Err(RefundError::OtherRefund { id });
        }
        let failed = match before {
            Some(failed) if failed.is_not_asked() => Some(failed),
            Some(before) => return self.settle_or_pending(before).await,
            None => None,
        };
        for pending in others.into_iter().filter(|refund| refund.status == RefundStatus::Pending) {
            self.settle(pending).await?;
        }
        let now = self.clock.now();
        let stored = self.table.get_receipt(account, receipt, now).await?.ok_or(RefundError::NoReceipt)?;
        let requested = if minor.is_some() { RequestedAmount::Exact } else { RequestedAmount::Remainder };
        let refund = Refund {
            requested: Some(requested),
            leased_until: now + LEASE,
            ..self.pending(&stored, id, stored.refundable(minor)?, now)
        };
        let reserved = match &failed {
            None => self.table.reserve_refund(&refund, &stored).await?.then_some(refund),
            Some(failed) => self.table.reserve_refund_again(failed, refund, &stored).await?,
        };
        match reserved {
            Some(reserved) => self.ask(reserved).await,
            // Another request was quicker: the next request starts from what it has written.
            None => Err(RefundError::InProgress),
        }
    }

    /// Looks up the refund `id` again, which was asked for before, and asks the gateway for it again if the gateway does not know it.
    ///
    /// # Errors
    /// [`RefundError::NoRefund`] if it was never asked for. [`RefundError::InProgress`] if another request holds it.
    pub async fn refund_again(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        id: Ulid,
    ) -> Result<Refund, RefundError> {
        self.ours.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let stored = self.table.get_refunds_by_receipt(account, receipt).await?;
        let refund = stored.into_iter().find(|refund| refund.id == id).ok_or(RefundError::NoRefund { id })?;
        self.settle_or_pending(refund).await
    }

    /// Returns `refund` as it is after a look-up. It stays pending if the gateway does not say what has become of it.
    async fn settle_or_pending(&self, refund: Refund) -> Result<Refund, RefundError> {
        if refund.status != RefundStatus::Pending {
            return Ok(refund);
        }
        match self.settle(refund.clone()).await {
            Err(RefundError::Gateway(error)) => {
                tracing::warn!(refund = %refund.id, %error, "a refund stays pending");
                Ok(refund)
            }
            settled => settled,
        }
    }

    /// Returns a new pending refund of `amount` of the payment of `receipt`.
    fn pending(&self, receipt: &Receipt, id: Ulid, amount: Money, now: DateTime<Utc>) -> Refund {
        Refund {
            id,
            account: receipt.account.clone(),
            receipt: receipt.id(),
            payment: receipt.payment.clone(),
            amount,
            requested: None,
            status: RefundStatus::Pending,
            gateway_refund: None,
            code: None,
            created_at: now,
            leased_until: now,
            settled_at: None,
            expires: self.table.receipt_expires(receipt),
            version: 1,
        }
    }

    /// Brings the refunds of the receipt to what the gateway says of `payment` now: those that were asked for here, and those that were
    /// given at the gateway itself.
    ///
    /// # Errors
    /// [`RefundError`]: they are to be looked at again.
    pub async fn look_at(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        payment: &GatewayToken,
    ) -> Result<(), RefundError> {
        self.ours.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let made = self.gateway.refunds_of(payment).await?;
        let known = self.table.get_refunds_by_receipt(account, receipt).await?;
        for made in made {
            match known.iter().find(|refund| made.is_of(refund)) {
                Some(refund)
                    if refund.status == RefundStatus::Failed && !matches!(made.state, RefundState::Failed { .. }) =>
                {
                    return Err(RefundError::GivenAfterAll { id: refund.id });
                }
                Some(refund) => drop(self.made(refund.clone(), made, false).await?),
                None => self.given_elsewhere(account, receipt, payment, made).await?,
            }
        }
        Ok(())
    }

    /// Keeps a refund that was not asked for here, if its receipt is kept.
    async fn given_elsewhere(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        payment: &GatewayToken,
        made: RefundMade,
    ) -> Result<(), RefundError> {
        let now = self.clock.now();
        let (status, settled_at) = match made.state {
            RefundState::Pending => (RefundStatus::Pending, None),
            RefundState::Succeeded => (RefundStatus::Succeeded, Some(now)),
            RefundState::Failed { .. } => return Ok(()),
        };
        let Some(stored) = self.table.get_receipt(account, receipt, now).await? else { return Ok(()) };
        if stored.payment != *payment {
            return Ok(());
        }
        let id = made.refund.unwrap_or_else(|| named_after(&made.id));
        let amount = stored.refundable(Some(made.amount.minor()))?;
        let pending = self.pending(&stored, id, amount, now);
        let refund = Refund { status, gateway_refund: Some(made.id), settled_at, ..pending };
        if self.table.reserve_refund(&refund, &stored).await? { Ok(()) } else { Err(RefundError::InProgress) }
    }

    /// Brings a pending refund to its end, if its lease has lapsed: looked up first, and asked for again only if it is not known.
    async fn settle(&self, refund: Refund) -> Result<Refund, RefundError> {
        let now = self.clock.now();
        if refund.leased_until > now {
            return Err(RefundError::InProgress);
        }
        let held = match self.table.lease_refund(refund, now + LEASE).await? {
            Rewritten::Applied(held) => held,
            Rewritten::Left(()) => return Err(RefundError::InProgress),
            Rewritten::Gone => return Err(RefundError::NoReceipt),
        };
        match self.look_up(&held).await? {
            Some(made) => self.made(held, made, true).await,
            None => self.ask_again(held).await,
        }
    }

    /// Asks the gateway for `refund`, of which it was not asked before. One with an unknown outcome is looked up, and is pending unless the
    /// gateway lists it: the request may still take effect.
    async fn ask(&self, refund: Refund) -> Result<Refund, RefundError> {
        let error = match self.gateway.refund(&RefundRequest::of(&refund)).await {
            RefundAnswer::Made(made) => return self.made(refund, made, true).await,
            RefundAnswer::Rejected { code } => return self.failed(refund, code).await,
            RefundAnswer::NotKnown(error) => error,
        };
        if matches!(error, GatewayError::Unusable { .. } | GatewayError::Throttled { .. }) {
            // Nothing was begun.
            self.failed(refund, NOT_ASKED.to_owned()).await?;
            return Err(error.into());
        }
        tracing::warn!(refund = %refund.id, %error, "the outcome of a refund is unknown");
        match self.look_up(&refund).await {
            Ok(Some(made)) => self.made(refund, made, true).await,
            Ok(None) => Ok(refund),
            Err(error) => {
                tracing::warn!(refund = %refund.id, %error, "a refund is pending");
                Ok(refund)
            }
        }
    }

    /// Asks again, under the same key, for one that may have been made since it was looked up: until the gateway says what has
    /// become of it, it stays pending.
    async fn ask_again(&self, refund: Refund) -> Result<Refund, RefundError> {
        match self.gateway.refund(&RefundRequest::of(&refund)).await {
            RefundAnswer::Made(made) => self.made(refund, made, true).await,
            RefundAnswer::Rejected { code } => match self.look_up(&refund).await? {
                Some(made) => self.made(refund, made, true).await,
                None => self.failed(refund, code).await,
            },
            RefundAnswer::NotKnown(error) => Err(error.into()),
        }
    }

    async fn look_up(&self, refund: &Refund) -> Result<Option<RefundMade>, GatewayError> {
        let made = self.gateway.refunds_of(&refund.payment).await?;
        Ok(made.into_iter().find(|made| made.is_of(refund)))
    }

    /// What the gateway has made of `refund`; `is_ours`: by our own request or look-up, under our lease.
    async fn made(&self, refund: Refund, made: RefundMade, is_ours: bool) -> Result<Refund, RefundError> {
        match made.state {
            RefundState::Failed { code } => self.failed(Refund { gateway_refund: Some(made.id), ..refund }, code).await,
            RefundState::Succeeded => Ok(self.settled(refund, RefundStatus::Succeeded, Some(made.id), None).await?),
            RefundState::Pending => {
                let now = self.clock.now();
                let known = |stored: &Refund| {
                    // Whoever is asking for it at this moment goes on.
                    let leased_until = if is_ours { now } else { stored.leased_until };
                    let is_pending = stored.status == RefundStatus::Pending;
                    is_pending.then(|| Refund { gateway_refund: Some(made.id.clone()), leased_until, ..stored.clone() })
                };
                Ok(self.table.change_refund(refund.clone(), known).await?.unwrap_or(refund))
            }
        }
    }

    async fn failed(&self, refund: Refund, code: String) -> Result<Refund, RefundError> {
        let made = refund.gateway_refund.clone();
        Ok(self.settled(refund, RefundStatus::Failed, made, Some(code)).await?)
    }

    async fn settled(
        &self,
        refund: Refund,
        status: RefundStatus,
        gateway_refund: Option<GatewayToken>,
        code: Option<String>,
    ) -> Result<Refund, TableError> {
        let now: DateTime<Utc> = self.clock.now();
        let settled = |stored: &Refund| {
            let (gateway_refund, code) = (gateway_refund.clone(), code.clone());
            // What has succeeded may come back from the customer's bank.
            let is_news = match stored.status {
                RefundStatus::Pending => true,
                RefundStatus::Succeeded => status == RefundStatus::Failed,
                RefundStatus::Failed => false,
            };
            is_news.then(|| Refund { status, gateway_refund, code, settled_at: Some(now), ..stored.clone() })
        };
        let kept = self.table.settle_refund(refund.clone(), settled).await?;
        Ok(kept.unwrap_or(refund))
    }
}
