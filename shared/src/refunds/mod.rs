//! Refunds: reserved on the receipt, asked of the gateway, settled.
//!
//! The reservation and the refund's item are one transaction, so that the parts of a payment are never more than the whole. What the
//! gateway was asked and did not answer is pending: it is looked up there by its id before it is asked again, under the same key, so
//! that no crash gives anything back twice.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use crate::billing::{AccountId, GatewayToken, ReceiptId, Refund, RefundRefusal, RefundStatus};
use crate::clock::Clock;
use crate::gateway::{self, GatewayError, Ours, RefundAnswer, RefundMade, RefundRequest, RefundState};
use crate::table::{Reserved, Table, TableError};

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
    #[error("a refund of {id} is of another receipt or amount")]
    OtherRefund { id: Ulid },
    #[error("the gateway is being asked for a refund of it at this moment")]
    InProgress,
    #[error(
        "the gateway says that the refund {id} was given, and here it has failed: more may be given back than was asked for"
    )]
    GivenAfterAll { id: Ulid },
}

/// One that was given at the gateway itself has no name of ours.
fn is_of(made: &RefundMade, refund: &Refund) -> bool {
    made.refund == Some(refund.id) || refund.gateway_refund.as_ref() == Some(&made.id)
}

/// The same id for the same refund, whenever it is heard of.
fn named_after(gateway_refund: &GatewayToken) -> Ulid {
    let digest = Sha256::digest(gateway_refund.as_str());
    Ulid::from_bytes(std::array::from_fn(|place| digest[place]))
}

impl Refunds {
    /// Refunds of what was paid through `gateway`, on the receipts in `table`.
    pub fn new(table: Table, gateway: Arc<dyn gateway::Refunds>, clock: Arc<dyn Clock>) -> Self {
        Self { table, gateway, ours: Ours::default(), clock }
    }

    /// Gives `minor` of the receipt back, or all that is left of it, as the refund `id`: asked for again under the same id, it is
    /// given once. One that stays pending is settled when it is asked for again, or another one of its receipt is.
    ///
    /// # Errors
    /// [`RefundError`]; nothing was given back then, unless it says [`RefundError::InProgress`] or is the table's: then the same
    /// refund is asked for again.
    pub async fn refund(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        id: Ulid,
        minor: Option<i64>,
    ) -> Result<Refund, RefundError> {
        self.ours.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let mut before = None;
        for refund in self.table.get_refunds_by_receipt(account, receipt).await? {
            let is_it = refund.id == id;
            let settled = match refund.status {
                RefundStatus::Pending => self.settle(refund).await?,
                RefundStatus::Succeeded | RefundStatus::Failed => refund,
            };
            if is_it {
                before = Some(settled);
            }
        }
        if let Some(before) = before {
            let is_same = minor.is_none_or(|minor| minor == before.amount.minor());
            return if is_same { Ok(before) } else { Err(RefundError::OtherRefund { id }) };
        }
        let now = self.clock.now();
        let stored = self.table.get_receipt(account, receipt, now).await?.ok_or(RefundError::NoReceipt)?;
        let amount = stored.refundable(minor)?;
        let refund = Refund {
            id,
            account: account.clone(),
            receipt: receipt.clone(),
            payment: stored.payment.clone(),
            amount,
            status: RefundStatus::Pending,
            gateway_refund: None,
            code: None,
            created_at: now,
            leased_until: now + LEASE,
            settled_at: None,
            expires: self.table.receipt_expires(&stored),
            version: 1,
        };
        match self.table.reserve_refund(&refund, &stored).await? {
            Reserved::Reserved => self.ask(refund).await,
            // Somebody else was quicker: as it is now, it is decided anew by whoever asks again.
            Reserved::Conflict => Err(RefundError::InProgress),
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
            match known.iter().find(|refund| is_of(&made, refund)) {
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
        let refund = Refund {
            id: made.refund.unwrap_or_else(|| named_after(&made.id)),
            account: account.clone(),
            receipt: receipt.clone(),
            payment: payment.clone(),
            amount: stored.refundable(Some(made.amount.minor()))?,
            status,
            gateway_refund: Some(made.id),
            code: None,
            created_at: now,
            leased_until: now,
            settled_at,
            expires: self.table.receipt_expires(&stored),
            version: 1,
        };
        match self.table.reserve_refund(&refund, &stored).await? {
            Reserved::Reserved => Ok(()),
            Reserved::Conflict => Err(RefundError::InProgress),
        }
    }

    /// Brings a pending refund to its end, if its lease has lapsed: looked up first, and asked for again only if it is not known.
    async fn settle(&self, refund: Refund) -> Result<Refund, RefundError> {
        let now = self.clock.now();
        if refund.leased_until > now {
            return Err(RefundError::InProgress);
        }
        let seen = refund.leased_until;
        let lease = |stored: &Refund| {
            let is_ours = stored.status == RefundStatus::Pending && stored.leased_until == seen;
            is_ours.then(|| Refund { leased_until: now + LEASE, ..stored.clone() })
        };
        let held = self.table.change_refund(refund, lease).await?.ok_or(RefundError::NoReceipt)?;
        if held.leased_until != now + LEASE {
            return Err(RefundError::InProgress);
        }
        match self.look_up(&held).await? {
            Some(made) => self.made(held, made, true).await,
            None => self.ask_again(held).await,
        }
    }

    /// Asks the gateway for `refund`, of which it was not asked before.
    async fn ask(&self, refund: Refund) -> Result<Refund, RefundError> {
        match self.gateway.refund(&RefundRequest::of(&refund)).await {
            RefundAnswer::Made(made) => self.made(refund, made, true).await,
            RefundAnswer::Rejected { code } => self.failed(refund, code).await,
            // Nothing was begun.
            RefundAnswer::NotKnown(error @ (GatewayError::Unusable { .. } | GatewayError::Throttled { .. })) => {
                self.failed(refund, "not_asked".to_owned()).await?;
                Err(error.into())
            }
            RefundAnswer::NotKnown(error) => {
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
        Ok(made.into_iter().find(|made| is_of(made, refund)))
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
