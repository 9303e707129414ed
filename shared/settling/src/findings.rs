//! Handles successful payments without a receipt. Such a payment is settled if this is safe. Otherwise, it is stored as
//! a finding, which a person must resolve.

use chrono::NaiveDate;

use billing::{
    AccountId, Finding, FindingReason, GatewayToken, LateSuccess, Payment, PaymentStatus, Period, ResolvedFinding,
    Settlement, Sku, Subscription,
};
use gateways::{GatewayError, RefundState, Refunds};
use store::{RewriteOutcome, TableError};

use super::Settling;

/// The log message for each new finding. The filter of an alarm in `template.yaml` contains the same text.
pub const PAYMENT_WITHOUT_RECEIPT_MESSAGE: &str = "a successful payment has no receipt";

/// The result of handling a successful payment that has no open attempt, because the gateway reported its success late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LatePaymentOutcome {
    /// The payment was settled now: it has a receipt, and the subscription has advanced to the next period.
    Settled(Box<Subscription>),
    /// The payment is stored as a finding. If the finding was stored before, a person may have resolved it.
    FindingStored(Box<Finding>),
    /// The payment has a receipt already, or an attempt of its period is open, which a run or a gateway event will
    /// settle.
    HandledElsewhere,
    /// The subscription of the payment does not exist.
    Missing,
}

/// A person's decision about a finding: a successful payment without a receipt that could not be settled safely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindingDecision {
    /// The payment pays the period that is due: settle the period and write the receipt.
    Receipt,
    /// The payment was handled at the gateway, for example refunded: close the finding without a receipt. The period is
    /// charged again if it is owed.
    Close,
    /// Close the finding without a receipt even if the payment is not refunded at the gateway and its period is owed,
    /// so that the customer pays twice.
    CloseAlthoughPaid,
}

/// The reason why a finding was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum FindingError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error("there is no open finding about the payment {payment} in the account {account}")]
    Missing { account: AccountId, payment: GatewayToken },
    #[error(
        "the payment {payment} is not refunded at the gateway, and its period is owed: the customer would be charged again. Refund \
         the payment at the gateway first, or accept it as the payment of the period"
    )]
    StillPaid { payment: GatewayToken },
    #[error("the payment {payment} cannot get a receipt: {reason}")]
    NoReceipt { payment: GatewayToken, reason: &'static str },
}

/// Returns a message about the open findings `open`; `None` if `open` is empty. A finding is about a successful payment
/// without a receipt or, in a restored table, about a debit in progress. While there are open findings, no day of the
/// payment batch is complete.
pub fn unresolved_findings(open: &[Finding]) -> Option<String> {
    let payments: Vec<&str> = open.iter().take(3).map(|finding| finding.payment.as_str()).collect();
    let more = if open.len() > payments.len() { " and others" } else { "" };
    (!open.is_empty()).then(|| {
        format!(
            "payments at the gateway have no receipt in the table: {}{more}; a person must resolve them (dueday findings)",
            payments.join(", ")
        )
    })
}

/// Settles successful payments without a receipt, or stores them as findings, and resolves findings.
#[derive(Debug)]
pub struct Findings<'a> {
    pub settling: &'a Settling,
    pub gateway: &'a dyn Refunds,
}

impl Findings<'_> {
    /// Settles the successful `payment` on the day `today` if that is safe; otherwise stores the payment as a finding.
    /// `sku` is the SKU of the payment's subscription. Changes nothing if the payment has a receipt, if an attempt of
    /// the payment's period is open, or if a person has resolved the finding about the payment.
    ///
    /// # Errors
    /// [`FindingError::Table`] or [`FindingError::Gateway`] if a request to the table or to the gateway failed. The
    /// caller can repeat the call.
    pub async fn settle_or_store_finding(
        &self,
        payment: &Payment,
        sku: &Sku,
        today: NaiveDate,
    ) -> Result<LatePaymentOutcome, FindingError> {
        let (account, id) = (&payment.account, payment.subscription);
        let Some(stored) = self.settling.table.get_subscription(account, id).await? else {
            return Ok(LatePaymentOutcome::Missing);
        };
        let (period, now) = (Period::from_day(payment.due_on), self.settling.clock.now());
        let receipt = self.settling.table.get_receipt_of_month(account, id, period, now).await?;
        let is_period_open = |stored: &Subscription| {
            stored
                .attempt
                .as_ref()
                .is_some_and(|open| Period::from_day(open.due_on) == Period::from_day(payment.due_on))
        };
        if receipt.as_ref().is_some_and(|receipt| receipt.payment == payment.id) || is_period_open(&stored) {
            return Ok(LatePaymentOutcome::HandledElsewhere);
        }
        let findings = self.settling.table.get_findings_by_account(account).await?;
        if let Some(decided) =
            findings.into_iter().find(|found| found.payment == payment.id && found.resolved.is_some())
        {
            return Ok(LatePaymentOutcome::FindingStored(Box::new(decided)));
        }
        let record = self.settling.table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
        let late = LateSuccess {
            payment,
            record: record.as_ref(),
            is_refunded: self.is_refunded(&payment.id).await?,
            is_paid_by_another: receipt.is_some(),
        };
        let settle = |stored: &Subscription| stored.settle_late_payment(&late, self.settling.policy.lead, today, now);
        let reason = match self.settling.settle_late_payment(stored.clone(), today, settle).await? {
            RewriteOutcome::Applied(settled) => return Ok(LatePaymentOutcome::Settled(Box::new(settled))),
            RewriteOutcome::Missing => return Ok(LatePaymentOutcome::Missing),
            RewriteOutcome::Unchanged(reason) => reason,
        };
        // Read the receipt again: another worker, or an earlier try of this write whose response was lost, may have
        // settled the payment since the receipt was read above.
        let receipt = self.settling.table.get_receipt_of_month(account, id, period, now).await?;
        if receipt.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(LatePaymentOutcome::HandledElsewhere);
        }
        let finding = self.store_finding(stored, (payment, sku), reason).await?;
        Ok(LatePaymentOutcome::FindingStored(Box::new(finding)))
    }

    /// Stores a finding about `payment` of the subscription `stored`. The payment has no receipt because of `reason`.
    /// `sku` is the SKU of the subscription. Returns the stored finding. If a finding about the payment exists already,
    /// returns the existing finding.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn store_finding(
        &self,
        stored: Subscription,
        (payment, sku): (&Payment, &Sku),
        reason: FindingReason,
    ) -> Result<Finding, TableError> {
        let (account, id, now) = (&payment.account, payment.subscription, self.settling.clock.now());
        let new_finding = |stored: &Subscription| Finding {
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
        let finding = self.settling.table.put_finding(stored, new_finding).await?;
        if finding.resolved.is_none() {
            tracing::error!(%account, %id, payment = %payment.id, %reason, "{PAYMENT_WITHOUT_RECEIPT_MESSAGE}");
        }
        Ok(finding)
    }

    /// Resolves the open finding about `payment` of `account` with a person's `decision` and its reason `because`.
    /// Returns the stored subscription after the decision.
    ///
    /// # Errors
    /// - [`FindingError::Missing`] if there is no open finding about the payment.
    /// - [`FindingError::StillPaid`] and [`FindingError::NoReceipt`] if the decision does not fit the state of the
    ///   payment.
    /// - [`FindingError::Table`] and [`FindingError::Gateway`] if a request failed.
    pub async fn resolve(
        &self,
        (account, payment): (&AccountId, &GatewayToken),
        decision: FindingDecision,
        because: &str,
        today: NaiveDate,
    ) -> Result<Subscription, FindingError> {
        let missing = || FindingError::Missing { account: account.clone(), payment: payment.clone() };
        let all = self.settling.table.get_findings_by_account(account).await?;
        let is_wanted = |found: &&Finding| found.payment == *payment && found.resolved.is_none();
        let open = all.iter().find(is_wanted).ok_or_else(missing)?;
        let stored = self.settling.table.get_subscription(account, open.subscription).await?.ok_or_else(missing)?;
        let reported = self.gateway.payment(payment).await?;
        let is_processing = reported.as_ref().is_some_and(|reported| reported.status == PaymentStatus::Processing);
        let paid = reported.filter(|reported| reported.status == PaymentStatus::Succeeded);
        let is_not_refunded = paid.is_some() && !self.is_refunded(payment).await?;
        let now = self.settling.clock.now();
        let settle = |stored: &Subscription| -> Result<Settlement, FindingError> {
            let is_owed = stored.is_blocked_by(open.due_on, open.reason);
            match (decision, &paid) {
                (FindingDecision::Receipt | FindingDecision::Close, _) if is_processing => {
                    let reason = "the bank is still processing it; decide when the outcome is known";
                    Err(FindingError::NoReceipt { payment: payment.clone(), reason })
                }
                (FindingDecision::Receipt, Some(paid)) if is_not_refunded => {
                    let is_due =
                        Period::from_day(stored.due_on) == Period::from_day(open.due_on) && stored.attempt.is_none();
                    let reason =
                        "its period is not the subscription's due period, or another payment for it is in progress";
                    if !is_due {
                        return Err(FindingError::NoReceipt { payment: payment.clone(), reason });
                    }
                    Ok(stored.apply_late_payment(paid, self.settling.policy.lead, today, now))
                }
                (FindingDecision::Receipt, _) => {
                    let reason = "at the gateway it has not succeeded, or is refunded";
                    Err(FindingError::NoReceipt { payment: payment.clone(), reason })
                }
                (FindingDecision::Close, _) if is_not_refunded && is_owed => {
                    Err(FindingError::StillPaid { payment: payment.clone() })
                }
                (FindingDecision::Close | FindingDecision::CloseAlthoughPaid, _) => Ok(stored.clone().into()),
            }
        };
        let resolved = Finding {
            resolved: Some(ResolvedFinding { at: now, reason: because.to_owned() }),
            version: open.version + 1,
            ..open.clone()
        };
        self.settling.settle_finding(stored, (open, &resolved), today, settle).await?.ok_or_else(missing)?
    }

    /// Returns whether `payment` has a refund at the gateway that succeeded or is pending.
    async fn is_refunded(&self, payment: &GatewayToken) -> Result<bool, GatewayError> {
        let refunds = self.gateway.refunds_of(payment).await?;
        Ok(refunds.iter().any(|refund| !matches!(refund.state, RefundState::Failed { .. })))
    }
}
