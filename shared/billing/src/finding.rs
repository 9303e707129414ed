//! Findings: successful payments without a receipt, which a person must decide about.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use super::settle::succeeded;
use super::{
    AccountId, AttemptRecord, GatewayToken, LeadDays, Money, Payment, Period, Settlement, Sku, Subscription,
    SubscriptionId,
};

/// A successful payment at the gateway that has no receipt, and that no rule may settle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    /// The due date that was charged.
    pub due_on: NaiveDate,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    /// The amount that the gateway charged.
    pub amount: Money,
    pub reason: FindingReason,
    /// Whether the subscription is not charged until a person has resolved the finding: its period could be charged again.
    pub blocks: bool,
    pub found_at: DateTime<Utc>,
    /// When and why a person resolved it.
    pub resolved: Option<ResolvedFinding>,
    /// Raised by one with every write.
    pub version: u64,
}

/// The decision of a person about a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedFinding {
    pub at: DateTime<Utc>,
    pub reason: String,
}

/// Why a successful payment has no receipt and must not get one without a person's decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FindingReason {
    /// Another payment has paid the period: the customer paid twice.
    PaidTwice,
    /// The period is not the one that is due: it was waived, or is not due yet.
    NotDue,
    /// The amount or the currency is not that of the attempt.
    AmountDiffers,
    /// There is no record of the attempt.
    NoAttempt,
    /// The payment, or a part of it, was refunded.
    Refunded,
}

impl FindingReason {
    /// The reason as a sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::PaidTwice => "another payment has paid this period: the customer paid twice",
            Self::NotDue => "this period is not the one that is due",
            Self::AmountDiffers => "the amount or the currency is not that of the attempt",
            Self::NoAttempt => "there is no record of this attempt",
            Self::Refunded => "the payment, or a part of it, was refunded",
        }
    }
}

/// What is known about a successful payment without a receipt.
#[derive(Clone, Copy, Debug)]
pub struct LateSuccess<'a> {
    pub payment: &'a Payment,
    /// The record of the attempt that made it.
    pub record: Option<&'a AttemptRecord>,
    /// Whether the gateway has refunded any of it.
    pub is_refunded: bool,
    /// Whether the period has the receipt of another payment.
    pub is_paid_by_another: bool,
}

impl Subscription {
    /// Settles a success that arrived after its attempt was closed, if nothing speaks against it: its period is the one that is due,
    /// it has the amount of its attempt, and it was not refunded. Only for a subscription without an open attempt.
    ///
    /// # Errors
    /// The reason for which a person must decide instead.
    pub fn settle_late(
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
        if Period::of(payment.due_on) != Period::of(self.due_on) || self.attempt.is_some() {
            return Err(FindingReason::NotDue);
        }
        match record {
            None => return Err(FindingReason::NoAttempt),
            Some(record) if record.amount != payment.amount => return Err(FindingReason::AmountDiffers),
            Some(_) if *is_refunded => return Err(FindingReason::Refunded),
            Some(_) => {}
        }
        Ok(self.pay_late(payment, lead, today, now))
    }

    /// Pays the period that is due with `payment`.
    pub fn pay_late(&self, payment: &Payment, lead: LeadDays, today: NaiveDate, now: DateTime<Utc>) -> Settlement {
        succeeded(self, self.due_on, payment, lead, today, now)
    }

    /// Whether a payment of `due_on` that has no receipt keeps this subscription from being charged: its period is the one that is due, or
    /// a later one.
    pub fn is_blocked_by(&self, due_on: NaiveDate, reason: FindingReason) -> bool {
        reason != FindingReason::PaidTwice && Period::of(due_on) >= Period::of(self.due_on)
    }
}
