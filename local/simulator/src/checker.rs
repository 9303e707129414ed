//! The checker: validates the invariants of the design, one by one. It reads only the table and the gateway's ledger.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use crate::calendar::{month_of, next_month, payment_date};
use crate::invariant::{Invariant, InvariantResult};
use crate::stored_items::{StoredStatus, SubscriptionName, display_name};
use crate::table_contents::TableContents;

/// Checks `contents` after the batch runs of the day `as_of`, and returns one result for each invariant. The check is
/// valid only if no customer has changed a subscription and no run is still in progress.
pub fn check_invariants(contents: &TableContents, as_of: NaiveDate) -> Vec<InvariantResult> {
    let mut findings = check_invariants_without_open_attempts(contents);
    findings
        .push(InvariantResult::new(Invariant::NothingSkipped, owed_months_without_charge_or_waiver(contents, as_of)));
    findings.push(InvariantResult::new(Invariant::RunsEnded, runs_without_end(contents)));
    findings
}

/// Checks the invariants that must hold whenever no attempt is open.
fn check_invariants_without_open_attempts(contents: &TableContents) -> Vec<InvariantResult> {
    vec![
        InvariantResult::new(Invariant::ChargedOnce, months_charged_twice(contents)),
        InvariantResult::new(Invariant::ReceiptedAndAdvanced, receipts_that_do_not_match_charges(contents)),
        InvariantResult::new(Invariant::ReceiptStatesCharge, receipts_with_wrong_amount(contents)),
        InvariantResult::new(Invariant::StoppedIsInNoIndex, stopped_subscriptions_in_index(contents)),
        InvariantResult::new(Invariant::RunsAddUp, runs_whose_counts_do_not_add_up(contents)),
        InvariantResult::new(Invariant::NothingStuck, items_that_no_run_would_process(contents)),
    ]
}

fn months_charged_twice(contents: &TableContents) -> Vec<String> {
    let mut by_month: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for charge in &contents.charges {
        by_month.entry((&charge.subscription, month_of(charge.due))).or_default().push(&charge.payment);
    }
    let twice = by_month.into_iter().filter(|(_, payments)| payments.len() > 1);
    twice
        .map(|((subscription, (year, month)), payments)| {
            format!("{} {year}-{month:02}: {}", display_name(subscription), payments.join(", "))
        })
        .collect()
}

/// Returns the owed months that are neither charged nor waived, the months that are charged or waived but not owed, and
/// the due dates that are not on the payment day.
fn owed_months_without_charge_or_waiver(contents: &TableContents, as_of: NaiveDate) -> Vec<String> {
    let mut settled: BTreeMap<&SubscriptionName, BTreeSet<NaiveDate>> = BTreeMap::new();
    for charge in &contents.charges {
        settled.entry(&charge.subscription).or_default().insert(charge.due);
    }
    for waived in &contents.waivers {
        settled.entry(&waived.subscription).or_default().insert(waived.due);
    }
    let mut violations = Vec::new();
    for subscription in &contents.subscriptions {
        let name = display_name(&subscription.name);
        let mut owed = BTreeSet::new();
        let mut month = month_of(subscription.first_due);
        while month < month_of(subscription.due) {
            owed.extend(payment_date(month, subscription.payment_day));
            month = next_month(month);
        }
        let settled = settled.remove(&subscription.name).unwrap_or_default();
        violations.extend(
            owed.difference(&settled)
                .map(|date| format!("{name} {date}: the month was owed, but is neither charged nor waived")),
        );
        // A charge on the current due date is left out: the attempt that made the charge is not settled yet. If the
        // receipt is missing, `receipts_that_do_not_match_charges` reports the charge.
        let early = settled.difference(&owed).filter(|date| **date != subscription.due);
        violations.extend(early.map(|date| format!("{name} {date}: charged or waived, but not owed on that date")));
        if payment_date(month, subscription.payment_day) != Some(subscription.due) {
            violations.push(format!(
                "{name} {}: the due date is not on payment day {}",
                subscription.due, subscription.payment_day
            ));
        }
        if subscription.status == StoredStatus::Active && subscription.due <= as_of && !subscription.has_open_attempt {
            violations.push(format!("{name} {}: due but not charged by {as_of}", subscription.due));
        }
    }
    violations.extend(settled.into_keys().map(|subscription| {
        format!("{}: charged or waived, but the subscription is not in the table", display_name(subscription))
    }));
    violations
}

fn receipts_that_do_not_match_charges(contents: &TableContents) -> Vec<String> {
    let charged: BTreeSet<(&SubscriptionName, NaiveDate)> =
        contents.charges.iter().map(|c| (&c.subscription, c.due)).collect();
    let receipted: BTreeSet<(&SubscriptionName, NaiveDate)> =
        contents.receipts.iter().map(|r| (&r.subscription, r.due)).collect();
    let mut violations: Vec<String> = charged
        .difference(&receipted)
        .map(|(subscription, due)| format!("{} {due}: has a charge, but no receipt", display_name(subscription)))
        .collect();
    violations.extend(
        receipted
            .difference(&charged)
            .map(|(subscription, due)| format!("{} {due}: has a receipt, but no charge", display_name(subscription))),
    );
    for subscription in &contents.subscriptions {
        let current = (&subscription.name, subscription.due);
        if charged.contains(&current) || receipted.contains(&current) {
            violations.push(format!(
                "{} {}: paid, but still the next due date",
                display_name(&subscription.name),
                subscription.due
            ));
        }
    }
    violations
}

fn receipts_with_wrong_amount(contents: &TableContents) -> Vec<String> {
    let charges: BTreeMap<&str, (i64, &str)> =
        contents.charges.iter().map(|c| (c.payment.as_str(), (c.amount, c.currency.as_str()))).collect();
    let differs = contents.receipts.iter().filter_map(|receipt| {
        let stated = (receipt.amount, receipt.currency.as_str());
        let (subscription, due) = (display_name(&receipt.subscription), receipt.due);
        let Some(charged) = charges.get(receipt.payment.as_str()) else {
            return Some(format!("{subscription} {due}: the gateway has no payment {}", receipt.payment));
        };
        (*charged != stated).then(|| {
            format!(
                "{subscription} {due}: {} {} on the receipt, {} {} charged",
                stated.0, stated.1, charged.0, charged.1
            )
        })
    });
    differs.collect()
}

/// Returns a violation for each paused, cancelled or unpaid subscription that is still in the reminder index or the
/// payment index. The payment index may contain it while it has an open attempt.
fn stopped_subscriptions_in_index(contents: &TableContents) -> Vec<String> {
    let is_stopped = |status| matches!(status, StoredStatus::Paused | StoredStatus::Cancelled | StoredStatus::Unpaid);
    let stopped = contents.subscriptions.iter().filter(|s| is_stopped(s.status));
    let indexed = stopped.filter(|s| s.next_reminder.is_some() || (s.next_payment.is_some() && !s.has_open_attempt));
    indexed.map(|s| format!("{}: {:?} but still in an index of due rows", display_name(&s.name), s.status)).collect()
}

fn runs_without_end(contents: &TableContents) -> Vec<String> {
    contents
        .runs
        .iter()
        .filter(|run| !run.has_ended)
        .map(|run| format!("{}: the run started, but did not end", run.key))
        .collect()
}

fn runs_whose_counts_do_not_add_up(contents: &TableContents) -> Vec<String> {
    let violations = contents.runs.iter().filter(|run| run.has_ended && run.due != run.outcomes);
    violations
        .map(|run| format!("{}: the run read {} due rows, but counted {} outcomes", run.key, run.due, run.outcomes))
        .collect()
}

/// Returns the open attempts and owed payments that are not in the payment index, and the items that cannot be read.
fn items_that_no_run_would_process(contents: &TableContents) -> Vec<String> {
    let outside = contents.subscriptions.iter().filter(|s| s.has_open_attempt && s.next_payment.is_none());
    let outside =
        outside.map(|s| format!("{}: has an open attempt, but is not in the payment index", display_name(&s.name)));
    let is_owing = |status| matches!(status, StoredStatus::Active | StoredStatus::PastDue);
    let owing = contents.subscriptions.iter().filter(|s| is_owing(s.status));
    let owing = owing.filter(|s| !s.has_open_attempt && s.next_payment.is_none());
    let owing = owing.map(|s| format!("{}: {:?}, but not in the payment index", display_name(&s.name), s.status));
    outside
        .chain(owing)
        .chain(contents.unreadable.iter().map(|key| format!("{key}: the item cannot be read")))
        .collect()
}
