//! What is true at the gateway: the payments that the stand-in for Stripe has made, and the refunds that people have
//! made in its dashboard. Nothing here reads a response of the stand-in or a rule of Dueday.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing::Finding;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use emulator::{StandInPaymentIntent, StripeServer};

use crate::calendar::{Month, month_of};
use crate::stored_items::{StoredStatus, SubscriptionName, display_name};
use crate::table_contents::TableContents;

/// A debit that succeeded within this time before the end may not have its receipt yet: no event comes, and the next
/// run looks it up.
const SETTLING_TIME: TimeDelta = TimeDelta::days(5);

/// The true state of one payment.
pub enum PaymentTruth {
    /// The bank is still processing the payment.
    Processing,
    /// The payment failed, or the merchant keeps nothing of it.
    Failed,
    /// The merchant keeps `amount` of the payment.
    Kept {
        amount: i64,
        /// Whether the merchant keeps money of an earlier payment for the same month, too.
        is_duplicate: bool,
    },
}

/// A payment at the gateway.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct MadePayment {
    created: DateTime<Utc>,
    id: String,
    subscription: SubscriptionName,
    month: Month,
    status: &'static str,
    /// The amount minus the refunds.
    kept: i64,
}

/// The payments at the gateway, and the checks of them.
pub struct GatewayTruth {
    server: Arc<StripeServer>,
    /// The refunded amount of each refunded payment.
    refunded: BTreeMap<String, i64>,
    /// The subscriptions that were cancelled before the restore. They must not be charged after it.
    cancelled: BTreeSet<SubscriptionName>,
    /// The number of payments that were checked.
    checked: usize,
}

impl GatewayTruth {
    /// Creates the truth about the payments of `server`. Only payments that are made from now on are checked, because
    /// the oracle has checked the others.
    pub fn new(server: Arc<StripeServer>, cancelled: Vec<SubscriptionName>) -> Self {
        let checked = server.read_intents(<[StandInPaymentIntent]>::len);
        Self { server, refunded: BTreeMap::new(), cancelled: cancelled.into_iter().collect(), checked }
    }

    /// Records that a person has refunded `amount` of `payment`.
    pub fn record_refund(&mut self, payment: &str, amount: i64) {
        *self.refunded.entry(payment.to_owned()).or_default() += amount;
    }

    /// Returns the amount that the merchant keeps of `payment`.
    pub fn kept_amount(&self, payment: &str) -> i64 {
        self.list_payments().into_iter().find(|made| made.id == payment).map_or(0, |made| made.kept)
    }

    /// Returns the true state of `payment`.
    pub fn true_payment_state(&self, payment: &str) -> PaymentTruth {
        let all = self.list_payments();
        let Some(made) = all.iter().find(|made| made.id == payment) else { return PaymentTruth::Failed };
        let is_earlier =
            |other: &&MadePayment| other.is_for_same_month_as(made) && other.id != made.id && other.is_kept();
        match made.status {
            "succeeded" if made.kept > 0 => {
                let is_duplicate = all.iter().filter(is_earlier).count() > 0;
                PaymentTruth::Kept { amount: made.kept, is_duplicate }
            }
            "processing" => PaymentTruth::Processing,
            _ => PaymentTruth::Failed,
        }
    }

    /// Checks the payments that were made since the last call, and returns their number. None may be for a month of
    /// which the merchant keeps another payment, nor of a cancelled subscription.
    pub fn check_new_payments(&mut self, violations: &mut Vec<String>) -> u64 {
        let all = self.list_payments();
        let new = &all[self.checked.min(all.len())..];
        for made in new.iter().filter(|made| made.is_kept()) {
            let (name, month) = (display_name(&made.subscription), made.month);
            let is_other =
                |other: &&MadePayment| other.is_for_same_month_as(made) && other.id != made.id && other.is_kept();
            if let Some(other) = all.iter().find(is_other) {
                violations.push(format!("{name}: {month:?} was charged by {} after {}", made.id, other.id));
            }
            if self.cancelled.contains(&made.subscription) {
                violations.push(format!("{name} was charged by {}, although it was cancelled", made.id));
            }
        }
        let count = new.len() as u64;
        self.checked = all.len();
        count
    }

    /// Checks the table at the end of the day `end`. Each payment after the time `backup_at` must have a receipt or an
    /// open finding, if the table contains its subscription. Each active subscription without an open finding must have
    /// been charged.
    pub fn check_payments_and_due_dates(
        &self,
        contents: &TableContents,
        open: &[Finding],
        backup_at: DateTime<Utc>,
        end: NaiveDate,
        violations: &mut Vec<String>,
    ) {
        let known: BTreeSet<&SubscriptionName> = contents.subscriptions.iter().map(|stored| &stored.name).collect();
        let receipted: BTreeSet<&str> = contents.receipts.iter().map(|receipt| receipt.payment.as_str()).collect();
        let in_findings: BTreeSet<&str> = open.iter().map(|finding| finding.payment.as_str()).collect();
        let settled_until = end.and_time(Default::default()).and_utc() - SETTLING_TIME;
        for made in self.list_payments() {
            let id = made.id.as_str();
            let is_expected = made.status == "succeeded"
                && made.is_kept()
                && made.created > backup_at
                && made.created < settled_until
                && known.contains(&made.subscription);
            if is_expected && !receipted.contains(id) && !in_findings.contains(id) {
                violations.push(format!("{} has neither a receipt nor a finding: {made:?}", made.id));
            }
        }
        for stored in contents.subscriptions.iter().filter(|stored| stored.status == StoredStatus::Active) {
            let has_finding = open.iter().any(|finding| finding.subscription.to_string() == stored.name.1);
            if stored.due <= end && !stored.has_open_attempt && !has_finding {
                violations.push(format!(
                    "{} was due on {}, but was not charged",
                    display_name(&stored.name),
                    stored.due
                ));
            }
        }
    }

    /// Returns all payments, the oldest first. The metadata of each payment names its attempt.
    fn list_payments(&self) -> Vec<MadePayment> {
        let made = |intent: &StandInPaymentIntent| {
            let named = |name: &str| intent.metadata.get(&format!("dueday_{name}")).cloned().unwrap_or_default();
            let due: NaiveDate = named("due_date").parse().unwrap_or_default();
            MadePayment {
                created: intent.created,
                id: intent.id.clone(),
                subscription: (named("account"), named("subscription")),
                month: month_of(due),
                status: intent.status,
                kept: intent.amount - self.refunded.get(&intent.id).copied().unwrap_or_default(),
            }
        };
        self.server.read_intents(|intents| intents.iter().map(made).collect())
    }
}

impl MadePayment {
    fn is_for_same_month_as(&self, other: &Self) -> bool {
        self.subscription == other.subscription && self.month == other.month
    }

    /// Returns whether the merchant keeps money of the payment, or may still get it.
    fn is_kept(&self) -> bool {
        matches!(self.status, "succeeded" | "processing") && self.kept > 0
    }
}
