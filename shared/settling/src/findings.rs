//! Successful payments without a receipt: settled if nothing speaks against it, else stored until a person decides.

use chrono::NaiveDate;

use billing::{
    AccountId, Finding, GatewayToken, LateSuccess, Payment, PaymentStatus, Period, ResolvedFinding, Settlement, Sku,
    Subscription,
};
use gateways::{GatewayError, RefundState, Refunds};
use store::{Rewritten, TableError};

use super::Settling;

/// Logged for each new finding. An alarm in `template.yaml` matches it.
pub const NO_RECEIPT: &str = "a successful payment has no receipt";

/// What became of a successful payment without a receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Late {
    /// It has its receipt now, and the subscription has advanced by it.
    Settled(Box<Subscription>),
    /// It is a finding.
    Found(Box<Finding>),
    /// It has a receipt, or an attempt of its period is open: runs and events settle it.
    Elsewhere,
    /// There is no such subscription.
    Missing,
}

/// What a person decides about a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The payment pays the period that is due: it gets its receipt.
    Receipt,
    /// The payment was dealt with at the gateway, such as by a refund. The period is charged again if it is owed.
    Close,
    /// As [`Decision::Close`], though the gateway still has the payment and its period is owed.
    CloseAlthoughPaid,
}

/// Why a finding was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum FindingError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error("there is no open finding about the payment {payment} in the account {account}")]
    Missing { account: AccountId, payment: GatewayToken },
    #[error(
        "the gateway still has the payment {payment}, and its period is owed: it would be charged again. Refund the \
         payment at the gateway first, or give it its receipt"
    )]
    StillPaid { payment: GatewayToken },
    #[error("{payment} cannot get a receipt: {reason}")]
    NoReceipt { payment: GatewayToken, reason: &'static str },
}

/// A sentence about the findings that are `open`; `None` if there are none. No day of the payments is done while there are some.
pub fn unresolved(open: &[Finding]) -> Option<String> {
    let payments: Vec<&str> = open.iter().take(3).map(|finding| finding.payment.as_str()).collect();
    let more = if open.len() > payments.len() { " and others" } else { "" };
    (!open.is_empty()).then(|| {
        format!("successful payments have no receipt: {}{more}; resolve them (dueday findings)", payments.join(", "))
    })
}

/// Looks after successful payments without a receipt.
#[derive(Debug)]
pub struct Findings<'a> {
    pub settling: &'a Settling,
    pub gateway: &'a dyn Refunds,
}

impl Findings<'_> {
    /// Settles the success `payment` for `sku` on the day `today`, or stores it as a finding.
    ///
    /// # Errors
    /// [`FindingError::Table`] or [`FindingError::Gateway`]: nothing was decided.
    pub async fn take(&self, payment: &Payment, sku: &Sku, today: NaiveDate) -> Result<Late, FindingError> {
        let (account, id) = (&payment.account, payment.subscription);
        let Some(stored) = self.settling.table.get_subscription(account, id).await? else { return Ok(Late::Missing) };
        let (period, now) = (Period::of(payment.due_on), self.settling.clock.now());
        let receipt = self.settling.table.get_receipt_of_month(account, id, period, now).await?;
        let is_open = |stored: &Subscription| {
            stored.attempt.as_ref().is_some_and(|open| Period::of(open.due_on) == Period::of(payment.due_on))
        };
        if receipt.as_ref().is_some_and(|receipt| receipt.payment == payment.id) || is_open(&stored) {
            return Ok(Late::Elsewhere);
        }
        let record = self.settling.table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
        let late = LateSuccess {
            payment,
            record: record.as_ref(),
            is_refunded: self.is_refunded(&payment.id).await?,
            is_paid_by_another: receipt.is_some(),
        };
        let settle = |stored: &Subscription| stored.settle_late(&late, self.settling.policy.lead, today, now);
        let reason = match self.settling.settle_late(stored.clone(), payment.amount, settle).await? {
            Rewritten::Applied(settled) => {
                self.settling.count_or_warn(today, settled.shard).await;
                return Ok(Late::Settled(Box::new(settled)));
            }
            Rewritten::Gone => return Ok(Late::Missing),
            Rewritten::Left(reason) => reason,
        };
        // The settlement may have been written by a try whose response was lost, or by another worker meanwhile.
        let receipt = self.settling.table.get_receipt_of_month(account, id, period, now).await?;
        if receipt.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(Late::Elsewhere);
        }
        let judge = |stored: &Subscription| Finding {
            account: account.clone(),
            subscription: id,
            sku: sku.clone(),
            due_on: payment.due_on,
            payment: payment.id.clone(),
            amount: payment.amount,
            reason,
            blocks: stored.is_blocked_by(payment.due_on, reason),
            found_at: now,
            resolved: None,
            version: 1,
        };
        let found = self.settling.table.put_finding(stored, judge).await?;
        if found.resolved.is_none() {
            tracing::error!(%account, %id, payment = %payment.id, %reason, "{NO_RECEIPT}");
        }
        Ok(Late::Found(Box::new(found)))
    }

    /// Resolves the finding about `payment` of `account` as a person has decided, for the reason `because`.
    ///
    /// # Errors
    /// [`FindingError`].
    pub async fn resolve(
        &self,
        (account, payment): (&AccountId, &GatewayToken),
        decision: Decision,
        because: &str,
        today: NaiveDate,
    ) -> Result<Subscription, FindingError> {
        let missing = || FindingError::Missing { account: account.clone(), payment: payment.clone() };
        let all = self.settling.table.get_findings_by_account(account).await?;
        let is_it = |found: &&Finding| found.payment == *payment && found.resolved.is_none();
        let open = all.iter().find(is_it).ok_or_else(missing)?;
        let stored = self.settling.table.get_subscription(account, open.subscription).await?.ok_or_else(missing)?;
        let known = self.gateway.payment(payment).await?;
        let paid = known.filter(|known| known.status == PaymentStatus::Succeeded);
        let is_kept = paid.is_some() && !self.is_refunded(payment).await?;
        let now = self.settling.clock.now();
        let settle = |stored: &Subscription| -> Result<Settlement, FindingError> {
            let is_owed = stored.is_blocked_by(open.due_on, open.reason);
            match (decision, &paid) {
                (Decision::Receipt, Some(paid)) if is_kept => {
                    let is_due = Period::of(stored.due_on) == Period::of(open.due_on) && stored.attempt.is_none();
                    let reason = "its period is not the one that is due, or a payment of it is in progress";
                    if !is_due {
                        return Err(FindingError::NoReceipt { payment: payment.clone(), reason });
                    }
                    Ok(stored.pay_late(paid, self.settling.policy.lead, today, now))
                }
                (Decision::Receipt, _) => {
                    let reason = "the gateway does not have it as paid, or has refunded it";
                    Err(FindingError::NoReceipt { payment: payment.clone(), reason })
                }
                (Decision::Close, _) if is_kept && is_owed => Err(FindingError::StillPaid { payment: payment.clone() }),
                (Decision::Close | Decision::CloseAlthoughPaid, _) => Ok(stored.clone().into()),
            }
        };
        let resolved = Finding {
            resolved: Some(ResolvedFinding { at: now, reason: because.to_owned() }),
            version: open.version + 1,
            ..open.clone()
        };
        let table = &self.settling.table;
        let settled = table.resolve_finding(stored, open, &resolved, settle).await?.ok_or_else(missing)??;
        if let (Decision::Receipt, Some(paid)) = (decision, &paid) {
            self.settling.charged(paid.amount);
            self.settling.count_or_warn(today, settled.shard).await;
        }
        Ok(settled)
    }

    /// Whether the gateway has given back any of `payment`, or is about to.
    async fn is_refunded(&self, payment: &GatewayToken) -> Result<bool, GatewayError> {
        let refunds = self.gateway.refunds_of(payment).await?;
        Ok(refunds.iter().any(|refund| !matches!(refund.state, RefundState::Failed { .. })))
    }
}
