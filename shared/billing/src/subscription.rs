//! The subscription: what is stored of it. How it begins is in `new_subscription.rs`; what becomes of it is in `changes.rs` and
//! `settle.rs`.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::{
    AccountId, Attempt, EmailAddress, GatewayToken, Label, Money, PaymentDay, PaymentMethod, Period, Sku,
    SubscriptionId, Token,
};

/// Where a subscription stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`past_due`: a payment was declined and is tried again. `unpaid`: the last try was; it waits for a new payment method."
    )
)]
pub enum Status {
    Active,
    /// A payment was declined and will be tried again.
    PastDue,
    /// The last retry was declined: it waits for a new payment method.
    Unpaid,
    Paused,
    /// Final.
    Cancelled,
}

impl Status {
    /// Whether a new attempt may be started.
    pub fn is_chargeable(self) -> bool {
        matches!(self, Status::Active | Status::PastDue)
    }
}

/// An agreement to pay an amount on the same day each month.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Subscription {
    pub account: AccountId,
    pub id: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    /// Where its mail goes, if not to the account's address.
    pub email: Option<EmailAddress>,
    /// The payment day and the price of the due date.
    pub payment_day: PaymentDay,
    pub price: Money,
    /// Those of later months, the earliest first, where they are others.
    pub waiting_terms: Vec<Terms>,
    pub payment_method: PaymentMethod,
    /// When it was given, if another one was there before.
    pub payment_method_at: Option<DateTime<Utc>>,
    /// Since when it is disputed: it is not charged, until the dispute is won, another method is given, or it is retried on purpose.
    pub disputed_at: Option<DateTime<Utc>>,
    /// When a person has last decided to charge it though it is: disputes from before do not count.
    pub charged_though_disputed_at: Option<DateTime<Utc>>,
    /// Open findings about payments of the due date or of later ones: it is not charged until a person has resolved them.
    pub open_findings: u32,
    pub status: Status,
    /// The due date of the first period ever owed.
    pub first_due_on: NaiveDate,
    /// The due date of the earliest period neither paid nor waived.
    pub due_on: NaiveDate,
    /// When the payment batch must look again; `None` is absent from the index.
    pub next_payment_on: Option<NaiveDate>,
    pub last_payment_at: Option<DateTime<Utc>>,
    /// When the reminder batch must look; `None` is absent from the index.
    pub next_reminder_on: Option<NaiveDate>,
    pub last_reminder_at: Option<DateTime<Utc>>,
    /// The due date the last reminder spoke of.
    pub reminded_for: Option<NaiveDate>,
    /// Declines in a row: the place in the retry schedule.
    pub failed_attempts: u32,
    /// The day of the first decline of the due date, under any payment method.
    pub first_declined_on: Option<NaiveDate>,
    /// Attempts that the gateway rejected in a row.
    pub rejections: u32,
    /// The gateway's customer of an attempt of the due date that was rejected, dropped, or declined after it had been in doubt. Every later attempt of the due date looks up the
    /// payments of this customer before it charges: the gateway may have made the payment after all.
    pub rejected_customer: Option<GatewayToken>,
    /// The number of the last attempt ever claimed; never reset.
    pub attempt_seq: u32,
    /// Cancelled, or to be at the end of a period: the first month that is not owed any more.
    pub cancel_from: Option<Period>,
    /// The day its last retry was declined. Until it is paid again; then the months in between are waived.
    pub unpaid_since: Option<NaiveDate>,
    pub attempt: Option<Attempt>,
    pub reminder_claim: Option<ReminderClaim>,
    /// The index partition, fixed at creation.
    pub shard: u32,
    pub created_at: DateTime<Utc>,
    /// Raised by one with every write.
    pub version: u64,
}

/// A payment day and a price that wait for their month.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// The first month of which they are the terms.
    pub from: Period,
    pub payment_day: PaymentDay,
    pub price: Money,
}

/// Who is sending the reminder of a subscription at the moment, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReminderClaim {
    pub held_by: Token,
    pub leased_until: DateTime<Utc>,
}
