//! The checker: the invariants of the design, one by one, from the books alone. It has its own calendar.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, NaiveDate};
use serde::Serialize;

use crate::books::{Books, Who};

/// At most this many violations of one invariant are named.
const MAX_NAMED: usize = 10;

/// One invariant and what violates it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub invariant: &'static str,
    pub violations: usize,
    pub examples: Vec<String>,
}

impl Finding {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.violations == 0
    }

    /// The finding that `violations` violate `invariant`.
    pub fn new(invariant: &'static str, violations: Vec<String>) -> Self {
        Self { invariant, violations: violations.len(), examples: violations.into_iter().take(MAX_NAMED).collect() }
    }
}

/// Checks `books` as they stand after the runs of `as_of`, of customers who did nothing and runs that all came to their
/// end.
pub fn check(books: &Books, as_of: NaiveDate) -> Vec<Finding> {
    let mut findings = check_always(books);
    findings
        .push(Finding::new("no owed period skipped, and every due date is the payment day's", skipped(books, as_of)));
    findings.push(Finding::new("every sweep came to its end", unended(books)));
    findings
}

/// Checks what holds of `books` once nothing is open any more, whatever customers did and wherever runs ended.
pub fn check_always(books: &Books) -> Vec<Finding> {
    vec![
        Finding::new("at most one successful charge per subscription and month", charged_twice(books)),
        Finding::new(
            "a receipt exists if and only if the charge succeeded and the subscription advanced",
            unreceipted(books),
        ),
        Finding::new("receipt amount = gateway amount, same currency", misstated(books)),
        Finding::new(
            "a paused, cancelled or unpaid subscription is in no index, but for an open attempt",
            chargeable(books),
        ),
        Finding::new("every sweep that came to its end accounts for all it saw", unaccounted(books)),
        Finding::new(
            "nothing is stuck: what is owed or open is in the index, and every item can be read",
            stuck(books),
        ),
    ]
}

fn charged_twice(books: &Books) -> Vec<String> {
    let mut by_month: BTreeMap<(&Who, i32, u32), Vec<&str>> = BTreeMap::new();
    for charge in &books.charges {
        by_month.entry((&charge.who, charge.due.year(), charge.due.month())).or_default().push(&charge.payment);
    }
    let twice = by_month.into_iter().filter(|(_, payments)| payments.len() > 1);
    twice
        .map(|((who, year, month), payments)| format!("{} {year}-{month:02}: {}", name(who), payments.join(", ")))
        .collect()
}

fn skipped(books: &Books, as_of: NaiveDate) -> Vec<String> {
    let mut settled: BTreeMap<&Who, BTreeSet<NaiveDate>> = BTreeMap::new();
    for charge in &books.charges {
        settled.entry(&charge.who).or_default().insert(charge.due);
    }
    for waived in &books.waived {
        settled.entry(&waived.who).or_default().insert(waived.due);
    }
    let mut wrong = Vec::new();
    for subscription in &books.subscriptions {
        let name = name(&subscription.who);
        let mut owed = BTreeSet::new();
        let (mut year, mut month) = (subscription.first_due.year(), subscription.first_due.month());
        while (year, month) < (subscription.due.year(), subscription.due.month()) {
            owed.extend(payment_date(year, month, subscription.payment_day));
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        let settled = settled.remove(&subscription.who).unwrap_or_default();
        wrong.extend(owed.difference(&settled).map(|date| format!("{name} {date}: owed and passed over")));
        // A charge of the current due date is not settled yet; that is another invariant's matter.
        let early = settled.difference(&owed).filter(|date| **date != subscription.due);
        wrong.extend(early.map(|date| format!("{name} {date}: charged and not owed on that date")));
        if payment_date(year, month, subscription.payment_day) != Some(subscription.due) {
            wrong.push(format!("{name} {}: not the payment day {}", subscription.due, subscription.payment_day));
        }
        if subscription.status == "active" && subscription.due <= as_of && !subscription.has_attempt {
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
    let stopped = books.subscriptions.iter().filter(|s| matches!(s.status.as_str(), "paused" | "cancelled" | "unpaid"));
    let indexed = stopped.filter(|s| s.next_reminder.is_some() || (s.next_payment.is_some() && !s.has_attempt));
    indexed.map(|s| format!("{}: {} and still in an index", name(&s.who), s.status)).collect()
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
    let owing = books.subscriptions.iter().filter(|s| matches!(s.status.as_str(), "active" | "past_due"));
    let owing = owing.filter(|s| !s.has_attempt && s.next_payment.is_none());
    let owing = owing.map(|s| format!("{}: {} and not in the index", name(&s.who), s.status));
    outside.chain(owing).chain(books.unreadable.iter().map(|key| format!("{key}: unreadable"))).collect()
}

/// The payment date of a month: the day itself, or the month's last.
pub(crate) fn payment_date(year: i32, month: u32, day: u32) -> Option<NaiveDate> {
    (1..=day).rev().find_map(|day| NaiveDate::from_ymd_opt(year, month, day))
}

pub(crate) fn name((account, subscription): &Who) -> String {
    format!("{account} {subscription}")
}
