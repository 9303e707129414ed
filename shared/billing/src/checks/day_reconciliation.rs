//! The comparison of the payments, refunds and disputes of one day with the gateway: the progress of the comparison,
//! its result, and the differences that were found.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::values::calendar::days_after;

/// How long the result of a comparison is stored, counted from the start of the comparison.
pub const RECONCILIATION_RETENTION: TimeDelta = TimeDelta::days(400);

/// The maximum number of differences that are stored for one day. The counts contain all differences.
pub const MAX_STORED_DIFFERENCES: usize = 100;

/// The maximum number of characters of the description of a stored difference.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// The comparison of the payments, refunds and disputes of one day with the gateway. A comparison whose `ended_at` is
/// `None` is still running or was interrupted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayReconciliation {
    /// The day (UTC) whose payments, refunds and disputes are compared.
    pub on: NaiveDate,
    pub started_at: DateTime<Utc>,
    /// When the comparison was complete; `None` while it is running, or if it was interrupted.
    pub ended_at: Option<DateTime<Utc>>,
    /// The step with which the comparison continues.
    pub step: ReconciliationStep,
    /// The position in the current step from which the comparison continues: the gateway's cursor of the next list
    /// page, or the position in the table; `None` at the start of the step.
    pub position: Option<String>,
    pub counts: ReconciledCounts,
    /// Whether the comparison only reports payments without a receipt. Otherwise it settles each such payment, or
    /// stores the payment as a finding, about which a person must decide.
    pub report_only: bool,
    /// The gateway's lists that could not be compared, because the gateway does not offer them.
    pub not_compared: BTreeSet<GatewayList>,
    /// True if the gateway offers no list of all payments of a day, so the payments of each customer in the table were
    /// compared instead. This happens only in a table that was restored from a backup.
    pub customers_compared: bool,
    /// The number of differences of each kind.
    pub differences: BTreeMap<DifferenceKind, u64>,
    /// The differences that were found first, at most [`MAX_STORED_DIFFERENCES`].
    pub first_differences: Vec<GatewayDifference>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// The numbers of compared records of a day.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconciledCounts {
    /// The number of successful payments that the gateway lists.
    pub payments: u64,
    /// The number of refunds that the gateway lists, without failed refunds.
    pub refunds: u64,
    /// The number of disputes that the gateway lists.
    pub disputes: u64,
    /// The number of receipts that were written on the compared day.
    pub receipts: u64,
    /// The number of payments without a receipt that the comparison has settled by writing the receipt.
    pub settled: u64,
    /// The number of refunds and disputes whose state at the gateway the comparison has stored, because the gateway's
    /// event never came.
    #[serde(default)]
    pub applied: u64,
    /// The number of differences that a person has accepted. They are not reported as differences.
    #[serde(default)]
    pub accepted: u64,
    /// The number of payments that the bank was still processing. These payments are not compared now; the day is
    /// compared again later.
    #[serde(default)]
    pub processing: u64,
}

/// A list of the gateway that is compared with the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum GatewayList {
    Payments,
    Refunds,
    Disputes,
}

/// A step of the comparison of a day. The steps follow each other in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReconciliationStep {
    /// Compares the gateway's payments with the receipts.
    Payments,
    /// Compares the gateway's refunds with the stored refunds.
    Refunds,
    /// Compares the gateway's disputes with the stored disputes.
    Disputes,
    /// Compares the stored receipts, refunds and disputes with the gateway.
    Records,
}

impl ReconciliationStep {
    /// Returns the step after this step; `None` after the last step.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Payments => Some(Self::Refunds),
            Self::Refunds => Some(Self::Disputes),
            Self::Disputes => Some(Self::Records),
            Self::Records => None,
        }
    }
}

/// A difference between the table and the gateway.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct GatewayDifference {
    pub kind: DifferenceKind,
    /// The gateway's id of the payment, refund or dispute. For a refund that the gateway does not have, the id of the
    /// refund in the table. For a customer that was not compared, the gateway's id of the customer, or the id of the
    /// account if an item of the account cannot be read.
    pub id: String,
    /// The description of the difference, for people.
    pub what: String,
}

/// The kind of a difference between the table and the gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DifferenceKind {
    /// The gateway has a successful payment without a receipt.
    PaymentWithoutReceipt,
    /// The gateway has no successful payment for a receipt.
    ReceiptWithoutPayment,
    /// The amount or the currency in the table differs from that at the gateway.
    AmountDiffers,
    /// The gateway has two successful payments for one period.
    PaidTwice,
    /// The gateway has a refund that is not stored.
    RefundNotStored,
    /// A refund is stored that the gateway does not have.
    RefundNotAtGateway,
    /// A refund has another status in the table than at the gateway.
    RefundStatusDiffers,
    /// The gateway has a dispute that is not stored.
    DisputeNotStored,
    /// A dispute is stored that the gateway does not have.
    DisputeNotAtGateway,
    /// A dispute has another status or another amount in the table than at the gateway.
    DisputeStatusDiffers,
    /// The payments of a customer of an account could not be compared. Only in a table that was restored from a backup,
    /// at a gateway that does not list the payments of a day. The id of the difference is the gateway's id of the
    /// customer.
    CustomerNotCompared,
    /// A payment, refund or dispute of the table was not compared, because the gateway's data contradicts itself or
    /// cannot be read.
    Unreadable,
}

impl DifferenceKind {
    /// Returns the instruction for the person who must resolve a difference of this kind.
    pub fn next_step(self) -> &'static str {
        match self {
            Self::PaymentWithoutReceipt => {
                "Decide about the payment with `dueday findings`; if it is not listed there, run the payments again."
            }
            Self::ReceiptWithoutPayment => {
                "Look the payment up at the gateway: the receipt states money that was not received."
            }
            Self::AmountDiffers => "Compare both amounts at the gateway, and correct or refund the payment.",
            Self::PaidTwice => {
                "Refund one of the payments at the gateway, and close it with `dueday findings resolve`."
            }
            Self::RefundNotStored => {
                "Compare the day again without --report-only; if the difference stays, record the refund in your books, and accept the difference."
            }
            Self::RefundNotAtGateway => {
                "Look the refund up at the gateway with `dueday refund ACCOUNT RECEIPT --id ID`."
            }
            Self::RefundStatusDiffers => {
                "Compare the day again without --report-only; if the difference stays, compare the refund with the gateway, and correct your books."
            }
            Self::DisputeNotStored => {
                "Compare the day again without --report-only; if the difference stays, let the gateway send the event of the dispute again: docs/customers.md, \"A customer disputes a payment\"."
            }
            Self::DisputeStatusDiffers => {
                "Compare the day again without --report-only; if the difference stays, let the gateway send the event of the dispute again: docs/customers.md, \"A customer disputes a payment\"."
            }
            Self::DisputeNotAtGateway => {
                "Compare with the gateway, and correct the dispute: docs/customers.md, \"A customer disputes a payment\"."
            }
            Self::CustomerNotCompared => {
                "Compare the day again; if the customer no longer exists at the gateway, check there that no payment is missing, and accept the difference."
            }
            Self::Unreadable => {
                "Look the object up at the gateway, and compare its amount and status with the table; then correct it there, or accept the difference."
            }
        }
    }
}

impl DayReconciliation {
    /// Creates the comparison of the day `on`, which starts at `now`.
    pub fn new(on: NaiveDate, now: DateTime<Utc>) -> Self {
        Self {
            on,
            started_at: now,
            ended_at: None,
            step: ReconciliationStep::Payments,
            position: None,
            counts: ReconciledCounts::default(),
            report_only: false,
            not_compared: BTreeSet::new(),
            customers_compared: false,
            differences: BTreeMap::new(),
            first_differences: Vec::new(),
            version: 1,
        }
    }

    /// Counts `difference`, and stores it if fewer than [`MAX_STORED_DIFFERENCES`] are stored. The stored description
    /// is cut to 300 characters. A difference of the same kind and id that is already stored is not counted again: the
    /// gateway may list one object on two list pages.
    pub fn add_difference(&mut self, difference: GatewayDifference) {
        let is_same = |stored: &GatewayDifference| (stored.kind, &stored.id) == (difference.kind, &difference.id);
        if self.first_differences.iter().any(is_same) {
            return;
        }
        let count = self.differences.entry(difference.kind).or_default();
        *count = count.saturating_add(1);
        if self.first_differences.len() < MAX_STORED_DIFFERENCES {
            let what = difference.what.chars().take(MAX_DESCRIPTION_CHARS).collect();
            self.first_differences.push(GatewayDifference { what, ..difference });
        }
    }

    /// Continues with the next step, or ends the comparison at `now` after the last step.
    pub fn end_step(&mut self, now: DateTime<Utc>) {
        self.position = None;
        match self.step.next() {
            Some(next) => self.step = next,
            None => self.ended_at = Some(now),
        }
    }

    /// Returns the number of all differences.
    pub fn difference_count(&self) -> u64 {
        self.differences.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns whether the day must be compared a second time at `now`. Conditions: the bank was still processing
    /// payments of the day at the first comparison, and at `now` all these payments must have ended, because a bank
    /// processes a payment for at most `max_processing_days` days.
    pub fn needs_second_comparison(&self, max_processing_days: u32, now: DateTime<Utc>) -> bool {
        let processed_by =
            days_after(self.on, max_processing_days.saturating_add(1)).and_time(NaiveTime::MIN).and_utc();
        self.counts.processing > 0 && self.started_at < processed_by && processed_by <= now
    }

    /// Returns whether the comparison has ended, compared all lists of the gateway, and found no difference.
    pub fn is_clean(&self) -> bool {
        self.ended_at.is_some() && self.not_compared.is_empty() && self.differences.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a difference whose id contains `n`, with a description that is one character too long.
    fn new_difference(n: usize) -> GatewayDifference {
        GatewayDifference { kind: DifferenceKind::PaidTwice, id: format!("pi_{n}"), what: "é".repeat(301) }
    }

    #[test]
    fn add_counts_all_differences_and_stores_the_first_100() {
        let mut day = DayReconciliation::new(NaiveDate::MIN, DateTime::UNIX_EPOCH);
        (0..150).for_each(|n| day.add_difference(new_difference(n)));
        assert_eq!((day.difference_count(), day.first_differences.len()), (150, 100));
        assert_eq!(day.first_differences[99].id, "pi_99");
        assert_eq!(day.first_differences[0].what.chars().count(), 300);
    }

    #[test]
    fn only_a_complete_comparison_of_all_lists_without_differences_is_clean() {
        let mut day = DayReconciliation::new(NaiveDate::MIN, DateTime::UNIX_EPOCH);
        for step in ["payments", "refunds", "disputes", "records"] {
            assert_eq!((day.step.to_string().as_str(), day.is_clean()), (step, false));
            day.position = Some("after".to_owned());
            day.end_step(DateTime::UNIX_EPOCH);
            assert_eq!(day.position, None);
        }
        assert!(day.is_clean());
        let not_listed = DayReconciliation { not_compared: [GatewayList::Refunds].into(), ..day.clone() };
        assert!(!not_listed.is_clean());
        day.add_difference(new_difference(1));
        assert!(!day.is_clean());
    }

    #[test]
    fn day_with_processing_payments_is_compared_again_when_none_can_be_processing() {
        let on: NaiveDate = "2027-01-10".parse().unwrap();
        let at = |day: &str| format!("{day}T02:00:00Z").parse::<DateTime<Utc>>().unwrap();
        let compared = |processing: u64, started: &str| DayReconciliation {
            counts: ReconciledCounts { processing, ..ReconciledCounts::default() },
            ..DayReconciliation::new(on, at(started))
        };
        for (processing, started, now, expected) in [
            (1, "2027-01-11", "2027-02-05", true),
            (1, "2027-01-11", "2027-02-04", false),
            (0, "2027-01-11", "2027-02-05", false),
            (1, "2027-02-05", "2027-02-06", false),
        ] {
            let needs = compared(processing, started).needs_second_comparison(25, at(now));
            assert_eq!(needs, expected, "{processing} {started} {now}");
        }
    }
}
