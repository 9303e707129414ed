//! Selects stored events and formats them.

use billing::CloudEvent;
use billing::{AccountId, EventData, EventType, OrderData, SubscriptionData};
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use clap::Args;
use serde::Deserialize;
use strum::IntoEnumIterator as _;

/// The width of the column with the event type, in characters.
const TYPE_WIDTH: usize = 24;
/// The type of the event that reports an unreadable change of the table. This type is not in the domain type
/// [`EventType`].
const UNREADABLE_TYPE: &str = "record.unreadable";
/// The width of the column with the account, in characters.
const ACCOUNT_WIDTH: usize = 16;

/// The options that select stored events.
#[derive(Debug, Args)]
pub struct EventFilter {
    /// Only events of this account
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<AccountId>,
    /// Only events of this type; repeat the option for several types
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_event_type)]
    pub types: Vec<String>,
}

/// Parses the name of an event type.
fn parse_event_type(text: &str) -> Result<String, String> {
    let names = EventType::iter().map(|event_type| event_type.to_string()).chain([UNREADABLE_TYPE.to_owned()]);
    let names: Vec<_> = names.collect();
    if names.iter().any(|name| name == text) {
        Ok(text.to_owned())
    } else {
        Err(format!("must be one of {}", names.join(", ")))
    }
}

/// The attributes that every stored event has.
#[derive(Debug, Deserialize)]
pub struct Envelope {
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    subject: String,
    time: DateTime<Utc>,
    data: serde_json::Value,
}

impl Envelope {
    /// Parses one line of the stored events.
    ///
    /// # Errors
    /// If the line is not an event.
    pub fn read(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// Returns whether the event passes `filter`.
    pub fn matches(&self, filter: &EventFilter) -> bool {
        let has_account = filter.account.as_ref().is_none_or(|account| account.as_str() == self.subject);
        has_account && (filter.types.is_empty() || filter.types.contains(&self.event_type))
    }

    /// Returns the id of the event.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the event reports a change of the table that could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.event_type == UNREADABLE_TYPE
    }

    /// Returns the date of the event in the time zone `zone`.
    pub fn day(&self, zone: Tz) -> NaiveDate {
        self.time.with_timezone(&zone).date_naive()
    }

    /// Formats the event as one line: time, type, account and details. `line` is the stored line of the event.
    pub fn text(&self, line: &str, zone: Tz) -> String {
        let at = self.time.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S");
        let Self { event_type, subject, data, .. } = self;
        let details = match serde_json::from_str::<CloudEvent>(line) {
            Ok(event) => event_details(&event.body),
            Err(_) => data["reason"].as_str().unwrap_or_default().to_owned(),
        };
        format!("{at}  {event_type:TYPE_WIDTH$}  {subject:ACCOUNT_WIDTH$}  {details}").trim_end().to_owned()
    }
}

/// Returns the most important values of an event, for the last column.
fn event_details(data: &EventData) -> String {
    match data {
        EventData::AccountCreated(_) | EventData::AccountChanged(_) | EventData::AccountErased(_) => String::new(),
        EventData::SubscriptionEnding(s) => match s.cancel_from {
            Some(from) => format!("{}, ends on {from}", subscription_terms(s)),
            None => format!("{}, continues", subscription_terms(s)),
        },
        EventData::SubscriptionPastDue(s) => match s.next_payment_on {
            Some(next) => format!("{}, tried again on {next}", subscription_terms(s)),
            None => subscription_terms(s),
        },
        EventData::SubscriptionCreated(s)
        | EventData::SubscriptionChanged(s)
        | EventData::SubscriptionPaused(s)
        | EventData::SubscriptionResumed(s)
        | EventData::SubscriptionRenewed(s)
        | EventData::SubscriptionUnpaid(s)
        | EventData::SubscriptionRevived(s)
        | EventData::SubscriptionCancelled(s)
        | EventData::SubscriptionReminded(s) => subscription_terms(s),
        EventData::PaymentSucceeded(paid) => {
            format!("{}, {}, due {}", paid.amount, paid.product_name.as_str(), paid.due_on)
        }
        EventData::PaymentRefunded(back) | EventData::RefundFailed(back) => {
            format!("{}, due {}", back.amount, back.due_on)
        }
        EventData::PaymentDisputed(of) | EventData::DisputeClosed(of) => {
            format!("{}, due {}, {}: {}", of.amount, of.due_on, of.status, of.reason)
        }
        EventData::PaymentReversed(back) => format!("{}, due {}: {}", back.amount, back.due_on, back.reason),
        EventData::PaymentDeclined(failed) | EventData::PaymentRejected(failed) => {
            format!("{}, due {}, attempt {}: {}", failed.amount, failed.due_on, failed.attempt_no, failed.code)
        }
        EventData::PeriodWaived(waived) => format!("due {}, {}", waived.due_on, waived.reason),
        EventData::AuditCompleted(audit) => format!(
            "{} accounts, {} violations",
            audit.accounts,
            audit.violations.values().fold(0_u64, |sum, count| sum.saturating_add(*count))
        ),
        EventData::DayReconciled(day) => format!(
            "{}, {} payments, {} differences",
            day.date,
            day.counts.payments,
            day.differences.values().fold(0_u64, |sum, count| sum.saturating_add(*count))
        ),
        EventData::ActionTaken(taken) => match &taken.actor_name {
            Some(name) => format!("{} by {} {name}", taken.action, taken.actor),
            None => format!("{} by {}", taken.action, taken.actor),
        },
        EventData::ReceiptExpired(gone) => format!("{}, due {}", gone.amount, gone.due_on),
        EventData::OrderPlaced(order)
        | EventData::OrderBackordered(order)
        | EventData::OrderFilled(order)
        | EventData::OrderShipped(order)
        | EventData::OrderDelivered(order)
        | EventData::OrderCancelled(order)
        | EventData::OrderReturned(order) => order_details(order),
    }
}

/// Returns the id of an order with the newest facts about the order: the missing stock or address of a backordered
/// order, the warehouse of a filled order, and the parcel of a shipped order.
fn order_details(order: &OrderData) -> String {
    let missing = order.missing.iter().map(|line| format!("{} {}", line.quantity, line.product)).collect::<Vec<_>>();
    let waits_for = order.waits_for.as_ref().map(|reason| match missing.as_slice() {
        [] => format!("waits for {reason}"),
        missing => format!("waits for {reason}: {} missing", missing.join(", ")),
    });
    let warehouse = order.warehouse.as_ref().map(|warehouse| format!("from {warehouse}"));
    let parcel =
        [&order.carrier, &order.tracking_number].map(|text| text.as_ref().map(|text| text.as_str().to_owned()));
    let details = [Some(order.order.clone()), waits_for, warehouse].into_iter().chain(parcel);
    details.flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the product, the price and the due date of a subscription.
fn subscription_terms(s: &SubscriptionData) -> String {
    format!("{}, {}, due {}", s.product_name.as_str(), s.price, s.due_on)
}
