//! Findings: successful payments without a receipt, about which a person must decide.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::records::attempt_record::AttemptRecord;
use crate::records::payment::Payment;
use crate::records::receipt::Receipt;
use crate::settings::policy::LeadDays;
use crate::settlement::settle::Settlement;
use crate::settlement::settle::settle_success;
use crate::subscriptions::subscription::Subscription;
use crate::values::calendar::Period;
use crate::values::ids::{AccountId, GatewayToken, Sku, SubscriptionId};
use crate::values::money::Money;

/// A successful payment at the gateway that has no receipt, and about which a person must decide. In a table that was
/// restored from a backup, a finding can also be a debit that the bank is still processing, if the backup does not
/// contain the attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    /// The due date for which the payment was charged.
    pub due_on: NaiveDate,
    /// The gateway's id of the payment.
    pub payment: GatewayToken,
    /// The amount that the gateway charged.
    pub amount: Money,
    pub reason: FindingReason,
    /// Whether the finding blocks charges: the subscription is not charged until a person has resolved the finding,
    /// because the same period could be charged a second time.
    pub blocks: bool,
    pub found_at: DateTime<Utc>,
    /// The decision of a person; `None` while the finding is open.
    pub resolved: Option<ResolvedFinding>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// The decision of a person about a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedFinding {
    /// When the person decided.
    pub at: DateTime<Utc>,
    /// The reason that the person gave.
    pub reason: String,
}

/// The reason why a successful payment must not get a receipt without the decision of a person.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FindingReason {
    /// The period was already paid by another payment: the customer paid twice.
    PaidTwice,
    /// The period of the payment is not the due period (for example, because the period was waived), or an attempt of
    /// the subscription is open.
    NotDue,
    /// The amount or the currency differs from that of the attempt.
    AmountDiffers,
    /// The table contains no record of the attempt.
    NoAttempt,
    /// The payment was refunded, completely or partly.
    Refunded,
}

impl Finding {
    /// Returns the period that the payment was charged for.
    pub fn period(&self) -> Period {
        Period::from_day(self.due_on)
    }
}

impl FindingReason {
    /// Returns the reason as a sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::PaidTwice => "another payment has already paid this period: the customer paid twice",
            Self::NotDue => "the payment is for a period that is not due now",
            Self::AmountDiffers => "the amount or the currency differs from that of the attempt",
            Self::NoAttempt => "there is no record of this attempt",
            Self::Refunded => "the payment was refunded, completely or partly",
        }
    }
}

/// A successful payment without a receipt, which was reported after its attempt was closed, with the facts that decide
/// whether the payment may be settled.
#[derive(Clone, Copy, Debug)]
pub struct LateSuccess<'a> {
    pub payment: &'a Payment,
    /// The record of the attempt that made the payment; `None` if the table contains no such record.
    pub record: Option<&'a AttemptRecord>,
    /// Whether the gateway has refunded the payment, completely or partly.
    pub is_refunded: bool,
    /// Whether the period already has the receipt of another payment.
    pub is_paid_by_another: bool,
}

impl Subscription {
    /// Returns the settlement of a successful payment that was reported after its attempt was closed, on these
    /// conditions:
    /// - No other payment has paid the period of the payment.
    /// - The payment is for the due period, and the subscription has no open attempt.
    /// - The table contains the record of the attempt, and the amount of the payment is that of the attempt.
    /// - The payment was not refunded.
    ///
    /// # Errors
    /// If a condition is not met, returns the reason why a person must decide about the payment.
    pub fn settle_late_payment(
        &self,
        late: &LateSuccess<'_>,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Settlement, FindingReason> {
        let LateSuccess { payment, record, is_refunded, is_paid_by_another } = late;
        if *is_paid_by_another {
            return Err(FindingReason::PaidTwice);
        }
        if payment.period() != self.due_period() || self.attempt.is_some() {
            return Err(FindingReason::NotDue);
        }
        match record {
            None => return Err(FindingReason::NoAttempt),
            Some(record) if record.amount != payment.amount => return Err(FindingReason::AmountDiffers),
            Some(_) if *is_refunded => return Err(FindingReason::Refunded),
            Some(_) => {}
        }
        Ok(self.apply_late_payment(payment, lead, today, now))
    }

    /// Returns the settlement that records `payment` as the payment of the due period. Checks no conditions. The receipt
    /// has the due date for which the customer was charged: the payment day may have been another one since then.
    pub fn apply_late_payment(
        &self,
        payment: &Payment,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Settlement {
        let settlement = settle_success(self, self.due_on, payment, lead, today, now);
        let receipt = settlement.receipt.map(|receipt| Receipt { due_on: payment.due_on, ..receipt });
        Settlement { receipt, ..settlement }
    }

    /// Returns whether a finding blocks charges of this subscription. `due_on` is the due date of the payment without a
    /// receipt, and `reason` the reason of the finding. The finding blocks charges if the payment is for the due period
    /// or a later period, and `reason` is not [`FindingReason::PaidTwice`].
    pub fn is_blocked_by(&self, due_on: NaiveDate, reason: FindingReason) -> bool {
        reason != FindingReason::PaidTwice && Period::from_day(due_on) >= self.due_period()
    }
}
