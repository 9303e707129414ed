//! The domain: due dates, payment attempts and their outcomes, and the changes that customers and operators may make.
//!
//! All functions are pure. This crate has no async code, clock, randomness, environment, HTTP or AWS: `Cargo.toml` does
//! not contain the necessary dependencies, and `clippy.toml` forbids the functions of the standard library. The caller
//! passes in dates, instants and tokens, and gets a decision back.
//!
//! # Reading order
//! 1. [`ids`], [`money`], [`money_sums`], [`calendar`]: identifiers; amounts in minor units, and their sums by currency;
//!    the due date in each month. [`contact_data`], [`card`], [`card_number`]: what is stored about a customer and a
//!    card, and the rule that no card number is stored.
//! 2. [`subscription`], [`new_subscription`], [`terms`], [`planned_payments`]: an agreement to pay on the same day each
//!    month, its creation, the month from which a change of its price or payment day applies, and its next payments.
//! 3. [`policy`], [`dunning`]: the settings of the merchant, among them the retry schedule of declined payments.
//!    [`payment_limits`], [`ceilings`]: the limits that protect customers from a wrong import or a wrong price.
//! 4. [`reminder`]: the mail that announces a payment.
//! 5. [`payment`], [`attempt`], [`attempts_in_doubt`], [`mod@settle`], [`catch_up`]: a payment at the gateway, one try to
//!    charge the payment of one due date, the rules for an unknown outcome, the effect of an outcome on the
//!    subscription, and the months that are charged after an outage.
//! 6. [`receipt`], [`receipt_id`], [`attempt_record`], [`waived_period`], [`payment_records`]: the records of paid
//!    months, of failed attempts, and of months that are never charged.
//! 7. [`subscription_changes`], [`payment_method_setup`], [`pause`], [`cancellation`], [`refund`], [`dispute`],
//!    [`after_dispute`], [`finding`], [`erasure`]: all other changes. [`refusal`]: the reasons why a change is refused.
//! 8. [`audit_record`], [`day_reconciliation`], [`accepted_difference`], [`forecast`]: the stored results of audits and
//!    of comparisons with the gateway, and the expected charges.
//! 9. [`action`]: the log of the changes that people and programs make.
//! 10. [`event`], [`outbound_webhook`]: the events that are published when a stored item changes, and their delivery to
//!     the endpoints of the merchant.
//!
//! [`openapi`] contains the schemas that describe these types in the APIs.
//!
//! # Example
//! A subscription is created, its first payment succeeds, and the next payment becomes due in the next month:
//!
//! ```
//! use billing::{
//!     Attempt, ClaimToken, Currency, LeadDays, NewSubscription, Outcome, Payment, PaymentMethod, PaymentStatus,
//!     Policy, SettleDecision, SubscriptionId, settle,
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
//!     external_id: None,
//!     sku: "gold".parse()?,
//!     product_name: "Gold plan".parse()?,
//!     email: None,
//!     payment_day: 31.try_into()?,
//!     price: "EUR".parse::<Currency>()?.price(1299)?,
//!     payment_method: method,
//!     first_payment_on: None,
//! };
//! // Created on 10 January, in shard 0: the first payment is due on 31 January.
//! let mut subscription = new.into_subscription(0, LeadDays::default(), date("2027-01-10")?, now)?;
//! assert_eq!(subscription.due_on, date("2027-01-31")?);
//!
//! // A worker has claimed the payment: the attempt freezes the amount and the payment method.
//! let charged_at = now + TimeDelta::days(21);
//! let attempt = Attempt {
//!     table: None,
//!     no: 1,
//!     due_on: subscription.due_on,
//!     amount: subscription.price,
//!     payment_method: subscription.payment_method.clone(),
//!     claimed_at: charged_at,
//!     leased_until: charged_at + TimeDelta::minutes(20),
//!     claim_token: ClaimToken(Ulid::nil()),
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
//! let decision = settle(&subscription, &attempt, &outcome, &Policy::default(), date("2027-01-31")?, charged_at);
//! let SettleDecision::Write(settlement) = decision else { panic!("no other worker has settled the attempt") };
//! // The settlement contains a receipt, and the next payment is due on the last day of February.
//! assert_eq!(settlement.receipt.map(|receipt| receipt.due_on), Some(date("2027-01-31")?));
//! assert_eq!(settlement.subscription.due_on, date("2027-02-28")?);
//! # Ok(())
//! # }
//! ```
//!
//! # Names
//! The names of dates without a time (`NaiveDate`) end in `_on`, and those of instants (`DateTime<Utc>`) end in `_at`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(clippy::float_arithmetic)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod accepted_difference;
mod account;
pub mod action;
pub mod after_dispute;
pub mod attempt;
pub mod attempt_record;
pub mod attempts_in_doubt;
pub mod audit_record;
pub mod calendar;
pub mod cancellation;
pub mod card;
pub mod card_number;
pub mod catch_up;
pub mod ceilings;
mod character_checks;
pub mod contact_data;
pub mod day_reconciliation;
pub mod dispute;
pub mod dunning;
pub mod erasure;
pub mod event;
pub mod finding;
pub mod forecast;
mod idempotency_key;
pub mod ids;
pub mod money;
pub mod money_sums;
pub mod new_subscription;
pub mod openapi;
pub mod outbound_webhook;
pub mod pause;
pub mod payment;
pub mod payment_limits;
pub mod payment_method_setup;
pub mod payment_records;
pub mod planned_payments;
pub mod policy;
pub mod receipt;
pub mod receipt_id;
mod receipt_number;
pub mod refund;
pub mod refusal;
pub mod reminder;
pub mod settle;
pub mod subscription;
pub mod subscription_changes;
pub mod terms;
pub mod waived_period;

pub use accepted_difference::AcceptedDifference;
pub use account::{Account, AccountChanges, MailStatus};
pub use action::{ActionKind, Actor, ActorKind, ActorName, ItemChange, LoggedAction, NewAction};
pub use attempt::{Attempt, ClaimToken, Outcome};
pub use attempt_record::{AttemptEnd, AttemptRecord};
pub use attempts_in_doubt::{
    AttemptContradiction, ClaimRefusal, Resolution, attempt_contradiction, claim_refusal, resolve, successful_payments,
};
pub use audit_record::{AUDIT_RETENTION, AuditRecord, AuditViolation, MAX_STORED_VIOLATIONS};
pub use calendar::{CalendarError, PaymentDay, Period, days_after, deserialize_date, parse_date};
pub use card::{Card, CardError};
pub use card_number::{NO_CARD_NUMBER, contains_card_number};
pub use ceilings::{Ceilings, ChargeTotal};
pub use contact_data::{ContactError, EmailAddress, Label, Locale};
pub use day_reconciliation::{
    DayReconciliation, Difference, DifferenceKind, GatewayList, MAX_STORED_DIFFERENCES, RECONCILIATION_RETENTION,
    ReconciledCounts, ReconciliationStep,
};
pub use dispute::{Dispute, DisputeStatus};
pub use dunning::{AfterLastRetry, Dunning, DunningError};
pub use erasure::{ERASED, ErasedAccount, Erasure, ErasureCheck, ErasureCounts, ErasureObstacle, ErasureStep};
pub use event::{
    AccountData, AuditData, ChangedField, CloudEvent, DeclineData, DisputeData, Event, EventData, EventType,
    ExpiredReceiptData, ItemImage, OperatorEvent, OrderData, OrderLineData, PaymentData, ReceivedEvent,
    ReconciliationData, RefundData, ReversalData, SubscriptionData, UnreadableEvent, WaitingTerms, WaivedPeriodData,
    events_between_images,
};
pub use finding::{Finding, FindingReason, LateSuccess, ResolvedFinding};
pub use forecast::Forecast;
pub use ids::check_id;
pub use ids::{AccountId, ExternalId, GatewayToken, IdError, Sku, SubscriptionId};
pub use money::{Currency, MAX_PRICE_MINOR, Money, MoneyError};
pub use money_sums::{Sums, SumsError};
pub use new_subscription::{NewSubscription, first_due_on};
pub use outbound_webhook::*;
pub use payment::{Decline, GatewayAccount, Payment, PaymentMethod, PaymentStatus};
pub use payment_limits::{PaymentLimit, PaymentLimitError, PaymentLimits};
pub use payment_method_setup::PaymentMethodSetup;
pub use payment_records::PaymentRecords;
pub use planned_payments::PlannedPayment;
pub use policy::{
    AfterWonDispute, CatchUp, LeadDays, OnResume, ParseAfterWonDisputeError, ParseCatchUpError, ParseOnResumeError,
    Policy,
};
pub use receipt::{Receipt, Reversal};
pub use receipt_id::ReceiptId;
pub use receipt_number::{ReceiptNumber, ReceiptReference, SubscriptionCode};
pub use refund::{REFUSED_BY_GATEWAY, Refund, RefundRefusal, RefundStatus, RequestedAmount, SucceededRefunds};
pub use refusal::Refusal;
pub use reminder::{Reminder, ReminderDecision, decide_reminder, mark_reminded};
pub use settle::{SettleDecision, Settlement, settle};
pub use subscription::{ReminderClaim, Status, Subscription, Terms};
pub use subscription_changes::Changes;
pub use terms::PaymentSchedule;
pub use waived_period::{WaivedPeriod, WaivedReason};
