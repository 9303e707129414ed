//! The subscription. `new_subscription.rs` creates a subscription; `subscription_changes.rs` and `settle.rs` compute
//! its next states.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::records::attempt::{Attempt, ClaimToken};
use crate::records::payment::PaymentMethod;
use crate::values::calendar::{PaymentDay, Period};
use crate::values::contact_data::{EmailAddress, Label};
use crate::values::ids::{AccountId, ExternalId, GatewayToken, Sku, SubscriptionId};
use crate::values::money::Money;

/// Whether a subscription is charged, and the reason if it is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        as = Status,
        description = "The status of a subscription. `past_due`: a payment was declined and will be retried. `unpaid`: \
            the last retry was declined, and the subscription is not charged until the customer gives a new payment \
            method."
    )
)]
pub enum SubscriptionStatus {
    Active,
    /// A payment was declined and will be retried.
    PastDue,
    /// The last retry was declined: the subscription waits for a new payment method.
    Unpaid,
    Paused,
    /// Cancelled for good.
    Cancelled,
}

impl SubscriptionStatus {
    /// Returns whether a worker may start a new payment attempt for a subscription with this status.
    pub fn is_chargeable(self) -> bool {
        matches!(self, SubscriptionStatus::Active | SubscriptionStatus::PastDue)
    }
}

/// A subscription: an amount that is charged on the same day each month.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Subscription {
    pub account: AccountId,
    pub id: SubscriptionId,
    /// The identifier of the subscription in the merchant's earlier system; `None` if the subscription was not
    /// imported.
    pub external_id: Option<ExternalId>,
    pub sku: Sku,
    pub product_name: Label,
    /// The address for the mails of the subscription; `None` if the mails are sent to the address of the account.
    pub email: Option<EmailAddress>,
    /// The payment day in the month of `due_on`.
    pub payment_day: PaymentDay,
    /// The price of the month of `due_on`.
    pub price: Money,
    /// The changed terms (price and payment day) that apply from later months on, the earliest first.
    pub waiting_terms: Vec<SubscriptionTerms>,
    pub payment_method: PaymentMethod,
    /// The latest known time at which the customer replaced the payment method; `None` if no such time is known.
    pub payment_method_at: Option<DateTime<Utc>>,
    /// When the payment method was disputed; `None` if the payment method may be charged. A disputed payment method is
    /// not charged until the dispute is won, or until a person decides to charge it in spite of the dispute. If the
    /// customer gives another payment method, this field is computed again for the new payment method.
    pub disputed_at: Option<DateTime<Utc>>,
    /// When a person last decided to charge the payment method in spite of a dispute. Disputes that were opened before
    /// this time are ignored.
    pub charged_though_disputed_at: Option<DateTime<Utc>>,
    /// The number of open findings (payments without a receipt) of `due_on` or of later due dates. The subscription is
    /// not charged until a person has resolved these findings.
    pub open_findings: u32,
    pub status: SubscriptionStatus,
    /// The due date of the first period.
    pub first_due_on: NaiveDate,
    /// The due date of the earliest period that is neither paid nor waived.
    pub due_on: NaiveDate,
    /// The month after the last paid month; `None` if no month was paid yet, or if all paid months were charged by an
    /// earlier version of Dueday. No month before this month can be claimed, so a damaged `due_on` does not lead to a
    /// second charge of a paid month.
    pub chargeable_from: Option<Period>,
    /// The date from which the payment batch finds the subscription; `None` if the subscription is not in the payment
    /// index.
    pub next_payment_on: Option<NaiveDate>,
    pub last_payment_at: Option<DateTime<Utc>>,
    /// The date from which the reminder batch finds the subscription; `None` if the subscription is not in the reminder
    /// index.
    pub next_reminder_on: Option<NaiveDate>,
    pub last_reminder_at: Option<DateTime<Utc>>,
    /// The due date that the last reminder announced.
    pub reminded_for: Option<NaiveDate>,
    /// The number of consecutive declines, which selects the next gap of the retry schedule.
    pub failed_attempts: u32,
    /// The day on which the payment of `due_on` was first declined, with any payment method.
    pub first_declined_on: Option<NaiveDate>,
    /// The number of consecutive attempts that the gateway rejected.
    pub rejections: u32,
    /// The customer at the gateway for whom an earlier attempt of `due_on` was made. This field has a value only if the
    /// earlier attempt was rejected or dropped, or was declined after it had been in doubt. Before a later attempt of
    /// `due_on` is charged, the worker looks up the payments of this customer, because the earlier attempt may have
    /// succeeded at the gateway after all.
    pub rejected_customer: Option<GatewayToken>,
    /// The number of the latest attempt. Attempts are numbered over all due dates, so this number never decreases.
    pub attempt_seq: u32,
    /// The first month that will not be charged, because of a planned or completed cancellation.
    pub cancel_from: Option<Period>,
    /// The day on which the subscription became unpaid. When a payment succeeds, the months that fell due after the
    /// paid month are waived, and this field becomes `None`.
    pub unpaid_since: Option<NaiveDate>,
    /// The open payment attempt; `None` if no attempt is open.
    pub attempt: Option<Attempt>,
    /// The claim of the worker that is sending a reminder now; `None` if no worker has claimed the reminder.
    pub reminder_claim: Option<ReminderClaim>,
    /// The shard of the subscription: its partition key in the indexes.
    pub shard: u32,
    pub created_at: DateTime<Utc>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// A payment day and a price that apply from a later month on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubscriptionTerms {
    /// The first month to which these terms apply.
    pub from: Period,
    pub payment_day: PaymentDay,
    pub price: Money,
}

/// The claim of the worker that is sending the reminder of a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReminderClaim {
    pub claim_token: ClaimToken,
    pub leased_until: DateTime<Utc>,
}
