//! The domain: due dates, payment attempts and their outcomes, and the changes that customers and operators may make.
//!
//! All functions are pure. This crate has no async code, clock, randomness, environment, HTTP or AWS: `Cargo.toml` does
//! not contain the necessary dependencies, and `clippy.toml` forbids the functions of the standard library. The caller
//! passes in dates, instants and tokens, and gets a decision back.
//!
//! # Reading order
//! Each folder is private, and its items are names of this crate, such as [`Money`]. A folder imports only from folders
//! above it in this list.
//! 1. `values`: identifiers; amounts in minor units, their sums by currency, and the amounts that a gateway can charge;
//!    the due date in each month; what is stored about a customer and a card, and the rule that no card number is stored.
//! 2. `records`: an attempt to charge a payment, the payment at the gateway, its receipt, its refunds and disputes, and
//!    waived months.
//! 3. `settings`: the policy of the merchant, the retry schedule of declined payments, and the limits that protect
//!    customers from a wrong import or a wrong price.
//! 4. `subscriptions`: an agreement to pay on the same day each month, its creation, the month from which a change of
//!    its price or payment day applies, the reminder of a payment, what happens next, and why a change is refused.
//! 5. `settlement`: the key that makes repeated requests one charge, the rules for an unknown outcome, the effect of an
//!    outcome on the subscription, and the months that are charged after an outage.
//! 6. `changes`: pause, cancellation, months that are paid in another way, disputes, findings, and erasure.
//! 7. `checks`: the stored results of audits and of comparisons with the gateway.
//! 8. `action`: the log of the changes that people and programs make.
//! 9. `event`, `outbound_webhook`: the events that are published when a stored item changes, and their delivery to the
//!    endpoints of the merchant.
//!
//! [`openapi`] contains the schemas that describe these types in the APIs.
//!
//! # Example
//! A subscription is created, its first payment succeeds, and the next payment becomes due in the next month:
//!
//! ```
//! use billing::{
//!     AccountRecords, Attempt, ClaimToken, Currency, LeadDays, NewSubscription, AttemptOutcome, Payment, PaymentMethod,
//!     PaymentStatus, Policy, SubscriptionId, settle_open_attempt,
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
//!     allow_second: false,
//! };
//! // Created on 10 January, in shard 0: the first payment is due on 31 January.
//! let existing = AccountRecords::default();
//! let mut subscription = new.into_subscription(&existing, 0, LeadDays::default(), date("2027-01-10")?, now)?;
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
//! let outcome = AttemptOutcome::Succeeded(payment);
//! let settlement = settle_open_attempt(&subscription, &attempt, &outcome, &Policy::default(), date("2027-01-31")?, charged_at)?;
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

mod action;
mod changes;
mod checks;
mod event;
pub mod openapi;
mod outbound_webhook;
mod records;
mod settings;
mod settlement;
mod subscriptions;
mod values;

pub use action::{ActionKind, Actor, ActorKind, ActorName, ItemChange, LoggedAction, NewAction};
pub use changes::erasure::{ERASED, ErasedAccount, Erasure, ErasureCheck, ErasureCounts, ErasureObstacle, ErasureStep};
pub use changes::finding::{Finding, FindingReason, LateSuccess, ResolvedFinding};
pub use checks::accepted_difference::AcceptedDifference;
pub use checks::audit_record::{AUDIT_RETENTION, AuditRecord, AuditViolation, MAX_STORED_VIOLATIONS};
pub use checks::day_reconciliation::{
    DayReconciliation, DifferenceKind, GatewayDifference, GatewayList, MAX_STORED_DIFFERENCES,
    RECONCILIATION_RETENTION, ReconciledCounts, ReconciliationStep,
};
#[cfg(feature = "openapi")]
pub use event::event_schemas;
pub use event::{
    AccountEventData, AuditEventData, ChangedField, CloudEvent, DeclineEventData, DisputeEventData, Event, EventData,
    EventType, ExpiredReceiptEventData, ItemImage, OperatorEvent, OrderEventData, OrderLineEventData, PaymentEventData,
    ReceivedEvent, ReconciliationEventData, RefundEventData, ReversalEventData, SubscriptionEventData, UnreadableEvent,
    WaitingTerms, WaivedPeriodEventData, events_between_images,
};
pub use outbound_webhook::*;
pub use records::attempt::{Attempt, AttemptOutcome, ClaimToken};
pub use records::attempt_record::{AttemptEnd, AttemptRecord};
pub use records::dispute::{Dispute, DisputeStatus};
pub use records::payment::{Decline, GatewayAccount, Payment, PaymentMethod, PaymentStatus};
pub use records::payment_method_setup::PaymentMethodSetup;
pub use records::payment_records::PaymentRecords;
pub use records::receipt::{Receipt, Reversal};
pub use records::receipt_id::ReceiptId;
pub use records::receipt_number::{ReceiptNumber, ReceiptReference, SubscriptionCode};
pub use records::refund::{
    CheckedRefundAmount, REFUSED_BY_GATEWAY, Refund, RefundDemand, RefundRefusal, RefundStatus, RequestedAmount,
    SucceededRefunds,
};
pub use records::waived_period::{WaivedPeriod, WaivedReason};
pub use settings::ceilings::{ChargeCeilings, ChargeTotal};
pub use settings::dunning::{AfterLastRetry, Dunning, DunningError};
pub use settings::payment_limits::{PaymentLimit, PaymentLimitError, PaymentLimits};
pub use settings::policy::{AfterWonDispute, CatchUp, LeadDays, OnResume, Policy};
pub use settings::policy_setting::{PolicyError, PolicySetting, StoredPolicy, TimeZoneRefusal};
pub use settlement::attempts_in_doubt::{
    AttemptContradiction, ClaimRefusal, InDoubtResolution, attempt_contradiction, claim_refusal,
    describe_double_payment, is_decline_of_month, resolve_attempt_in_doubt, successful_payments,
};
pub use settlement::settle::{NotSettled, Settlement, settle_open_attempt};
pub use subscriptions::clock_ahead::{MAX_EXPECTED_CLOCK_DIFFERENCE, PresentTime, last_payment_day_in_sight};
pub use subscriptions::forecast::Forecast;
pub use subscriptions::new_subscription::{AccountRecords, CreationRefusal, NewSubscription, first_due_on};
pub use subscriptions::outlook::{ChargeHold, OwedPayment, PaymentReason, PlannedPayment, SubscriptionOutlook};
pub use subscriptions::refusal::ChangeRefusal;
pub use subscriptions::rejection::{is_rejection_of_payment_method, is_rejection_without_cause};
pub use subscriptions::reminder::{Reminder, ReminderDecision, decide_reminder, mark_reminder_processed};
pub use subscriptions::subscription::{ReminderClaim, Subscription, SubscriptionStatus, SubscriptionTerms};
pub use subscriptions::subscription_changes::SubscriptionChanges;
pub use subscriptions::terms::WaitingChange;
pub use values::account::{Account, AccountChanges, MailStatus};
pub use values::amount_rules::{AmountRange, AmountRangeError, AmountRefusal, AmountRules};
pub use values::calendar::{CalendarError, PaymentDay, Period, days_after, deserialize_date, parse_date};
pub use values::card::{Card, CardError};
pub use values::card_number::{NO_CARD_NUMBER, contains_card_number};
pub use values::contact_data::{ContactError, EmailAddress, Label, Locale};
pub use values::ids::check_id;
pub use values::ids::{AccountId, ExternalId, GatewayToken, IdError, Sku, SubscriptionId};
pub use values::money::{Currency, MAX_PRICE_MINOR, Money, MoneyError};
pub use values::money_sums::{MoneySums, MoneySumsError};
