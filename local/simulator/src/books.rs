//! The books the checker reads: the table's items as they are stored, and the gateway's ledger. Read here attribute by
//! attribute, and not by the code that writes them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, NaiveDate, Utc};
use shared::billing::PaymentStatus;
use shared::gateway::Entry;
use shared::table::{Table, TableError};

type Item = HashMap<String, AttributeValue>;

/// What a subscription is known by here: account and subscription.
pub type Who = (String, String);

/// A stored subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subscription {
    pub who: Who,
    pub status: String,
    pub payment_day: u32,
    pub first_due: NaiveDate,
    pub due: NaiveDate,
    pub next_payment: Option<NaiveDate>,
    pub next_reminder: Option<NaiveDate>,
    pub has_attempt: bool,
}

/// A stored receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub who: Who,
    pub due: NaiveDate,
    pub payment: String,
    pub amount: i64,
    pub currency: String,
    pub at: DateTime<Utc>,
}

/// A stored record of an attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tried {
    pub who: Who,
    pub due: NaiveDate,
    pub no: u32,
    /// `declined`, `rejected` or `dropped`.
    pub outcome: String,
    pub is_hard: bool,
    pub at: DateTime<Utc>,
}

/// A stored record of a month that was waived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waived {
    pub who: Who,
    pub due: NaiveDate,
    pub reason: String,
    pub at: DateTime<Utc>,
}

/// A stored run record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    pub key: String,
    pub is_closed: bool,
    pub due: i64,
    pub others: i64,
}

/// A successful charge in the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Charge {
    pub payment: String,
    pub who: Who,
    pub due: NaiveDate,
    pub amount: i64,
    pub currency: String,
    pub at: DateTime<Utc>,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Books {
    pub subscriptions: Vec<Subscription>,
    pub receipts: Vec<Receipt>,
    pub tried: Vec<Tried>,
    pub waived: Vec<Waived>,
    pub runs: Vec<Run>,
    pub charges: Vec<Charge>,
    /// Payments that were declined, and that are still under way.
    pub declined: usize,
    pub processing: usize,
    /// Items that could not be read.
    pub unreadable: Vec<String>,
}

/// Reads `table` whole and `ledger` from its first line.
///
/// # Errors
/// [`TableError`].
pub async fn books(table: &Table, ledger: &[Entry]) -> Result<Books, TableError> {
    let mut books = Books::default();
    for item in table.scan().await? {
        let key = format!("{} {}", text(&item, "PK").unwrap_or_default(), text(&item, "SK").unwrap_or_default());
        if books.enter(&item).is_none() {
            books.unreadable.push(key);
        }
    }
    let mut ended = HashMap::new();
    for entry in ledger {
        if let Entry::Resolved { id, status, at } = entry {
            ended.insert(id.clone(), (status.clone(), *at));
        }
    }
    for entry in ledger {
        let Entry::Payment(made) = entry else { continue };
        let (status, at) = ended.get(&made.id).cloned().unwrap_or((made.status.clone(), made.created_at));
        match status {
            PaymentStatus::Declined(_) => books.declined += 1,
            PaymentStatus::Processing => books.processing += 1,
            PaymentStatus::Succeeded => books.charges.push(Charge {
                payment: made.id.to_string(),
                who: (made.request.account.to_string(), made.request.subscription.to_string()),
                due: made.request.due_on,
                amount: made.request.amount.minor(),
                currency: made.request.amount.currency().to_string(),
                at,
            }),
        }
    }
    Ok(books)
}

impl Books {
    /// Enters one item; `None` if it is not as it should be.
    fn enter(&mut self, item: &Item) -> Option<()> {
        let (pk, sk) = (text(item, "PK")?, text(item, "SK")?);
        let account = || pk.strip_prefix("ACC#").map(str::to_owned);
        match sk.split('#').next()? {
            "SUB" => self.subscriptions.push(Subscription {
                who: (account()?, sk.split('#').nth(1)?.to_owned()),
                status: text(item, "Status")?.to_owned(),
                payment_day: u32::try_from(number(item, "PaymentDay")?).ok()?,
                first_due: date(item, "FirstDueDate")?,
                due: date(item, "DueDate")?,
                next_payment: date(item, "NextPaymentDate"),
                next_reminder: date(item, "NextReminderDate"),
                has_attempt: item.contains_key("AttemptNo"),
            }),
            "REC" => self.receipts.push(Receipt {
                who: (account()?, sk.rsplit('#').next()?.to_owned()),
                due: sk.split('#').nth(1)?.parse().ok()?,
                payment: text(item, "GatewayPaymentId")?.to_owned(),
                amount: number(item, "ProcessedAmount")?,
                currency: text(item, "Currency")?.to_owned(),
                at: instant(item, "ProcessedDate")?,
            }),
            "WAV" => self.waived.push(Waived {
                who: (account()?, sk.rsplit('#').next()?.to_owned()),
                due: sk.split('#').nth(1)?.parse().ok()?,
                reason: text(item, "Reason")?.to_owned(),
                at: instant(item, "ProcessedDate")?,
            }),
            "ATT" => self.tried.push(Tried {
                who: (account()?, sk.split('#').nth(3)?.to_owned()),
                due: sk.split('#').nth(1)?.parse().ok()?,
                no: sk.rsplit('#').next()?.parse().ok()?,
                outcome: text(item, "Outcome")?.to_owned(),
                is_hard: *item.get("Hard")?.as_bool().ok()?,
                at: instant(item, "ProcessedDate")?,
            }),
            "SHARD" => {
                let counts = item.get("Counts").and_then(|counts| counts.as_m().ok());
                let of = |name: &str| counts.and_then(|counts| number(counts, name)).unwrap_or(0);
                let all: i64 = counts.into_iter().flat_map(|counts| counts.keys()).map(|name| of(name)).sum();
                self.runs.push(Run {
                    key: format!("{pk} {sk}"),
                    is_closed: item.contains_key("EndedAt"),
                    due: of("due"),
                    others: all - of("due"),
                });
            }
            "ACC" => {
                account()?;
            }
            _ if pk.starts_with("CTL#") || pk.starts_with("IDEM#") => {}
            _ => return None,
        }
        Some(())
    }
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

fn number(item: &Item, name: &str) -> Option<i64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn instant(item: &Item, name: &str) -> Option<DateTime<Utc>> {
    text(item, name)?.parse().ok()
}

fn date(item: &Item, name: &str) -> Option<NaiveDate> {
    text(item, name)?.parse().ok()
}
