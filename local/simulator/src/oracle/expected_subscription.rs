//! The state of one subscription that the oracle expects in the table.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

use super::subscription_status_in_item;
use crate::calendar::{Month, month_of};
use crate::json::{read_date_attribute, read_instant_attribute, read_number_attribute, read_text_attribute};
use crate::schedule::ActorId;
use crate::stored_items::{StoredStatus, SubscriptionName};

/// An action of a customer, or of an operator for a customer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CustomerAction {
    Pause,
    Resume,
    Cancel,
    CancelAtPeriodEnd,
    Uncancel,
    /// The new price in minor units.
    ChangePrice(i64),
    ChangePaymentDay(u32),
    /// The new payment method.
    ChangeCard(String),
    /// An operator corrects the price of the owed month to this price in minor units.
    CorrectPrice(i64),
    /// An operator waives this month, with the reason that its record must contain.
    WaiveMonth(Month, &'static str),
}

/// An open payment attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenAttempt {
    /// The number of the attempt.
    pub no: u32,
    pub due: NaiveDate,
    pub amount: i64,
    pub card: String,
    /// The actor that claimed the attempt or took it over last.
    pub holder: ActorId,
    /// Whether the actor in `holder` may send a charge. False if the actor took over the attempt of a stopped
    /// subscription: this actor may only look up the outcome and store the outcome.
    pub is_chargeable: bool,
    /// The instant at which the holder claimed the attempt or took it over.
    pub held_since: DateTime<Utc>,
    pub leased_until: DateTime<Utc>,
    /// The instant of the claim; a take-over does not change this instant.
    pub claimed_at: DateTime<Utc>,
}

/// The claim by which one actor gets the right to send a reminder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReminderClaim {
    pub holder: ActorId,
    pub leased_until: DateTime<Utc>,
    /// The due date and the amount that the mail must state; `None` if no mail may be sent.
    pub due_and_amount: Option<(NaiveDate, i64)>,
    pub is_sent: bool,
}

/// The expected state of one subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedSubscription {
    pub name: SubscriptionName,
    pub product: String,
    pub currency: String,
    pub status: StoredStatus,
    /// The payment days, each with the first month to which it applies.
    pub days: Vec<(Month, u32)>,
    /// The prices in minor units, each with the first month to which it applies.
    pub prices: Vec<(Month, i64)>,
    pub card: String,
    /// The first due date of the subscription.
    pub first_due: NaiveDate,
    /// The next due date.
    pub due: NaiveDate,
    /// The date from which the payment batch must process the subscription; `None` if the batch must not process it.
    pub next_payment: Option<NaiveDate>,
    /// The date from which the reminder batch must process the subscription; `None` if the batch must not process it.
    pub next_reminder: Option<NaiveDate>,
    /// The number of declines in the month that is due, with the current card.
    pub failed: u32,
    /// The number of rejected attempts in a row.
    pub rejections: u32,
    /// The day of the first decline in the month that is due; `None` before a decline.
    pub first_declined: Option<NaiveDate>,
    /// The number of the last attempt.
    pub attempts: u32,
    /// The first month that is no longer charged; `None` if no end is set.
    pub ends: Option<Month>,
    /// Whether the declined charges of the month that is due now have made the subscription unpaid.
    pub was_unpaid: bool,
    /// The open attempt; `None` if no attempt is open.
    pub open: Option<OpenAttempt>,
    pub reminder_claim: Option<ReminderClaim>,
    /// Reminder claims that another actor took over while the mail was being sent. The holder of each of these claims
    /// may still send one mail.
    pub superseded_reminder_claims: Vec<ReminderClaim>,
    /// The gateway's payment id of each paid month.
    pub paid: BTreeMap<Month, String>,
    /// The reason of each waived month.
    pub waived: BTreeMap<Month, String>,
    /// The due dates and reasons of the months that the last change waived.
    pub new_waivers: Vec<(NaiveDate, &'static str)>,
    /// The instant of the last change.
    pub changed_at: DateTime<Utc>,
}

impl ExpectedSubscription {
    /// Reads the first expected state of a new subscription from its item; `None` if the item cannot be read.
    pub fn from_item(subscription: &SubscriptionName, item: &Value) -> Option<Self> {
        let open = match read_number_attribute(item, "AttemptNo") {
            None => None,
            Some(no) => Some(OpenAttempt {
                no,
                due: read_date_attribute(item, "AttemptDue")?,
                amount: read_number_attribute(item, "AttemptAmount")?,
                card: read_payment_method_id(item, "AttemptPayment")?.to_owned(),
                holder: 0,
                is_chargeable: true,
                held_since: read_instant_attribute(item, "AttemptAt")?,
                leased_until: read_instant_attribute(item, "AttemptLease")?,
                claimed_at: read_instant_attribute(item, "AttemptAt")?,
            }),
        };
        let due = read_date_attribute(item, "DueDate")?;
        Some(Self {
            name: subscription.clone(),
            product: read_text_attribute(item, "ProductName")?.to_owned(),
            currency: read_text_attribute(item, "Currency")?.to_owned(),
            status: subscription_status_in_item(item)?,
            days: vec![(month_of(due), read_number_attribute(item, "PaymentDay")?)],
            prices: vec![(month_of(due), read_number_attribute(item, "PaymentAmount")?)],
            card: read_payment_method_id(item, "PaymentDetails")?.to_owned(),
            first_due: read_date_attribute(item, "FirstDueDate")?,
            due,
            next_payment: read_date_attribute(item, "NextPaymentDate"),
            next_reminder: read_date_attribute(item, "NextReminderDate"),
            failed: read_number_attribute(item, "FailedAttempts")?,
            rejections: read_number_attribute(item, "Rejections").unwrap_or(0),
            first_declined: read_date_attribute(item, "FirstDeclinedDate"),
            attempts: read_number_attribute(item, "AttemptSeq")?,
            ends: read_month_attribute(item, "CancelPeriod"),
            was_unpaid: item.get("UnpaidSince").is_some(),
            open,
            reminder_claim: None,
            superseded_reminder_claims: Vec::new(),
            paid: BTreeMap::new(),
            waived: BTreeMap::new(),
            new_waivers: Vec::new(),
            changed_at: read_instant_attribute(item, "CreatedDate")?,
        })
    }

    /// Returns the differences between `item` and the expected state.
    pub fn find_differences(&self, item: &Value) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |attribute: &str, expected: String, found: String| {
            if expected != found {
                differences.push(format!("{attribute} should be {expected}, but is {found}"));
            }
        };
        let open = self.open.as_ref();
        compare("the status", format!("{:?}", Some(self.status)), format!("{:?}", subscription_status_in_item(item)));
        let (day, price) = (self.payment_day_in(month_of(self.due)), self.price_in(month_of(self.due)));
        compare(
            "the payment day",
            format!("{:?}", Some(day)),
            format!("{:?}", read_number_attribute::<u32>(item, "PaymentDay")),
        );
        compare(
            "the price",
            format!("{:?}", Some(price)),
            format!("{:?}", read_number_attribute::<i64>(item, "PaymentAmount")),
        );
        compare(
            "the card",
            format!("{:?}", Some(&*self.card)),
            format!("{:?}", read_payment_method_id(item, "PaymentDetails")),
        );
        compare("the due date", format!("{:?}", Some(self.due)), format!("{:?}", read_date_attribute(item, "DueDate")));
        compare(
            "the end month",
            format!("{:?}", self.ends),
            format!("{:?}", read_month_attribute(item, "CancelPeriod")),
        );
        compare(
            "the first due date",
            format!("{:?}", Some(self.first_due)),
            format!("{:?}", read_date_attribute(item, "FirstDueDate")),
        );
        compare(
            "the next payment date",
            format!("{:?}", self.next_payment),
            format!("{:?}", read_date_attribute(item, "NextPaymentDate")),
        );
        compare(
            "the next reminder date",
            format!("{:?}", self.next_reminder),
            format!("{:?}", read_date_attribute(item, "NextReminderDate")),
        );
        compare(
            "the number of open findings",
            "None".to_owned(),
            format!("{:?}", read_number_attribute::<u32>(item, "OpenFindings")),
        );
        compare(
            "the number of the open attempt",
            format!("{:?}", open.map(|o| o.no)),
            format!("{:?}", read_number_attribute::<u32>(item, "AttemptNo")),
        );
        if let Some(open) = open {
            let frozen = (Some(open.due), Some(open.amount), Some(&*open.card));
            let found = (
                read_date_attribute(item, "AttemptDue"),
                read_number_attribute::<i64>(item, "AttemptAmount"),
                read_payment_method_id(item, "AttemptPayment"),
            );
            compare("the due date, amount and card of the attempt", format!("{frozen:?}"), format!("{found:?}"));
        }
        differences
    }

    /// Returns whether the status allows a new payment attempt.
    pub fn is_chargeable(&self) -> bool {
        matches!(self.status, StoredStatus::Active | StoredStatus::PastDue)
    }

    /// Returns whether the subscription ends on the next due date, so that this month is not charged.
    pub fn ends_on_due_date(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= month_of(self.due))
    }
}

/// Returns the id of the payment method that the attribute `name` contains.
fn read_payment_method_id<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    read_text_attribute(item.get(name)?.get("M")?, "payment_method")
}

/// Reads a month such as `2026-03` from the attribute `name`.
fn read_month_attribute(item: &Value, name: &str) -> Option<Month> {
    let (year, month) = read_text_attribute(item, name)?.split_once('-')?;
    Some((year.parse().ok()?, month.parse().ok()?))
}
