//! The erasure of an account: the conditions that prevent the erasure, and its progress.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};
use ulid::Ulid;

use crate::changes::finding::Finding;
use crate::records::dispute::Dispute;
use crate::records::payment_method_setup::PaymentMethodSetup;
use crate::records::refund::{Refund, RefundStatus};
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::ids::{AccountId, GatewayToken, SubscriptionId};

/// The text that replaces stored free texts and tokens of an erased account.
pub const ERASED: &str = "erased";

/// A requested erasure of an account, with its progress. The table stores this item until the erasure has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erasure {
    pub account: AccountId,
    /// When the erasure was requested.
    pub requested_at: DateTime<Utc>,
    /// The step that is executed next.
    pub step: ErasureStep,
    /// The position up to which the current step has processed its items; `None` at the start of the step.
    pub position: Option<String>,
    /// The numbers of items that the erasure has changed so far. If the erasure was interrupted and changes an item
    /// again, the item is counted again.
    pub counts: ErasureCounts,
    /// The reason why the erasure waits, as text; `None` if the erasure does not wait.
    pub waits_for: Option<String>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

impl Erasure {
    /// An erasure is overdue if it still waits this long after it was requested. Article 12 of the GDPR allows one month.
    pub const MAX_WAIT: TimeDelta = TimeDelta::weeks(2);

    /// Returns whether the erasure waits at `now`, and was requested [`Erasure::MAX_WAIT`] ago or earlier.
    pub fn is_overdue(&self, now: DateTime<Utc>) -> bool {
        self.waits_for.is_some() && now.signed_duration_since(self.requested_at) >= Self::MAX_WAIT
    }
}

/// The steps of an erasure, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ErasureStep {
    /// Wait until no order must be shipped, and remove the shipping address from the order desk.
    OrderDesk,
    /// Remove the items outside the partition of the account: idempotency records, payment method setups, card links
    /// (URLs with which customers enter a card), counters of hourly limits, and deliveries of events.
    OtherPartitions,
    /// Remove the subscriptions.
    Subscriptions,
    /// Remove personal data from the records that are kept, such as receipts.
    Records,
    /// Replace the account by an [`ErasedAccount`], the mark that the account was erased.
    Account,
}

/// The numbers of items that an erasure has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ErasureCounts {
    /// The number of removed items.
    pub removed: u64,
    /// The number of kept items from which personal data was removed.
    pub pseudonymised: u64,
}

/// The mark of an account that was erased. The mark replaces the account, so that no other account gets the same id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErasedAccount {
    pub id: AccountId,
    /// When the erasure was requested.
    pub requested_at: DateTime<Utc>,
    /// When the erasure ended.
    pub erased_at: DateTime<Utc>,
    /// The numbers of items that the erasure has changed.
    pub counts: ErasureCounts,
    /// The last version of the account, plus one.
    pub version: u64,
}

/// A reason why an account cannot be erased yet: something is owed or in progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErasureObstacle {
    /// A subscription is not cancelled.
    Subscription { id: SubscriptionId, status: SubscriptionStatus },
    /// An attempt of a subscription is open: the outcome of the payment is unknown, or the bank is processing the
    /// payment.
    OpenPayment(SubscriptionId),
    /// A refund is pending.
    PendingRefund(Ulid),
    /// A dispute is open: the bank has not decided yet.
    OpenDispute(GatewayToken),
    /// A finding is open: a person must decide about a payment that has no receipt.
    OpenFinding(GatewayToken),
    /// A payment method setup is open: the customer can still enter a payment method.
    OpenSetup { id: Ulid, until: DateTime<Utc> },
    /// Orders must still be shipped. Contains the number of these orders.
    OpenOrders(usize),
}

impl fmt::Display for ErasureObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription { id, status } => write!(f, "the subscription {id} is {status}, not cancelled"),
            Self::OpenPayment(id) => write!(f, "a payment of the subscription {id} is in progress"),
            Self::PendingRefund(id) => write!(f, "the refund {id} is pending"),
            Self::OpenDispute(id) => write!(f, "the dispute {id} is open"),
            Self::OpenFinding(payment) => write!(f, "the payment {payment} has no receipt, and a person must decide"),
            Self::OpenSetup { id, until } => {
                write!(f, "the payment method setup {id} is open until {}", until.format("%Y-%m-%d %H:%M UTC"))
            }
            Self::OpenOrders(count) => write!(f, "orders that must be shipped: {count}"),
        }
    }
}

/// The stored items of an account that can prevent its erasure.
#[derive(Clone, Copy, Debug)]
pub struct ErasureCheck<'a> {
    pub subscriptions: &'a [Subscription],
    pub refunds: &'a [Refund],
    pub disputes: &'a [Dispute],
    pub findings: &'a [Finding],
    pub setups: &'a [PaymentMethodSetup],
}

impl ErasureCheck<'_> {
    /// Returns all reasons why the account cannot be erased at `now`, except [`ErasureObstacle::OpenOrders`]. Payments
    /// of a cancelled subscription are not owed.
    pub fn obstacles(&self, now: DateTime<Utc>) -> Vec<ErasureObstacle> {
        let uncancelled = self.subscriptions.iter().filter(|s| s.status != SubscriptionStatus::Cancelled);
        let open_payments = self.subscriptions.iter().filter(|s| s.attempt.is_some());
        let refunds = self.refunds.iter().filter(|refund| refund.status == RefundStatus::Pending);
        let disputes = self.disputes.iter().filter(|dispute| !dispute.status.is_closed());
        let findings = self.findings.iter().filter(|finding| finding.resolved.is_none());
        let setups = self.setups.iter().filter(|setup| setup.payment_method.is_none() && now < setup.expires_at);
        uncancelled
            .map(|s| ErasureObstacle::Subscription { id: s.id, status: s.status })
            .chain(open_payments.map(|s| ErasureObstacle::OpenPayment(s.id)))
            .chain(refunds.map(|refund| ErasureObstacle::PendingRefund(refund.id)))
            .chain(disputes.map(|dispute| ErasureObstacle::OpenDispute(dispute.id.clone())))
            .chain(findings.map(|finding| ErasureObstacle::OpenFinding(finding.payment.clone())))
            .chain(setups.map(|setup| ErasureObstacle::OpenSetup { id: setup.id, until: setup.expires_at }))
            .collect()
    }
}

impl Erasure {
    /// Creates the erasure of `account` that is requested at `now`.
    pub fn new(account: AccountId, now: DateTime<Utc>) -> Self {
        Self {
            account,
            requested_at: now,
            step: ErasureStep::OrderDesk,
            position: None,
            counts: ErasureCounts::default(),
            waits_for: None,
            version: 1,
        }
    }

    /// Ends the current step, and sets the next step, without a position. At the last step, the step stays the same.
    pub fn end_step(&mut self) {
        self.position = None;
        self.waits_for = None;
        self.step = match self.step {
            ErasureStep::OrderDesk => ErasureStep::OtherPartitions,
            ErasureStep::OtherPartitions => ErasureStep::Subscriptions,
            ErasureStep::Subscriptions => ErasureStep::Records,
            ErasureStep::Records | ErasureStep::Account => ErasureStep::Account,
        };
    }
}

impl ErasureCounts {
    /// Counts one removed item.
    pub fn count_removed(&mut self) {
        self.removed = self.removed.saturating_add(1);
    }

    /// Counts one kept item from which personal data was removed.
    pub fn count_pseudonymised(&mut self) {
        self.pseudonymised = self.pseudonymised.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::payment::PaymentMethod;

    /// Returns a payment method setup with the payment method that the customer has entered, if any.
    fn payment_method_setup(payment_method: Option<PaymentMethod>, expires_at: DateTime<Utc>) -> PaymentMethodSetup {
        PaymentMethodSetup {
            id: Ulid::nil(),
            account: "acme".parse().unwrap(),
            page: "cs_1".parse().unwrap(),
            url: String::new(),
            subscriptions: None,
            created_at: DateTime::UNIX_EPOCH,
            expires_at,
            payment_method,
            version: 1,
        }
    }

    #[test]
    fn payment_method_setup_prevents_an_erasure_only_while_a_payment_method_can_be_entered() {
        let now: DateTime<Utc> = "2027-01-31T12:00:00Z".parse().unwrap();
        let (later, token) = (now + chrono::TimeDelta::hours(1), || "pm_1".parse().unwrap());
        let entered = || Some(PaymentMethod { customer: token(), payment_method: token() });
        for (setup, is_obstacle) in [
            (payment_method_setup(None, later), true),
            (payment_method_setup(None, now), false),
            (payment_method_setup(entered(), later), false),
        ] {
            let setups = [setup];
            let check =
                ErasureCheck { subscriptions: &[], refunds: &[], disputes: &[], findings: &[], setups: &setups };
            let found: Vec<String> = check.obstacles(now).iter().map(ToString::to_string).collect();
            let expected = format!("the payment method setup {} is open until 2027-01-31 13:00 UTC", Ulid::nil());
            assert_eq!(found, if is_obstacle { vec![expected] } else { vec![] }, "{setups:?}");
        }
    }

    #[test]
    fn end_step_starts_the_next_erasure_step_without_a_position() {
        let mut erasure = Erasure::new("acme".parse().unwrap(), DateTime::UNIX_EPOCH);
        let mut steps = Vec::new();
        for _ in 0..6 {
            steps.push(erasure.step.to_string());
            erasure.position = Some("REC#2027-01-31".to_owned());
            erasure.end_step();
            assert_eq!(erasure.position, None);
        }
        assert_eq!(steps, ["order_desk", "other_partitions", "subscriptions", "records", "account", "account"]);
    }
}
