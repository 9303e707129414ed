//! A kept event, chosen and shown.

use billing::CloudEvent;
use billing::{AccountId, EventType, News, SubscriptionNews};
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use clap::Args;
use serde::Deserialize;
use strum::IntoEnumIterator as _;

/// The widest type, and something between it and what follows.
const TYPE_WIDTH: usize = 24;
/// What the domain makes no event of.
const UNREADABLE: &str = "record.unreadable";
const ACCOUNT_WIDTH: usize = 16;

/// Which events are wanted.
#[derive(Debug, Args)]
pub struct Wanted {
    /// Only those of this account
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<AccountId>,
    /// Only those of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    pub types: Vec<String>,
}

fn event_type(text: &str) -> Result<String, String> {
    let names = EventType::iter().map(|event_type| event_type.to_string()).chain([UNREADABLE.to_owned()]);
    let names: Vec<_> = names.collect();
    if names.iter().any(|name| name == text) {
        Ok(text.to_owned())
    } else {
        Err(format!("must be one of {}", names.join(", ")))
    }
}

/// What every envelope has.
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
    /// Reads a kept line.
    ///
    /// # Errors
    /// It is no event.
    pub fn read(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// Whether it is `wanted`.
    pub fn is(&self, wanted: &Wanted) -> bool {
        let is_of = wanted.account.as_ref().is_none_or(|account| account.as_str() == self.subject);
        is_of && (wanted.types.is_empty() || wanted.types.contains(&self.event_type))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it says that a change could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.event_type == UNREADABLE
    }

    /// The day on which it happened.
    pub fn day(&self, zone: Tz) -> NaiveDate {
        self.time.with_timezone(&zone).date_naive()
    }

    /// One line for people: when, what, whose, and what of it. `line` is what it was read from.
    pub fn text(&self, line: &str, zone: Tz) -> String {
        let at = self.time.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S");
        let Self { event_type, subject, data, .. } = self;
        let of_it = match serde_json::from_str::<CloudEvent>(line) {
            Ok(event) => particulars(&event.body),
            Err(_) => data["reason"].as_str().unwrap_or_default().to_owned(),
        };
        format!("{at}  {event_type:TYPE_WIDTH$}  {subject:ACCOUNT_WIDTH$}  {of_it}").trim_end().to_owned()
    }
}

fn particulars(news: &News) -> String {
    match news {
        News::AccountCreated(_) | News::AccountChanged(_) | News::AccountErased(_) => String::new(),
        News::SubscriptionEnding(s) => match s.cancel_from {
            Some(from) => format!("{}, nothing is owed from {from} on", agreed(s)),
            None => format!("{}, goes on", agreed(s)),
        },
        News::SubscriptionPastDue(s) => match s.next_payment_on {
            Some(next) => format!("{}, tried again on {next}", agreed(s)),
            None => agreed(s),
        },
        News::SubscriptionCreated(s)
        | News::SubscriptionChanged(s)
        | News::SubscriptionPaused(s)
        | News::SubscriptionResumed(s)
        | News::SubscriptionUnpaid(s)
        | News::SubscriptionRevived(s)
        | News::SubscriptionCancelled(s)
        | News::SubscriptionReminded(s) => agreed(s),
        News::PaymentSucceeded(paid) => format!("{}, {}, due {}", paid.amount, paid.product_name.as_str(), paid.due_on),
        News::PaymentRefunded(back) | News::RefundFailed(back) => format!("{}, due {}", back.amount, back.due_on),
        News::PaymentDisputed(of) | News::DisputeClosed(of) => {
            format!("{}, due {}, {}: {}", of.amount, of.due_on, of.status, of.reason)
        }
        News::PaymentReversed(back) => format!("{}, due {}: {}", back.amount, back.due_on, back.reason),
        News::PaymentDeclined(failed) | News::PaymentRejected(failed) => {
            format!("{}, due {}, attempt {}: {}", failed.amount, failed.due_on, failed.attempt_no, failed.code)
        }
        News::PeriodWaived(waived) => format!("due {}, {}", waived.due_on, waived.reason),
        News::ReceiptExpired(gone) => format!("{}, due {}", gone.amount, gone.due_on),
    }
}

fn agreed(s: &SubscriptionNews) -> String {
    format!("{}, {}, due {}", s.product_name.as_str(), s.price, s.due_on)
}
