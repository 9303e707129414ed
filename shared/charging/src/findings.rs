//! Findings: successful payments that have no receipt and that could not be settled safely, and the decisions of people
//! about them.

use chrono::{DateTime, NaiveDate, Utc};

use billing::{
    AccountId, Finding, FindingReason, GatewayToken, Money, Payment, PaymentStatus, Receipt, ResolvedFinding,
    Settlement, Subscription,
};
use gateways::{GatewayError, GatewayRefund, RefundState, Refunds};
use store::{NotRewritten, TableError};

use crate::ChargingEngine;
use gateway_objects::refund_made_at_gateway;

/// The log message for each new finding. The filter of an alarm in `template.yaml` contains the same text.
pub const PAYMENT_WITHOUT_RECEIPT_MESSAGE: &str = "a successful payment has no receipt";

/// A person's decision about a finding: a successful payment without a receipt that could not be settled safely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindingDecision {
    /// The payment pays the period that is due: settle the period and write the receipt, with the refunds of the
    /// payment. Refused if the whole payment was refunded.
    Receipt,
    /// The table was restored from a backup that lacks the receipt of the payment: write this receipt, even if the whole
    /// payment was refunded since then. The customer was charged for the period and must not be charged again.
    ReceiptLostByRestore,
    /// The whole payment was refunded at the gateway, or has got its receipt since the finding was stored: close the
    /// finding without a receipt. The period is charged again if it is owed.
    Close,
    /// Close the finding without a receipt even if the merchant keeps a part of the payment. If the period is owed, it
    /// is charged again, so that the customer pays twice.
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
        "{kept} of the payment {payment} is not refunded at the gateway (a pending refund does not count): accept the payment for its \
         period, or refund the rest of it first"
    )]
    StillPaid { payment: GatewayToken, kept: Money },
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

impl ChargingEngine {
    /// Stores a finding about `payment` of the subscription `stored`. The payment has no receipt because of `reason`.
    /// Returns the stored finding. If a finding about the payment exists already,
    /// returns the existing finding. Returns `None` if the subscription no longer exists: nothing was stored.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn store_finding(
        &self,
        stored: Subscription,
        payment: &Payment,
        reason: FindingReason,
    ) -> Result<Option<Finding>, TableError> {
        let (account, id) = (&payment.account, payment.subscription);
        let now = self.clock.now();
        let new_finding = |stored: &Subscription| Finding {
            account: account.clone(),
            subscription: id,
            sku: stored.sku.clone(),
            due_on: payment.due_on,
            payment: payment.id.clone(),
            amount: payment.amount,
            reason,
            blocks: stored.is_blocked_by(payment.due_on, reason),
            found_at: now,
            resolved: None,
            version: 1,
        };
        let finding = self.table.put_finding(stored, new_finding).await?;
        if finding.as_ref().is_some_and(|finding| finding.resolved.is_none()) {
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
    pub async fn resolve_finding(
        &self,
        gateway: &dyn Refunds,
        account: &AccountId,
        payment: &GatewayToken,
        decision: FindingDecision,
        because: &str,
        today: NaiveDate,
    ) -> Result<Subscription, FindingError> {
        let missing = || FindingError::Missing { account: account.clone(), payment: payment.clone() };
        let all = self.table.get_findings_by_account(account).await?;
        let is_wanted = |found: &&Finding| found.payment == *payment && found.resolved.is_none();
        let open = all.iter().find(is_wanted).ok_or_else(missing)?;
        let stored = self.table.get_subscription(account, open.subscription).await?.ok_or_else(missing)?;
        let reported = ReportedPayment::read(gateway, payment).await?;
        let now = self.clock.now();
        let receipt = self.table.get_receipt_of_month(account, open.subscription, open.period(), now).await?;
        let has_receipt = receipt.is_some_and(|receipt| receipt.payment == *payment);
        let settle = |stored: &Subscription| match decision {
            // The payment has got its receipt since the finding was stored.
            FindingDecision::Close if has_receipt => Ok(stored.clone().into()),
            _ => self.settle_as_decided(stored, open, &reported, decision, today, now),
        };
        let resolved = Finding {
            resolved: Some(ResolvedFinding { at: now, reason: because.to_owned() }),
            version: open.version + 1,
            ..open.clone()
        };
        let action = self.action.as_ref();
        let settled = self.table.resolve_finding(stored, open, &resolved, action, settle).await;
        let settled = settled.map_err(|refused| match refused {
            NotRewritten::Unchanged(error) => error,
            NotRewritten::Missing => missing(),
            NotRewritten::Table(error) => FindingError::Table(error),
        })?;
        self.write_charge(&settled, today).await;
        Ok(settled.subscription)
    }

    /// Returns the settlement of the subscription `stored` that follows from `decision`, a person's decision about the
    /// open finding `open`, whose payment has no receipt. `reported` is the payment at the gateway.
    ///
    /// # Errors
    /// [`FindingError::StillPaid`] and [`FindingError::NoReceipt`] if the decision does not fit the state of the
    /// payment.
    fn settle_as_decided(
        &self,
        stored: &Subscription,
        open: &Finding,
        reported: &ReportedPayment,
        decision: FindingDecision,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Settlement, FindingError> {
        let no_receipt = |reason| FindingError::NoReceipt { payment: open.payment.clone(), reason };
        let kept = reported.kept_amount();
        match (decision, &reported.paid) {
            (FindingDecision::CloseAlthoughPaid, _) => Ok(stored.clone().into()),
            _ if reported.is_processing => {
                Err(no_receipt("the bank is still processing it; decide when the outcome is known"))
            }
            (FindingDecision::Receipt, _) if kept.is_none() => {
                Err(no_receipt("at the gateway it has not succeeded, or is completely refunded"))
            }
            (FindingDecision::Receipt | FindingDecision::ReceiptLostByRestore, Some(paid)) => {
                let is_due = stored.due_period() == open.period() && stored.attempt.is_none();
                if !is_due {
                    return Err(no_receipt(
                        "its period is not the subscription's due period, or another payment for it is in progress",
                    ));
                }
                let settlement = stored.apply_late_payment(paid, self.table.policy().lead, today, now);
                self.add_refunds(settlement, &reported.refunds, now)
                    .ok_or_else(|| no_receipt("its refunds at the gateway exceed the payment"))
            }
            (FindingDecision::Receipt | FindingDecision::ReceiptLostByRestore, None) => {
                Err(no_receipt("at the gateway it has not succeeded"))
            }
            (FindingDecision::Close, _) => match kept {
                Some(kept) => Err(FindingError::StillPaid { payment: open.payment.clone(), kept }),
                None => Ok(stored.clone().into()),
            },
        }
    }

    /// Adds `refunds`, the refunds that the gateway has made of the payment, to the receipt of `settlement`. Leaves out
    /// failed refunds. Returns `None` if the refunds exceed the payment.
    fn add_refunds(&self, settlement: Settlement, refunds: &[GatewayRefund], now: DateTime<Utc>) -> Option<Settlement> {
        let Settlement { receipt: Some(receipt), .. } = &settlement else { return Some(settlement) };
        let made = || refunds.iter().filter(|refund| !matches!(refund.state, RefundState::Failed { .. }));
        let refunded = made().try_fold(receipt.refunded, |sum, refund| sum.checked_add(refund.amount)).ok()?;
        if refunded.minor() > receipt.amount.minor() {
            return None;
        }
        let refunded_at = (refunded.minor() > 0).then_some(now);
        let receipt = Receipt { refunded, refunded_at, ..receipt.clone() };
        let expires = self.table.refund_expiry(&receipt, now);
        let stored = made().map(|refund| refund_made_at_gateway(&receipt, expires, refund.clone(), now));
        Some(Settlement { refunds: stored.collect(), receipt: Some(receipt), ..settlement })
    }
}

/// The payment of a finding, as the gateway reports it.
struct ReportedPayment {
    /// Whether the bank is still processing the payment.
    is_processing: bool,
    /// The payment; `None` if it has not succeeded.
    paid: Option<Payment>,
    /// The refunds of the successful payment.
    refunds: Vec<GatewayRefund>,
}

impl ReportedPayment {
    async fn read(gateway: &dyn Refunds, payment: &GatewayToken) -> Result<Self, GatewayError> {
        let reported = gateway.payment(payment).await?;
        let is_processing = reported.as_ref().is_some_and(|reported| reported.status == PaymentStatus::Processing);
        let paid = reported.filter(|reported| reported.status == PaymentStatus::Succeeded);
        let refunds = match &paid {
            Some(_) => gateway.refunds_of_payment(payment).await?,
            None => Vec::new(),
        };
        Ok(Self { is_processing, paid, refunds })
    }

    /// Returns the amount that the merchant keeps; `None` if the payment has not succeeded, or was completely refunded.
    fn kept_amount(&self) -> Option<Money> {
        self.paid.as_ref().and_then(|paid| kept_amount(paid, &self.refunds))
    }
}

/// Returns the amount of the successful `payment` that the merchant keeps after `refunds`, its refunds at the gateway;
/// `None` if the whole payment was refunded. Only refunds that have succeeded count, because a pending refund may still
/// fail.
fn kept_amount(payment: &Payment, refunds: &[GatewayRefund]) -> Option<Money> {
    let mut succeeded = refunds.iter().filter(|refund| refund.state == RefundState::Succeeded);
    let none = Money::new(0, payment.amount.currency());
    // If the refunds cannot be added up (they have another currency, or the sum is too large), assume that the merchant
    // keeps the whole payment.
    let refunded = succeeded.try_fold(none, |sum, refund| sum.checked_add(refund.amount));
    let kept = payment.amount.minor().saturating_sub(refunded.unwrap_or(none).minor());
    (kept > 0).then(|| Money::new(kept, payment.amount.currency()))
}
