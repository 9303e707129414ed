//! The dispute: a payment that its customer has asked the bank to take back.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use super::calendar::days_after;
use super::settle::{MAX_PAST_DUE_DAYS, Settlement, give_up};
use super::{AccountId, GatewayToken, Money, Policy, ReceiptId, Subscription};

/// One payment that is disputed, or was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispute {
    /// The gateway's identifier of the dispute.
    pub id: GatewayToken,
    pub account: AccountId,
    /// The receipt of the payment; it may have expired.
    pub receipt: ReceiptId,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    /// What was charged: it is charged no more while it is [marked](Dispute::keeps_from_charging).
    pub payment_method: GatewayToken,
    /// What is taken back, if it is lost.
    pub amount: Money,
    /// The gateway's word for why, such as `fraudulent`.
    pub reason: String,
    pub status: DisputeStatus,
    pub opened_at: DateTime<Utc>,
    /// When it was known to be won or lost.
    pub closed_at: Option<DateTime<Utc>>,
    /// Raised by one with every write.
    pub version: u64,
}

/// Where a dispute stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DisputeStatus {
    /// The bank has not decided.
    Open,
    /// The payment stays the merchant's.
    Won,
    /// It was taken back.
    Lost,
}

impl Dispute {
    /// Whether its payment method is not to be charged. Of one that was lost it stays so: who has taken one payment back takes back
    /// the next.
    pub fn keeps_from_charging(&self) -> bool {
        matches!(self.status, DisputeStatus::Open | DisputeStatus::Lost)
    }
}

impl Subscription {
    /// Marked as its payment method is by `disputes`, those of its account: since the first one that keeps it from being charged and was
    /// opened after a person has last decided to charge it all the same.
    pub fn disputed_by(&self, disputes: &[Dispute]) -> Subscription {
        let is_its = |dispute: &&Dispute| {
            dispute.payment_method == self.payment_method.payment_method
                && dispute.keeps_from_charging()
                && self.charged_though_disputed_at.is_none_or(|at| dispute.opened_at > at)
        };
        let disputed_at = disputes.iter().filter(is_its).map(|dispute| dispute.opened_at).min();
        Subscription { disputed_at, ..self.clone() }
    }

    /// As [`Subscription::disputed_by`], if it is paid with something else than it was `before`. What has been known of the same one
    /// since the disputes were read stays.
    pub fn disputed_anew(self, before: &Subscription, disputes: &[Dispute]) -> Subscription {
        if self.payment_method == before.payment_method { self } else { self.disputed_by(disputes) }
    }

    /// What a dispute that has lasted for as long as a month may be past due comes to on `today`: the end after the last try. `None` while it
    /// has not.
    pub fn give_up_disputed(&self, policy: &Policy, today: NaiveDate, now: DateTime<Utc>) -> Option<Settlement> {
        let since = self.disputed_at?.date_naive().max(self.due_on);
        let is_over = days_after(since, MAX_PAST_DUE_DAYS) <= today;
        (is_over && self.attempt.is_none() && self.status.is_chargeable())
            .then(|| give_up(self.clone(), policy, today, now))
    }
}
