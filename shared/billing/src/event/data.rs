//! The types of events, each with its data, and the data of the events of an account.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumDiscriminants, EnumIter, EnumString};

use crate::event::action::ActionEventData;
use crate::event::check_events::{AuditEventData, ReconciliationEventData};
use crate::event::order::OrderEventData;
use crate::event::payment::{
    DeclineEventData, DisputeEventData, ExpiredReceiptEventData, PaymentEventData, RefundEventData, ReversalEventData,
    WaivedPeriodEventData,
};
use crate::event::subscription::SubscriptionEventData;
use crate::values::account::{Account, MailStatus};
use crate::values::contact_data::Locale;
use crate::values::ids::AccountId;

/// The type and the data of an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, EnumDiscriminants)]
#[serde(tag = "type", content = "data")]
#[strum_discriminants(
    name(EventType),
    doc = "The type of an event, displayed by its public name such as `payment.succeeded`."
)]
#[strum_discriminants(derive(Display, EnumIter, EnumString, Hash, PartialOrd, Ord))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum EventData {
    /// An account was created.
    #[serde(rename = "account.created")]
    #[strum_discriminants(strum(serialize = "account.created"))]
    AccountCreated(AccountEventData),
    /// The e-mail address, the name, the locale or the mail status of an account was changed.
    #[serde(rename = "account.changed")]
    #[strum_discriminants(strum(serialize = "account.changed"))]
    AccountChanged(AccountEventData),
    /// The personal data of an account was removed. Remove your own data about the account.
    #[serde(rename = "account.erased")]
    #[strum_discriminants(strum(serialize = "account.erased"))]
    AccountErased(AccountEventData),
    /// A subscription was created.
    #[serde(rename = "subscription.created")]
    #[strum_discriminants(strum(serialize = "subscription.created"))]
    SubscriptionCreated(SubscriptionEventData),
    /// The subscription changed in a way that has no event type of its own: for example, its price, its payment day,
    /// its payment method, or the date of its next payment.
    #[serde(rename = "subscription.changed")]
    #[strum_discriminants(strum(serialize = "subscription.changed"))]
    SubscriptionChanged(SubscriptionEventData),
    /// A subscription was paused.
    #[serde(rename = "subscription.paused")]
    #[strum_discriminants(strum(serialize = "subscription.paused"))]
    SubscriptionPaused(SubscriptionEventData),
    /// A paused subscription was resumed.
    #[serde(rename = "subscription.resumed")]
    #[strum_discriminants(strum(serialize = "subscription.resumed"))]
    SubscriptionResumed(SubscriptionEventData),
    /// A cancellation at the end of a period was planned (the field `cancel_from` of the data has a value), or a
    /// planned cancellation was undone (`cancel_from` is null).
    #[serde(rename = "subscription.ending")]
    #[strum_discriminants(strum(serialize = "subscription.ending"))]
    SubscriptionEnding(SubscriptionEventData),
    /// A month was paid or waived, and the next month is due.
    #[serde(rename = "subscription.renewed")]
    #[strum_discriminants(strum(serialize = "subscription.renewed"))]
    SubscriptionRenewed(SubscriptionEventData),
    /// A payment failed, for the first time or again. The field `next_payment_on` of the data is the date of the next
    /// try.
    #[serde(rename = "subscription.past_due")]
    #[strum_discriminants(strum(serialize = "subscription.past_due"))]
    SubscriptionPastDue(SubscriptionEventData),
    /// The last retry failed, or a payment is still owed 28 days after the bank reversed another payment.
    #[serde(rename = "subscription.unpaid")]
    #[strum_discriminants(strum(serialize = "subscription.unpaid"))]
    SubscriptionUnpaid(SubscriptionEventData),
    /// A past due subscription was paid, or an unpaid subscription is charged again.
    #[serde(rename = "subscription.revived")]
    #[strum_discriminants(strum(serialize = "subscription.revived"))]
    SubscriptionRevived(SubscriptionEventData),
    /// A subscription was cancelled.
    #[serde(rename = "subscription.cancelled")]
    #[strum_discriminants(strum(serialize = "subscription.cancelled"))]
    SubscriptionCancelled(SubscriptionEventData),
    /// A reminder of the payment due on `due_on` was sent to the customer.
    #[serde(rename = "subscription.reminded")]
    #[strum_discriminants(strum(serialize = "subscription.reminded"))]
    SubscriptionReminded(SubscriptionEventData),
    /// A payment succeeded. Each receipt has one such event.
    #[serde(rename = "payment.succeeded")]
    #[strum_discriminants(strum(serialize = "payment.succeeded"))]
    PaymentSucceeded(PaymentEventData),
    /// A payment, or a part of it, was refunded.
    #[serde(rename = "payment.refunded")]
    #[strum_discriminants(strum(serialize = "payment.refunded"))]
    PaymentRefunded(RefundEventData),
    /// A refund failed.
    #[serde(rename = "payment.refund_failed")]
    #[strum_discriminants(strum(serialize = "payment.refund_failed"))]
    RefundFailed(RefundEventData),
    /// The customer questioned or disputed a payment at the bank.
    #[serde(rename = "payment.disputed")]
    #[strum_discriminants(strum(serialize = "payment.disputed"))]
    PaymentDisputed(DisputeEventData),
    /// The bank has decided a dispute, or the dispute was withdrawn.
    #[serde(rename = "payment.dispute_closed")]
    #[strum_discriminants(strum(serialize = "payment.dispute_closed"))]
    DisputeClosed(DisputeEventData),
    /// The bank reversed a successful payment: a dispute was lost, or a debit was returned.
    #[serde(rename = "payment.reversed")]
    #[strum_discriminants(strum(serialize = "payment.reversed"))]
    PaymentReversed(ReversalEventData),
    /// The bank declined a payment attempt.
    #[serde(rename = "payment.declined")]
    #[strum_discriminants(strum(serialize = "payment.declined"))]
    PaymentDeclined(DeclineEventData),
    /// The gateway refused the request, and created no payment.
    #[serde(rename = "payment.rejected")]
    #[strum_discriminants(strum(serialize = "payment.rejected"))]
    PaymentRejected(DeclineEventData),
    /// A month was waived, and will never be charged.
    #[serde(rename = "period.waived")]
    #[strum_discriminants(strum(serialize = "period.waived"))]
    PeriodWaived(WaivedPeriodEventData),
    /// A receipt expired, and was deleted.
    #[serde(rename = "receipt.expired")]
    #[strum_discriminants(strum(serialize = "receipt.expired"))]
    ReceiptExpired(ExpiredReceiptEventData),
    /// An audit has checked all items of the table.
    #[serde(rename = "audit.completed")]
    #[strum_discriminants(strum(serialize = "audit.completed"))]
    AuditCompleted(AuditEventData),
    /// The payments, refunds and disputes of a day were compared with the gateway.
    #[serde(rename = "day.reconciled")]
    #[strum_discriminants(strum(serialize = "day.reconciled"))]
    DayReconciled(ReconciliationEventData),
    /// A person or a program made a change with the API or with a command.
    #[serde(rename = "action.taken")]
    #[strum_discriminants(strum(serialize = "action.taken"))]
    ActionTaken(ActionEventData),
    /// The order of a paid month was placed.
    #[serde(rename = "order.placed")]
    #[strum_discriminants(strum(serialize = "order.placed"))]
    OrderPlaced(OrderEventData),
    /// An order begins to wait for stock or for a shipping address, or changes from waiting for one of the two to
    /// waiting for the other.
    #[serde(rename = "order.backordered")]
    #[strum_discriminants(strum(serialize = "order.backordered"))]
    OrderBackordered(OrderEventData),
    /// The products of an order were deducted from the stock of a warehouse.
    #[serde(rename = "order.filled")]
    #[strum_discriminants(strum(serialize = "order.filled"))]
    OrderFilled(OrderEventData),
    /// An order was given to the carrier.
    #[serde(rename = "order.shipped")]
    #[strum_discriminants(strum(serialize = "order.shipped"))]
    OrderShipped(OrderEventData),
    /// The customer has received an order.
    #[serde(rename = "order.delivered")]
    #[strum_discriminants(strum(serialize = "order.delivered"))]
    OrderDelivered(OrderEventData),
    /// An order was cancelled before it was shipped.
    #[serde(rename = "order.cancelled")]
    #[strum_discriminants(strum(serialize = "order.cancelled"))]
    OrderCancelled(OrderEventData),
    /// A shipped order came back.
    #[serde(rename = "order.returned")]
    #[strum_discriminants(strum(serialize = "order.returned"))]
    OrderReturned(OrderEventData),
}
crate::openapi_schema!(EventType, "EventType", event_type_schema());

/// Returns the OpenAPI schema of an [`EventType`], with the names of all types.
#[cfg(feature = "openapi")]
fn event_type_schema() -> utoipa::openapi::ObjectBuilder {
    use strum::IntoEnumIterator as _;

    let names = EventType::iter().map(|event_type| event_type.to_string());
    crate::openapi::build_text_schema("The type of an event.").enum_values(Some(names))
}

impl EventData {
    /// Returns the type of the event.
    pub fn event_type(&self) -> EventType {
        self.into()
    }

    /// Returns the data of the event of an order; `None` for other events.
    pub fn order_data(&self) -> Option<&OrderEventData> {
        match self {
            Self::OrderPlaced(data)
            | Self::OrderBackordered(data)
            | Self::OrderFilled(data)
            | Self::OrderShipped(data)
            | Self::OrderDelivered(data)
            | Self::OrderCancelled(data)
            | Self::OrderReturned(data) => Some(data),
            _ => None,
        }
    }

    /// Returns the data of the event of a subscription; `None` for other events.
    pub fn subscription_data(&self) -> Option<&SubscriptionEventData> {
        match self {
            Self::SubscriptionCreated(data)
            | Self::SubscriptionChanged(data)
            | Self::SubscriptionPaused(data)
            | Self::SubscriptionResumed(data)
            | Self::SubscriptionEnding(data)
            | Self::SubscriptionRenewed(data)
            | Self::SubscriptionPastDue(data)
            | Self::SubscriptionUnpaid(data)
            | Self::SubscriptionRevived(data)
            | Self::SubscriptionCancelled(data)
            | Self::SubscriptionReminded(data) => Some(data),
            _ => None,
        }
    }
}

/// The data of the events of an account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = AccountData))]
pub struct AccountEventData {
    pub account: AccountId,
    /// The version of the account after the change.
    pub version: u64,
    pub locale: Locale,
    pub mail_status: MailStatus,
}

impl AccountEventData {
    /// Creates the data from the account after the change.
    pub(super) fn from_account(account: &Account) -> Self {
        let Account { id, version, locale, mail_status, .. } = account.clone();
        Self { account: id, version, locale, mail_status }
    }
}
