//! The data of the events of a subscription.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::subscriptions::subscription::{Subscription, SubscriptionStatus, SubscriptionTerms};
use crate::values::calendar::{PaymentDay, Period};
use crate::values::contact_data::Label;
use crate::values::ids::{AccountId, ExternalId, Sku, SubscriptionId};
use crate::values::money::Money;

/// The data of the events of a subscription: its complete public state after the change. The e-mail address, the
/// payment method and open attempts are not public.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SubscriptionData))]
pub struct SubscriptionEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The version of the subscription after the change. Of two events of a subscription, the event with the higher
    /// version is the later event. Writes that change no public data publish no event, so the versions of events have
    /// gaps.
    pub version: u64,
    #[serde(default)]
    pub external_id: Option<ExternalId>,
    pub sku: Sku,
    pub product_name: Label,
    pub status: SubscriptionStatus,
    /// The payment day in the month of `due_on`.
    pub payment_day: PaymentDay,
    /// The price of the month of `due_on`.
    #[serde(flatten)]
    pub price: Money,
    /// The changed terms (price and payment day) that apply from later months on, the earliest first.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub waiting_terms: Vec<WaitingTerms>,
    /// The earliest due date that is neither paid nor waived.
    pub due_on: NaiveDate,
    /// The date on which the payment batch will process the subscription next.
    pub next_payment_on: Option<NaiveDate>,
    /// The date on which the reminder batch will process the subscription next.
    #[serde(default)]
    pub next_reminder_on: Option<NaiveDate>,
    /// The number of consecutive declines.
    pub failed_attempts: u32,
    /// The first month that will not be charged, because of a planned or completed cancellation.
    pub cancel_from: Option<Period>,
    /// The time since which the payment method is disputed and therefore not charged.
    #[serde(default)]
    pub disputed_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub last_payment_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub last_reminder_at: Option<DateTime<Utc>>,
    /// When the subscription was created; `None` in an event from an earlier version of Dueday.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    /// The fields of the subscription that have changed; empty for a new subscription, and in an event from an earlier
    /// version of Dueday.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangedField>,
    /// The price before the change, in minor units of the same currency; absent if the price has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub previous_amount: Option<i64>,
}

/// A payment day and a price that apply from a later month on. The price is in the currency of the subscription.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaitingTerms {
    /// The first month to which these terms apply.
    pub from: Period,
    pub payment_day: PaymentDay,
    /// The price in minor units.
    pub amount: i64,
}

impl From<&SubscriptionTerms> for WaitingTerms {
    fn from(terms: &SubscriptionTerms) -> Self {
        let SubscriptionTerms { from, payment_day, price } = *terms;
        Self { from, payment_day, amount: price.minor() }
    }
}

/// A field of a subscription that was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ChangedField {
    /// The agreed price. The new price may take effect in a later month.
    Amount,
    /// The agreed payment day. The new payment day may take effect in a later month.
    PaymentDay,
    /// The terms of later months: new terms were agreed, or waiting terms took effect.
    WaitingTerms,
    ProductName,
    Email,
    PaymentMethod,
    Status,
    DueOn,
    NextPaymentOn,
    NextReminderOn,
    FailedAttempts,
    CancelFrom,
    DisputedAt,
    LastPaymentAt,
    LastReminderAt,
}

impl SubscriptionEventData {
    /// Creates the data of the change of a subscription from `old` to `s`. `old` is `None` for a new subscription.
    pub(super) fn from_change(old: Option<&Subscription>, s: &Subscription) -> Self {
        let has_new_price = |old: &&Subscription| old.latest_terms().price != s.latest_terms().price;
        Self {
            changes: old.map(|old| changed_fields(old, s)).unwrap_or_default(),
            previous_amount: old.filter(has_new_price).map(|old| old.latest_terms().price.minor()),
            ..Self::from_state(s)
        }
    }

    /// Creates the data with all public data of `s`, and with an empty list of changes.
    pub(super) fn from_state(s: &Subscription) -> Self {
        Self {
            account: s.account.clone(),
            subscription: s.id,
            version: s.version,
            external_id: s.external_id.clone(),
            sku: s.sku.clone(),
            product_name: s.product_name.clone(),
            status: s.status,
            payment_day: s.payment_day,
            price: s.price,
            waiting_terms: s.waiting_terms.iter().map(WaitingTerms::from).collect(),
            due_on: s.due_on,
            next_payment_on: s.next_payment_on,
            next_reminder_on: s.next_reminder_on,
            failed_attempts: s.failed_attempts,
            cancel_from: s.cancel_from,
            disputed_at: s.disputed_at,
            last_payment_at: s.last_payment_at,
            last_reminder_at: s.last_reminder_at,
            created_at: Some(s.created_at),
            changes: Vec::new(),
            previous_amount: None,
        }
    }
}

/// Returns the fields that differ between `old` and `new`, for the event.
fn changed_fields(old: &Subscription, new: &Subscription) -> Vec<ChangedField> {
    let (terms_before, terms) = (old.latest_terms(), new.latest_terms());
    let changes = [
        (ChangedField::Amount, terms_before.price != terms.price),
        (ChangedField::PaymentDay, terms_before.payment_day != terms.payment_day),
        (ChangedField::WaitingTerms, old.waiting_terms != new.waiting_terms),
        (ChangedField::ProductName, old.product_name != new.product_name),
        (ChangedField::Email, old.email != new.email),
        (ChangedField::PaymentMethod, old.payment_method != new.payment_method),
        (ChangedField::Status, old.status != new.status),
        (ChangedField::DueOn, old.due_on != new.due_on),
        (ChangedField::NextPaymentOn, old.next_payment_on != new.next_payment_on),
        (ChangedField::NextReminderOn, old.next_reminder_on != new.next_reminder_on),
        (ChangedField::FailedAttempts, old.failed_attempts != new.failed_attempts),
        (ChangedField::CancelFrom, old.cancel_from != new.cancel_from),
        (ChangedField::DisputedAt, old.disputed_at != new.disputed_at),
        (ChangedField::LastPaymentAt, old.last_payment_at != new.last_payment_at),
        (ChangedField::LastReminderAt, old.last_reminder_at != new.last_reminder_at),
    ];
    changes.into_iter().filter_map(|(field, is_changed)| is_changed.then_some(field)).collect()
}
