//! What was agreed with one subscriber, and what must be stored of it.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

use super::status_of;
use crate::calendar::{Month, month_of};
use crate::json::{date, instant, number, text};
use crate::schedule::ActorId;
use crate::stored::{StoredStatus, Who};

/// What a customer or an operator asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    Pause,
    Resume,
    Cancel,
    /// To be cancelled at the end of the period, and not.
    End,
    Keep,
    Price(i64),
    Day(u32),
    Card(String),
}

/// An attempt that is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    pub no: u32,
    pub due: NaiveDate,
    pub amount: i64,
    pub card: String,
    /// Who has claimed it or taken it over last.
    pub holder: ActorId,
    pub is_chargeable: bool,
    /// When that took effect.
    pub held_at: DateTime<Utc>,
    pub leased_until: DateTime<Utc>,
    pub claimed_at: DateTime<Utc>,
}

/// A reminder that is being sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reminding {
    pub holder: ActorId,
    pub leased_until: DateTime<Utc>,
    /// What the mail has to state; `None`: there must be no mail.
    pub due_and_amount: Option<(NaiveDate, i64)>,
    pub is_sent: bool,
}

/// What was agreed with one subscriber.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreement {
    pub who: Who,
    pub product: String,
    pub currency: String,
    pub status: StoredStatus,
    /// The payment day and the price, each from which month on.
    pub days: Vec<(Month, u32)>,
    pub prices: Vec<(Month, i64)>,
    pub card: String,
    pub first_due: NaiveDate,
    pub due: NaiveDate,
    /// When the payment batch must look again.
    pub next: Option<NaiveDate>,
    /// When the reminder batch must look.
    pub remind: Option<NaiveDate>,
    pub failed: u32,
    /// Rejections in a row, and the day of the first decline of what is due.
    pub rejections: u32,
    pub first_declined: Option<NaiveDate>,
    pub attempts: u32,
    /// The first month that is not charged any more.
    pub ends: Option<Month>,
    pub was_unpaid: bool,
    pub open: Option<Open>,
    pub reminding: Option<Reminding>,
    /// Those who were sending it when somebody else took it over. They may send one more.
    pub reminding_late: Vec<Reminding>,
    /// Months that are paid, by whose payment; and months that are waived, and why.
    pub paid: BTreeMap<Month, String>,
    pub waived: BTreeMap<Month, String>,
    /// What is waived by what was done last: due date and reason.
    pub waives: Vec<(NaiveDate, &'static str)>,
    /// When anything of it changed last.
    pub changed_at: DateTime<Utc>,
}

impl Agreement {
    /// What is agreed when `item` is stored first; `None` if it cannot be read.
    pub fn begun(who: &Who, item: &Value) -> Option<Self> {
        let open = match number(item, "AttemptNo") {
            None => None,
            Some(no) => Some(Open {
                no,
                due: date(item, "AttemptDue")?,
                amount: number(item, "AttemptAmount")?,
                card: card(item, "AttemptPayment")?.to_owned(),
                holder: 0,
                is_chargeable: true,
                held_at: instant(item, "AttemptAt")?,
                leased_until: instant(item, "AttemptLease")?,
                claimed_at: instant(item, "AttemptAt")?,
            }),
        };
        let due = date(item, "DueDate")?;
        Some(Self {
            who: who.clone(),
            product: text(item, "ProductName")?.to_owned(),
            currency: text(item, "Currency")?.to_owned(),
            status: status_of(item)?,
            days: vec![(month_of(due), number(item, "PaymentDay")?)],
            prices: vec![(month_of(due), number(item, "PaymentAmount")?)],
            card: card(item, "PaymentDetails")?.to_owned(),
            first_due: date(item, "FirstDueDate")?,
            due,
            next: date(item, "NextPaymentDate"),
            remind: date(item, "NextReminderDate"),
            failed: number(item, "FailedAttempts")?,
            rejections: number(item, "Rejections").unwrap_or(0),
            first_declined: date(item, "FirstDeclinedDate"),
            attempts: number(item, "AttemptSeq")?,
            ends: month(item, "CancelPeriod"),
            was_unpaid: item.get("UnpaidSince").is_some(),
            open,
            reminding: None,
            reminding_late: Vec::new(),
            paid: BTreeMap::new(),
            waived: BTreeMap::new(),
            waives: Vec::new(),
            changed_at: instant(item, "CreatedDate")?,
        })
    }

    /// In what `item` is not as it must be.
    pub fn differences(&self, item: &Value) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, expected: String, found: String| {
            if expected != found {
                differences.push(format!("{what} should be {expected}, and is {found}"));
            }
        };
        let open = self.open.as_ref();
        compare("the status", format!("{:?}", Some(self.status)), format!("{:?}", status_of(item)));
        let (day, price) = (self.day_in(month_of(self.due)), self.price_in(month_of(self.due)));
        compare("the payment day", format!("{:?}", Some(day)), format!("{:?}", number::<u32>(item, "PaymentDay")));
        compare("the price", format!("{:?}", Some(price)), format!("{:?}", number::<i64>(item, "PaymentAmount")));
        compare("the card", format!("{:?}", Some(&*self.card)), format!("{:?}", card(item, "PaymentDetails")));
        compare("the due date", format!("{:?}", Some(self.due)), format!("{:?}", date(item, "DueDate")));
        compare("its end", format!("{:?}", self.ends), format!("{:?}", month(item, "CancelPeriod")));
        compare(
            "the first due date",
            format!("{:?}", Some(self.first_due)),
            format!("{:?}", date(item, "FirstDueDate")),
        );
        compare("the next payment date", format!("{:?}", self.next), format!("{:?}", date(item, "NextPaymentDate")));
        compare(
            "the next reminder date",
            format!("{:?}", self.remind),
            format!("{:?}", date(item, "NextReminderDate")),
        );
        compare("the findings that block it", "None".to_owned(), format!("{:?}", number::<u32>(item, "OpenFindings")));
        compare("the attempt", format!("{:?}", open.map(|o| o.no)), format!("{:?}", number::<u32>(item, "AttemptNo")));
        if let Some(open) = open {
            let frozen = (Some(open.due), Some(open.amount), Some(&*open.card));
            let found = (date(item, "AttemptDue"), number::<i64>(item, "AttemptAmount"), card(item, "AttemptPayment"));
            compare("what is frozen", format!("{frozen:?}"), format!("{found:?}"));
        }
        differences
    }

    /// Whether a new payment may be begun.
    pub fn is_chargeable(&self) -> bool {
        matches!(self.status, StoredStatus::Active | StoredStatus::PastDue)
    }

    /// Whether the due date is the one that ends it.
    pub fn is_ending(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= month_of(self.due))
    }
}

/// The payment method in an attribute.
fn card<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    text(item.get(name)?.get("M")?, "payment_method")
}

/// A month such as `2026-03`.
fn month(item: &Value, name: &str) -> Option<Month> {
    let (year, month) = text(item, name)?.split_once('-')?;
    Some((year.parse().ok()?, month.parse().ok()?))
}
