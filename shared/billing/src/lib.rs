//! The domain: what is due when, what an outcome means, what a customer may do.
//!
//! Everything here is pure. There is no async, clock, randomness, environment, HTTP or AWS: they are not in `Cargo.toml`, and
//! `clippy.toml` forbids what the standard library has of them. Days, instants and tokens are passed in, and a decision is returned.
//!
//! # Reading order
//! 1. [`money`] and [`calendar`]: amounts in minor units; which date a period's payment falls on.
//! 2. [`subscription`], [`new_subscription`] and [`terms`]: an agreement to pay on the same day each month, how it begins, and
//!    from when a change of it counts.
//! 3. [`policy`] and [`dunning`]: the merchant's settings, among them when a declined payment is tried again.
//! 4. [`attempt`], [`in_doubt`], [`mod@settle`] and [`catch_up`]: one try at charging one due date, what another worker may do with
//!    it, what its outcome does to the subscription, and which periods an outage still charges.
//! 5. [`receipt`], [`attempt_record`], [`waived_period`]: what is recorded of each period.
//! 6. [`changes`], [`pause`], [`cancellation`], [`refund`], [`dispute`], [`after_dispute`], [`finding`]: everything else that can
//!    happen. [`refusal`]: why a change is refused.
//! 7. [`event`]: which events a change of an item publishes.
//!
//! # Example
//! A subscription begins, its first payment succeeds, and it moves on to the next month:
//!
//! ```
//! use billing::{
//!     Attempt, Currency, LeadDays, NewSubscription, Outcome, Payment, PaymentMethod, PaymentStatus, Policy, Settled,
//!     SubscriptionId, Token, settle,
//! };
//! use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
//! use ulid::Ulid;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let date = |text: &str| text.parse::<NaiveDate>();
//! let now: DateTime<Utc> = "2027-01-10T06:00:00Z".parse()?;
//! let method = PaymentMethod { customer: "cus_1".parse()?, payment_method: "pm_card_visa".parse()? };
//! let new = NewSubscription {
//!     account: "acme".parse()?,
//!     id: SubscriptionId::new(Ulid::nil()),
//!     sku: "gold".parse()?,
//!     product_name: "Gold plan".parse()?,
//!     email: None,
//!     payment_day: 31.try_into()?,
//!     price: "EUR".parse::<Currency>()?.price(1299)?,
//!     payment_method: method,
//!     first_payment_on: None,
//! };
//! // Created on 10 January, in shard 0: the first payment is due on 31 January.
//! let mut subscription = new.begin(0, LeadDays::default(), date("2027-01-10")?, now)?;
//! assert_eq!(subscription.due_on, date("2027-01-31")?);
//!
//! // A worker has claimed the payment: the attempt freezes what is charged.
//! let charged_at = now + TimeDelta::days(21);
//! let attempt = Attempt {
//!     table: None,
//!     no: 1,
//!     due_on: subscription.due_on,
//!     amount: subscription.price,
//!     payment_method: subscription.payment_method.clone(),
//!     claimed_at: charged_at,
//!     leased_until: charged_at + TimeDelta::minutes(20),
//!     held_by: Token(Ulid::nil()),
//! };
//! subscription.attempt = Some(attempt.clone());
//! let payment = Payment {
//!     id: "pi_1".parse()?,
//!     table: None,
//!     account: subscription.account.clone(),
//!     subscription: subscription.id,
//!     due_on: attempt.due_on,
//!     attempt_no: attempt.no,
//!     amount: attempt.amount,
//!     status: PaymentStatus::Succeeded,
//!     card: None,
//!     created_at: charged_at,
//! };
//! let outcome = Outcome::Succeeded(payment);
//! let settled = settle(&subscription, &attempt, &outcome, &Policy::default(), date("2027-01-31")?, charged_at);
//! let Settled::Write(settlement) = settled else { panic!("nobody else has settled it") };
//! // There is a receipt, and the next payment falls on the last day of February.
//! assert_eq!(settlement.receipt.map(|receipt| receipt.due_on), Some(date("2027-01-31")?));
//! assert_eq!(settlement.subscription.due_on, date("2027-02-28")?);
//! # Ok(())
//! # }
//! ```
//!
//! A civil date (`NaiveDate`) is never an instant (`DateTime<Utc>`): names end in `_on` for dates and `_at` for instants.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(clippy::float_arithmetic)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod account;
pub mod after_dispute;
pub mod attempt;
pub mod attempt_record;
pub mod calendar;
pub mod cancellation;
pub mod card;
pub mod card_number;
pub mod catch_up;
pub mod ceilings;
pub mod changes;
mod characters;
pub mod contact;
pub mod dispute;
pub mod dunning;
pub mod event;
pub mod finding;
pub mod forecast;
pub mod ids;
pub mod in_doubt;
pub mod money;
pub mod new_subscription;
pub mod openapi;
pub mod pause;
pub mod payment;
pub mod policy;
pub mod receipt;
pub mod receipt_id;
pub mod records;
pub mod refund;
pub mod refusal;
pub mod reminder;
pub mod schedule;
pub mod settle;
pub mod setup;
pub mod subscription;
pub mod sums;
pub mod terms;
pub mod waived_period;
pub mod webhook;

pub use account::{Account, MailStatus};
pub use attempt::{Attempt, Outcome, Token};
pub use attempt_record::{AttemptEnd, AttemptRecord};
pub use calendar::{CalendarError, PaymentDay, Period, days_after, parse_date};
pub use card::{Card, CardError};
pub use card_number::{NO_CARD_NUMBER, contains_card_number};
pub use ceilings::{Ceilings, Day};
pub use changes::Changes;
pub use contact::{ContactError, EmailAddress, Label, Locale};
pub use dispute::{Dispute, DisputeStatus};
pub use dunning::{AfterLastRetry, Dunning, DunningError};
pub use event::{
    AccountNews, CloudEvent, DeclineNews, DisputeNews, Event, EventType, ExpiredNews, Image, News, PaymentNews,
    ReceivedEvent, RefundNews, ReversalNews, SubscriptionNews, UnreadableEvent, WaivedNews, events,
};
pub use finding::{Finding, FindingReason, LateSuccess, ResolvedFinding};
pub use forecast::Forecast;
pub use ids::check_id;
pub use ids::{AccountId, ExternalId, GatewayToken, IdError, Sku, SubscriptionId};
pub use in_doubt::{Resolution, Standing, resolve, standing, successes};
pub use money::{Currency, MAX_PRICE_MINOR, Money, MoneyError};
pub use new_subscription::{NewSubscription, first_due_on};
pub use payment::{Decline, GatewayAccount, Payment, PaymentMethod, PaymentStatus};
pub use policy::{
    AfterWonDispute, AfterWonDisputeError, CatchUp, CatchUpError, LeadDays, OnResume, OnResumeError, Policy,
};
pub use receipt::{Receipt, Reversal};
pub use receipt_id::ReceiptId;
pub use records::Records;
pub use refund::{NOT_ASKED, Refund, RefundRefusal, RefundStatus, RequestedAmount};
pub use refusal::Refusal;
pub use reminder::{Reminder, Reminding, mark_reminded, remind};
pub use schedule::Planned;
pub use settle::{Settled, Settlement, settle};
pub use setup::Setup;
pub use subscription::{ReminderClaim, Status, Subscription, Terms};
pub use sums::{Sums, SumsError};
pub use terms::Course;
pub use waived_period::{WaivedPeriod, WaivedReason};
pub use webhook::*;
