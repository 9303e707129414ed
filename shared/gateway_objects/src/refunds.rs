//! Refunds: reserve the amount on the receipt, request the refund at the gateway, and settle its outcome.
//!
//! The amount is reserved in the same transaction that stores the refund, so the refunds of a payment never exceed the
//! payment. A refund with an unknown outcome is looked up in the gateway's list of the payment's refunds. Until its
//! outcome is found, the refund is pending, and its amount stays reserved. A pending refund is requested again only
//! after another look-up and under the same idempotency key, so a crash never refunds the same money twice.

mod ids;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

use crate::GatewayAccountCheck;
use billing::{
    AccountId, ActionKind, CheckedRefundAmount, GatewayToken, MAX_EXPECTED_CLOCK_DIFFERENCE, Money, NewAction,
    REFUSED_BY_GATEWAY, Receipt, ReceiptId, Refund, RefundDemand, RefundRefusal, RefundStatus, RequestedAmount,
};
use clock::Clock;
use gateways as gateway;
use gateways::{GatewayError, GatewayRefund, RefundRequest, RefundResponse, RefundState};
use store::{DailyRefundLimit, NotRewritten, Table, TableError};

use ids::id_of_gateway_refund;
pub use ids::{refund_id_with_key, refund_id_without_key};

/// How long a worker leases a refund. During the lease, no other worker requests the refund. A request to the gateway
/// ends before the lease.
const REFUND_LEASE: TimeDelta = TimeDelta::minutes(2);

/// Refunds payments at the gateway, and stores the refunds in the table.
#[derive(Clone, Debug)]
pub struct RefundRequester {
    table: Table,
    gateway: Arc<dyn gateway::Refunds>,
    account_check: GatewayAccountCheck,
    clock: Arc<dyn Clock>,
}

/// The reason why a refund failed or was not requested.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
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
    #[error("the refund {id} was requested before with another amount; a new refund needs a new idempotency key")]
    AmountMismatch { id: Ulid },
    #[error("another request for a refund of this receipt is in progress; repeat this request in two minutes")]
    InProgress,
    #[error(
        "inconsistency: the refund {id} is stored as failed, but has not failed at the gateway: too much may be refunded"
    )]
    SucceededAfterFailure { id: Ulid },
}

impl RefundError {
    /// Returns the name of the error, such as `SucceededAfterFailure`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }
}

impl RefundRequester {
    /// Creates the service that refunds payments at `gateway` whose receipts are in `table`.
    pub fn new(table: Table, gateway: Arc<dyn gateway::Refunds>, clock: Arc<dyn Clock>) -> Self {
        Self { table, gateway, account_check: GatewayAccountCheck::default(), clock }
    }

    /// Makes the refund `id` of the receipt's payment, with the amount that `demand` asks for. Requests with the same id
    /// are requests for the same refund: the refund is made only once, and a repeated request looks up the refund while
    /// it is pending. Before a new refund is made, other pending refunds of the receipt are settled. Writes `action` to
    /// the action log if the refund is new, or is made again after the gateway refused it. If the refund contains
    /// disputed money, the entry has the kind [`ActionKind::RefundAlthoughDisputed`].
    ///
    /// # Errors
    /// - [`RefundError::AmountMismatch`] if the refund `id` was requested with another amount before.
    /// - [`RefundError::NoReceipt`] if the receipt does not exist or has expired.
    /// - [`RefundError::Refused`] if the receipt does not allow a refund of this amount.
    /// - [`RefundError::InProgress`] if another request has leased a refund of the receipt, or has changed the receipt.
    /// - [`RefundError::Gateway`] if the gateway refused the request before it began a refund, or if the outcome of
    ///   another pending refund is still unknown. The refund was not made.
    /// - [`RefundError::Table`] if a request to the table failed. Repeat the same call.
    pub async fn refund(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        id: Ulid,
        demand: impl Into<RefundDemand>,
        action: Option<&NewAction>,
    ) -> Result<Refund, RefundError> {
        let demand = demand.into();
        self.account_check.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let (mut same, others): (Vec<Refund>, Vec<Refund>) =
            self.table.get_refunds_by_receipt(account, receipt).await?.into_iter().partition(|refund| refund.id == id);
        let before = same.pop();
        if before.as_ref().is_some_and(|before| !before.is_requested_by(demand.minor)) {
            return Err(RefundError::AmountMismatch { id });
        }
        let failed = match before {
            Some(failed) if failed.is_refused_by_gateway() => Some(failed),
            Some(before) => return self.settle_or_keep_pending(before).await,
            None => None,
        };
        for pending in others.into_iter().filter(|refund| refund.status == RefundStatus::Pending) {
            self.settle(pending).await?;
        }
        let now = self.clock.now();
        let stored = self.table.get_receipt(account, receipt, now).await?.ok_or(RefundError::NoReceipt)?;
        let disputes = self.table.get_disputes_by_account(account).await?;
        let CheckedRefundAmount { amount, is_disputed } = stored.checked_refund_amount(demand, &disputes)?;
        let action_on_disputed = action
            .filter(|_| is_disputed)
            .map(|action| NewAction { kind: ActionKind::RefundAlthoughDisputed, ..action.clone() });
        let action = action_on_disputed.as_ref().or(action);
        let expires = self.table.refund_expiry(&stored, now);
        let requested = if demand.minor.is_some() { RequestedAmount::Exact } else { RequestedAmount::Remainder };
        let refund = Refund {
            requested: Some(requested),
            leased_until: now + REFUND_LEASE,
            ..new_pending_refund(&stored, expires, id, amount, now)
        };
        let limit = match demand.has_daily_limit {
            true => Some(self.check_daily_limit(amount, now).await?),
            false => None,
        };
        let limit = limit.as_ref();
        let reserved = match &failed {
            None => self.table.reserve_refund(&refund, &stored, action, limit).await?.then_some(refund),
            Some(failed) => self.table.reserve_refund_again(failed, refund, &stored, action, limit).await?,
        };
        match reserved {
            Some(reserved) => self.request_refund(reserved).await,
            // The amount could not be reserved, because another request has changed the receipt, its refunds or the sum of
            // the day since this request read them. The caller can repeat the request.
            None => Err(RefundError::InProgress),
        }
    }

    /// Checks that support may refund `amount` today. Returns the limit of the day. Sends two GetItem requests.
    ///
    /// # Errors
    /// [`RefundError::Refused`] if the refunds of the day would exceed the limit.
    async fn check_daily_limit(&self, amount: Money, now: DateTime<Utc>) -> Result<DailyRefundLimit, RefundError> {
        let limits = self.table.get_settings().await?.map(|settings| settings.payment_limits).unwrap_or_default();
        let on = self.table.policy().date_at(now);
        let refunded = self.table.get_support_refunds(on, amount.currency()).await?;
        Ok(DailyRefundLimit { on, most: limits.check_support_refund(refunded, amount)? })
    }

    /// Looks up the refund `id`, which was requested before, and requests it again if the gateway does not have it.
    ///
    /// # Errors
    /// - [`RefundError::NoRefund`] if the refund was never requested.
    /// - [`RefundError::InProgress`] if another request has leased the refund.
    /// - [`RefundError::Table`] if a request to the table failed.
    /// - [`RefundError::Gateway`] if the check of the gateway account failed.
    pub async fn refund_again(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        id: Ulid,
    ) -> Result<Refund, RefundError> {
        self.account_check.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let stored = self.table.get_refunds_by_receipt(account, receipt).await?;
        let refund = stored.into_iter().find(|refund| refund.id == id).ok_or(RefundError::NoRefund { id })?;
        self.settle_or_keep_pending(refund).await
    }

    /// Settles `refund` if it is pending, and returns the stored refund. If its outcome is still unknown, the refund
    /// stays pending, which is no error.
    async fn settle_or_keep_pending(&self, refund: Refund) -> Result<Refund, RefundError> {
        if refund.status != RefundStatus::Pending {
            return Ok(refund);
        }
        match self.settle(refund.clone()).await {
            Err(RefundError::Gateway(error)) => {
                tracing::warn!(refund = %refund.id, %error, error_type = error.error_type(), "the outcome of a refund is still unknown, and the refund stays pending");
                Ok(refund)
            }
            settled => settled,
        }
    }

    /// Updates the stored refunds of the receipt from the gateway's list of the refunds of `payment`. Also stores
    /// refunds that were made at the gateway itself, for example in its dashboard.
    ///
    /// # Errors
    /// [`RefundError::SucceededAfterFailure`] if a refund whose stored status is failed is pending or has succeeded at
    /// the gateway. After any other error, call this function again later.
    pub async fn update_refunds_from_gateway(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        payment: &GatewayToken,
    ) -> Result<(), RefundError> {
        self.account_check.check::<RefundError>(&self.table, self.gateway.as_ref()).await?;
        let made = self.gateway.refunds_of_payment(payment).await?;
        let known = self.table.get_refunds_by_receipt(account, receipt).await?;
        for made in made {
            match known.iter().find(|refund| made.matches(refund)) {
                Some(refund)
                    if refund.status == RefundStatus::Failed && !matches!(made.state, RefundState::Failed { .. }) =>
                {
                    return Err(RefundError::SucceededAfterFailure { id: refund.id });
                }
                Some(refund) => drop(self.store_reported_state(refund.clone(), made, false).await?),
                None => self.store_refund_made_at_gateway(account, receipt, payment, made).await?,
            }
        }
        Ok(())
    }

    /// Stores the refund `made`, which was made at the gateway itself, if it has not failed and its receipt is still
    /// stored.
    async fn store_refund_made_at_gateway(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        payment: &GatewayToken,
        made: GatewayRefund,
    ) -> Result<(), RefundError> {
        let now = self.clock.now();
        if matches!(made.state, RefundState::Failed { .. }) {
            return Ok(());
        }
        let Some(stored) = self.table.get_receipt(account, receipt, now).await? else { return Ok(()) };
        if stored.payment != *payment {
            return Ok(());
        }
        // The gateway has already made this refund, so a dispute is no reason not to store it.
        let demand = RefundDemand { although_disputed: true, ..RefundDemand::from(Some(made.amount.minor())) };
        stored.checked_refund_amount(demand, &[])?;
        let expires = self.table.refund_expiry(&stored, now);
        let refund = refund_made_at_gateway(&stored, expires, made, now);
        if self.table.reserve_refund(&refund, &stored, None, None).await? {
            Ok(())
        } else {
            Err(RefundError::InProgress)
        }
    }

    /// Leases the pending `refund`, looks it up at the gateway and stores its outcome. Requests the refund again only
    /// if the gateway does not have it.
    ///
    /// # Errors
    /// [`RefundError::InProgress`] if another request has leased the refund.
    async fn settle(&self, refund: Refund) -> Result<Refund, RefundError> {
        let now = self.clock.now();
        // A lease that ends later than any lease was written by a worker whose clock was ahead. It has ended: the refund
        // is looked up before it is requested again, with the same idempotency key.
        let latest = now + REFUND_LEASE + MAX_EXPECTED_CLOCK_DIFFERENCE;
        if refund.leased_until > now && refund.leased_until <= latest {
            return Err(RefundError::InProgress);
        }
        let leased = self.table.lease_refund(refund, now + REFUND_LEASE).await.map_err(|refused| match refused {
            NotRewritten::Unchanged(()) => RefundError::InProgress,
            NotRewritten::Missing => RefundError::NoReceipt,
            NotRewritten::Table(error) => RefundError::Table(error),
        })?;
        match self.find_at_gateway(&leased).await? {
            Some(made) => self.store_reported_state(leased, made, true).await,
            None => self.request_refund_again(leased).await,
        }
    }

    /// Requests `refund` at the gateway for the first time. If the outcome is unknown, looks up the refund. If the
    /// gateway does not list the refund, it stays pending, because the request may still take effect.
    async fn request_refund(&self, refund: Refund) -> Result<Refund, RefundError> {
        let error = match self.gateway.refund(&RefundRequest::from_refund(&refund)).await {
            RefundResponse::Made(made) => return self.store_reported_state(refund, made, true).await,
            RefundResponse::Rejected { code } => return self.store_failure(refund, code).await,
            RefundResponse::Unknown(error) => error,
        };
        if matches!(error, GatewayError::Unusable { .. } | GatewayError::Throttled { .. }) {
            // The gateway refused the request before it began a refund.
            self.store_failure(refund, REFUSED_BY_GATEWAY.to_owned()).await?;
            return Err(error.into());
        }
        tracing::warn!(refund = %refund.id, %error, error_type = error.error_type(), "the outcome of a refund is unknown");
        match self.find_at_gateway(&refund).await {
            Ok(Some(made)) => self.store_reported_state(refund, made, true).await,
            Ok(None) => Ok(refund),
            Err(error) => {
                tracing::warn!(refund = %refund.id, %error, error_type = error.error_type(), "the look-up of a refund failed, and the refund stays pending");
                Ok(refund)
            }
        }
    }

    /// Requests `refund` again. Uses the same idempotency key, because the first request may have taken effect after
    /// the last look-up. If the gateway returns no usable response, returns an error, and the refund stays pending.
    async fn request_refund_again(&self, refund: Refund) -> Result<Refund, RefundError> {
        match self.gateway.refund(&RefundRequest::from_refund(&refund)).await {
            RefundResponse::Made(made) => self.store_reported_state(refund, made, true).await,
            RefundResponse::Rejected { code } => match self.find_at_gateway(&refund).await? {
                Some(made) => self.store_reported_state(refund, made, true).await,
                None => self.store_failure(refund, code).await,
            },
            RefundResponse::Unknown(error) => Err(error.into()),
        }
    }

    /// Returns `refund` from the gateway's list of the payment's refunds, if the list contains it.
    async fn find_at_gateway(&self, refund: &Refund) -> Result<Option<GatewayRefund>, GatewayError> {
        let made = self.gateway.refunds_of_payment(&refund.payment).await?;
        Ok(made.into_iter().find(|made| made.matches(refund)))
    }

    /// Stores the state `made` that the gateway reports for `refund`. `is_leased` is true if this worker has leased the
    /// refund; its lease then ends now. A worker that processes an inbound event has no lease.
    async fn store_reported_state(
        &self,
        refund: Refund,
        made: GatewayRefund,
        is_leased: bool,
    ) -> Result<Refund, RefundError> {
        match made.state {
            RefundState::Failed { code } => {
                self.store_failure(Refund { gateway_refund: Some(made.id), ..refund }, code).await
            }
            RefundState::Succeeded => {
                Ok(self.store_final_status(refund, RefundStatus::Succeeded, Some(made.id), None).await?)
            }
            RefundState::Pending => {
                let now = self.clock.now();
                let with_gateway_id = |stored: &Refund| {
                    // If this caller has no lease, do not change the stored lease: another worker may be requesting the
                    // refund now.
                    let leased_until = if is_leased { now } else { stored.leased_until };
                    let is_pending = stored.status == RefundStatus::Pending;
                    is_pending.then(|| Refund { gateway_refund: Some(made.id.clone()), leased_until, ..stored.clone() })
                };
                Ok(self.table.change_refund(refund.clone(), with_gateway_id).await?.unwrap_or(refund))
            }
        }
    }

    /// Changes the stored `refund` to failed, for the reason `code`.
    async fn store_failure(&self, refund: Refund, code: String) -> Result<Refund, RefundError> {
        let made = refund.gateway_refund.clone();
        Ok(self.store_final_status(refund, RefundStatus::Failed, made, Some(code)).await?)
    }

    /// Changes the stored `refund` to the final `status` and returns the stored refund. A failed refund is never
    /// changed again.
    async fn store_final_status(
        &self,
        refund: Refund,
        status: RefundStatus,
        gateway_refund: Option<GatewayToken>,
        code: Option<String>,
    ) -> Result<Refund, TableError> {
        let now: DateTime<Utc> = self.clock.now();
        let settled = |stored: &Refund| {
            let (gateway_refund, code) = (gateway_refund.clone(), code.clone());
            // A refund that succeeded can still fail, if the customer's bank returns the money.
            let is_change = match stored.status {
                RefundStatus::Pending => true,
                RefundStatus::Succeeded => status == RefundStatus::Failed,
                RefundStatus::Failed => false,
            };
            is_change.then(|| Refund { status, gateway_refund, code, settled_at: Some(now), ..stored.clone() })
        };
        let stored = self.table.settle_refund(refund.clone(), settled).await?;
        Ok(stored.unwrap_or(refund))
    }
}

/// Creates a pending refund of `amount` of the payment of `receipt`. The refund expires at the Unix time `expires`, and
/// is not stored. Its lease has already expired, so that any worker can lease the refund.
fn new_pending_refund(receipt: &Receipt, expires: i64, id: Ulid, amount: Money, now: DateTime<Utc>) -> Refund {
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
        expires,
        version: 1,
    }
}

/// Creates the stored form of the refund `made`, which was made at the gateway itself, of the payment of `receipt`. The
/// refund expires at the Unix time `expires`. `made` must be pending or have succeeded.
pub fn refund_made_at_gateway(receipt: &Receipt, expires: i64, made: GatewayRefund, now: DateTime<Utc>) -> Refund {
    let id = made.refund.unwrap_or_else(|| id_of_gateway_refund(&made.id));
    let has_succeeded = made.state == RefundState::Succeeded;
    Refund {
        status: if has_succeeded { RefundStatus::Succeeded } else { RefundStatus::Pending },
        settled_at: has_succeeded.then_some(now),
        gateway_refund: Some(made.id),
        ..new_pending_refund(receipt, expires, id, made.amount, now)
    }
}
