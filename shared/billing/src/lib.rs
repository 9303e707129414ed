//! The rules of billing: what is due when, what an outcome means, what a customer may do.
//!
//! Everything here is pure. There is no async, no clock, no randomness, no environment and no AWS: days, instants
//! and tokens are handed in, and a decision is handed back. The lints below, with the lists in `clippy.toml`, keep it so;
//! an `async fn` is a `Future`, which is on them.
//!
//! A civil date (`NaiveDate`) is never an instant (`DateTime<Utc>`): names end in `_on` for dates and `_at` for instants.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(clippy::float_arithmetic)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod account;
mod after_dispute;
mod attempt;
mod attempt_record;
mod calendar;
mod cancellation;
mod card;
mod card_number;
mod catch_up;
mod ceilings;
mod changes;
mod characters;
mod contact;
mod dispute;
mod dunning;
mod event;
mod finding;
mod forecast;
mod ids;
mod money;
mod pause;
mod payment;
mod receipt;
mod receipt_id;
mod records;
mod refund;
mod reminder;
mod schedule;
mod settle;
mod setup;
mod subscription;
mod sums;
mod terms;
mod waived_period;
mod webhook;

pub use account::{Account, MailStatus};
pub use after_dispute::{AfterWonDispute, AfterWonDisputeError};
pub use attempt::{Attempt, Resolution, Standing, Token, resolve, standing, successes};
pub use attempt_record::{AttemptEnd, AttemptRecord};
pub use calendar::days_after;
pub use calendar::{CalendarError, PaymentDay, Period};
pub use card::{Card, CardError};
pub use card_number::{NO_CARD_NUMBER, contains_card_number};
pub use catch_up::{CatchUp, CatchUpError};
pub use ceilings::{Ceilings, Day};
pub use changes::{Changes, Refusal};
pub use contact::{ContactError, EmailAddress, Label, Locale};
pub use dispute::{Dispute, DisputeStatus};
pub use dunning::{AfterLastRetry, Dunning, DunningError};
pub use event::{
    AccountNews, CloudEvent, DeclineNews, DisputeNews, Event, EventType, ExpiredNews, Image, News, PaymentNews,
    RefundNews, ReversalNews, SubscriptionNews, WaivedNews, events, told,
};
pub use finding::{Finding, FindingReason, LateSuccess, ResolvedFinding};
pub use forecast::Forecast;
pub use ids::check_id;
pub use ids::{AccountId, ExternalId, GatewayToken, IdError, Sku, SubscriptionId};
pub use money::{Currency, MAX_PRICE_MINOR, Money, MoneyError};
pub use pause::{OnResume, OnResumeError};
pub use payment::{Decline, GatewayAccount, Payment, PaymentMethod, PaymentStatus};
pub use receipt::{Receipt, Reversal};
pub use receipt_id::ReceiptId;
pub use records::Records;
pub use refund::{NOT_ASKED, Refund, RefundRefusal, RefundStatus, RequestedAmount};
pub use reminder::{LeadDays, Reminder, ReminderClaim, Reminding, mark_reminded, remind};
pub use schedule::Planned;
pub use settle::{Outcome, Policy, Settled, Settlement, settle};
pub use setup::Setup;
pub use subscription::{NewSubscription, Status, Subscription, first_due_on};
pub use sums::{Sums, SumsError};
pub use terms::{Course, Terms};
pub use waived_period::{WaivedPeriod, WaivedReason};
pub use webhook::*;
