//! The checker: the invariants of the design, one by one, from the books alone.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use crate::books::Books;
use crate::calendar::{month_of, next_month, payment_date};
use crate::invariant::{Finding, Invariant};
use crate::stored::{StoredStatus, Who, name};

/// Checks `books` as they stand after the runs of `as_of`, of customers who did nothing and runs that all came to their
/// end.
pub fn check(books: &Books, as_of: NaiveDate) -> Vec<Finding> {
    let mut findings = check_always(books);
    findings.push(Finding::new(Invariant::NothingSkipped, skipped(books, as_of)));
    findings.push(Finding::new(Invariant::RunsEnded, unended(books)));
    findings
}

/// Checks what holds of `books` once nothing is open any more.
fn check_always(books: &Books) -> Vec<Finding> {
    vec![
        Finding::new(Invariant::ChargedOnce, charged_twice(books)),
        Finding::new(Invariant::ReceiptedAndAdvanced, unreceipted(books)),
        Finding::new(Invariant::ReceiptStatesCharge, misstated(books)),
        Finding::new(Invariant::StoppedIsInNoIndex, chargeable(books)),
        Finding::new(Invariant::RunsAddUp, unaccounted(books)),
        Finding::new(Invariant::NothingStuck, stuck(books)),
    ]
}

fn charged_twice(books: &Books) -> Vec<String> {
    let mut by_month: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for charge in &books.charges {
        by_month.entry((&charge.who, month_of(charge.due))).or_default().push(&charge.payment);
    }
    let twice = by_month.into_iter().filter(|(_, payments)| payments.len() > 1);
    twice
        .map(|((who, (year, month)), payments)| format!("{} {year}-{month:02}: {}", name(who), payments.join(", ")))
        .collect()
}

fn skipped(books: &Books, as_of: NaiveDate) -> Vec<String> {
    let mut settled: BTreeMap<&Who, BTreeSet<NaiveDate>> = BTreeMap::new();
    for charge in &books.charges {
        settled.entry(&charge.who).or_default().insert(charge.due);
    }
    for waived in &books.waivers {
        settled.entry(&waived.who).or_default().insert(waived.due);
    }
    let mut wrong = Vec::new();
    for subscription in &books.subscriptions {
        let name = name(&subscription.who);
        let mut owed = BTreeSet::new();
        let mut month = month_of(subscription.first_due);
        while month < month_of(subscription.due) {
            owed.extend(payment_date(month, subscription.payment_day));
            month = next_month(month);
        }
        let settled = settled.remove(&subscription.who).unwrap_or_default();
        wrong.extend(owed.difference(&settled).map(|date| format!("{name} {date}: owed and passed over")));
        // A charge of the current due date is not settled yet; that is another invariant's matter.
        let early = settled.difference(&owed).filter(|date| **date != subscription.due);
        wrong.extend(early.map(|date| format!("{name} {date}: charged and not owed on that date")));
        if payment_date(month, subscription.payment_day) != Some(subscription.due) {
            wrong.push(format!("{name} {}: not the payment day {}", subscription.due, subscription.payment_day));
        }
        if subscription.status == StoredStatus::Active && subscription.due <= as_of && !subscription.has_attempt {
            wrong.push(format!("{name} {}: due, and not charged by {as_of}", subscription.due));
        }
    }
    wrong.extend(settled.into_keys().map(|who| format!("{}: charged and not in the table", self::name(who))));
    wrong
}

fn unreceipted(books: &Books) -> Vec<String> {
    let charged: BTreeSet<(&Who, NaiveDate)> = books.charges.iter().map(|c| (&c.who, c.due)).collect();
    let receipted: BTreeSet<(&Who, NaiveDate)> = books.receipts.iter().map(|r| (&r.who, r.due)).collect();
    let mut wrong: Vec<String> = charged
        .difference(&receipted)
        .map(|(who, due)| format!("{} {due}: charged without a receipt", name(who)))
        .collect();
    wrong.extend(
        receipted.difference(&charged).map(|(who, due)| format!("{} {due}: a receipt without a charge", name(who))),
    );
    for subscription in &books.subscriptions {
        let current = (&subscription.who, subscription.due);
        if charged.contains(&current) || receipted.contains(&current) {
            wrong.push(format!("{} {}: paid, and still owed", name(&subscription.who), subscription.due));
        }
    }
    wrong
}

fn misstated(books: &Books) -> Vec<String> {
    let charges: BTreeMap<&str, (i64, &str)> =
        books.charges.iter().map(|c| (c.payment.as_str(), (c.amount, c.currency.as_str()))).collect();
    let differs = books.receipts.iter().filter_map(|receipt| {
        let stated = (receipt.amount, receipt.currency.as_str());
        let (who, due) = (name(&receipt.who), receipt.due);
        let Some(charged) = charges.get(receipt.payment.as_str()) else {
            return Some(format!("{who} {due}: the gateway knows no payment {}", receipt.payment));
        };
        (*charged != stated).then(|| {
            format!("{who} {due}: {} {} on the receipt, {} {} charged", stated.0, stated.1, charged.0, charged.1)
        })
    });
    differs.collect()
}

fn chargeable(books: &Books) -> Vec<String> {
    let is_stopped = |status| matches!(status, StoredStatus::Paused | StoredStatus::Cancelled | StoredStatus::Unpaid);
    let stopped = books.subscriptions.iter().filter(|s| is_stopped(s.status));
    let indexed = stopped.filter(|s| s.next_reminder.is_some() || (s.next_payment.is_some() && !s.has_attempt));
    indexed.map(|s| format!("{}: {:?} and still in an index", name(&s.who), s.status)).collect()
}

fn unended(books: &Books) -> Vec<String> {
    books.runs.iter().filter(|run| !run.is_closed).map(|run| format!("{}: begun, and not ended", run.key)).collect()
}

fn unaccounted(books: &Books) -> Vec<String> {
    let wrong = books.runs.iter().filter(|run| run.is_closed && run.due != run.others);
    wrong.map(|run| format!("{}: {} due, {} accounted for", run.key, run.due, run.others)).collect()
}

fn stuck(books: &Books) -> Vec<String> {
    let outside = books.subscriptions.iter().filter(|s| s.has_attempt && s.next_payment.is_none());
    let outside = outside.map(|s| format!("{}: an attempt is open and not in the index", name(&s.who)));
    let is_owing = |status| matches!(status, StoredStatus::Active | StoredStatus::PastDue);
    let owing = books.subscriptions.iter().filter(|s| is_owing(s.status));
    let owing = owing.filter(|s| !s.has_attempt && s.next_payment.is_none());
    let owing = owing.map(|s| format!("{}: {:?} and not in the index", name(&s.who), s.status));
    outside.chain(owing).chain(books.unreadable.iter().map(|key| format!("{key}: unreadable"))).collect()
}
