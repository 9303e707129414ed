//! Selects stored events and formats them.

use billing::{AccountId, EventData, OrderEventData, ReceivedEvent, SubscriptionEventData};
use chrono_tz::Tz;
use clap::Args;
use outbound::parse_event_type;
use serde::Deserialize;

/// The width of the column with the event type, in characters.
const TYPE_WIDTH: usize = 24;
/// The type of the event that reports an unreadable change of the table. This type is not in the domain type
/// [`EventType`](billing::EventType).
const UNREADABLE_TYPE: &str = "record.unreadable";
/// The width of the column with the subject, in characters.
const SUBJECT_WIDTH: usize = 16;

/// The options that select stored events.
#[derive(Debug, Args)]
pub struct EventFilter {
    /// Only events of this account
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<AccountId>,
    /// Only events of this type; repeat the option for several types
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_stored_event_type)]
    pub types: Vec<String>,
}

/// Parses the name of the type of a stored event.
fn parse_stored_event_type(name: &str) -> Result<String, String> {
    match parse_event_type(name) {
        _ if name == UNREADABLE_TYPE => Ok(name.to_owned()),
        Ok(event_type) => Ok(event_type.to_string()),
        Err(allowed) => Err(format!("{allowed}, {UNREADABLE_TYPE}")),
    }
}

impl EventFilter {
    /// Returns whether `event` passes this filter.
    pub fn matches(&self, event: &ReceivedEvent) -> bool {
        let has_account = self.account.is_none() || self.account == event.account();
        has_account && (self.types.is_empty() || self.types.contains(&event.event_type))
    }
}

/// Returns whether `event` reports a change of the table that could not be read.
pub fn reports_unreadable_record(event: &ReceivedEvent) -> bool {
    event.event_type == UNREADABLE_TYPE
}

/// Formats `event` as one line: time in the time zone `zone`, type, subject and details.
pub fn event_line(event: &ReceivedEvent, zone: Tz) -> String {
    let at = event.time.map(|time| time.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S").to_string());
    let (at, subject) = (at.unwrap_or_default(), event.subject.as_deref().unwrap_or_default());
    let details = match event.content() {
        Ok(event) => event_details(&event.body),
        Err(_) => read_event_reason(&event.json).unwrap_or_default(),
    };
    let event_type = &event.event_type;
    format!("{at}  {event_type:TYPE_WIDTH$}  {subject:SUBJECT_WIDTH$}  {details}").trim_end().to_owned()
}

/// Returns the field `reason` in the data of the event `json`, if it has one. Used for events whose type or data this
/// version of Dueday does not know.
fn read_event_reason(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Reason {
        reason: String,
    }
    #[derive(Deserialize)]
    struct EventWithReason {
        data: Reason,
    }
    serde_json::from_str::<EventWithReason>(json).ok().map(|event| event.data.reason)
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
fn order_details(order: &OrderEventData) -> String {
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
fn subscription_terms(s: &SubscriptionEventData) -> String {
    format!("{}, {}, due {}", s.product_name.as_str(), s.price, s.due_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_line_shows_the_reason_of_an_event_that_this_version_does_not_know() {
        for event_type in [UNREADABLE_TYPE, "a.later_one"] {
            let json = format!(
                r#"{{"specversion":"1.0","id":"1","type":"{event_type}","subject":"acme","time":"2027-01-31T22:30:00Z",
                    "data":{{"reason":"no Currency","later":1}}}}"#
            );
            let line = event_line(&ReceivedEvent::read(&json).unwrap(), Tz::Europe__Berlin);
            assert_eq!(line, format!("2027-01-31 23:30:00  {event_type:TYPE_WIDTH$}  acme              no Currency"));
        }
    }
}
