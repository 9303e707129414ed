//! What the domain's types look like in JSON, beside those of [`rest::schema`].
#![allow(dead_code, reason = "only their schemas are used")]

use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Due date, subscription and SKU.
#[derive(ToSchema)]
#[schema(as = ReceiptId, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}\\.[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
pub struct ReceiptIdSchema(String);

/// The month, and letters and digits that none can be taken for another of.
#[derive(ToSchema)]
#[schema(as = ReceiptNumber, pattern = "^[0-9]{6}-[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$")]
pub struct ReceiptNumberSchema(String);

/// In minor units; 0 if nothing was.
#[derive(ToSchema)]
#[schema(as = RefundedAmount, minimum = 0)]
pub struct RefundedAmountSchema(i64);

/// An amount that the bank took back, in the smallest unit of the currency.
#[derive(ToSchema)]
#[schema(as = ReversedAmount, minimum = 0)]
pub struct ReversedAmountSchema(i64);

/// An e-mail address.
#[derive(ToSchema)]
#[schema(as = EmailAddress, format = Email, max_length = 254)]
pub struct EmailAddressSchema(String);

/// A language tag such as `en` or `de-AT`.
#[derive(ToSchema)]
#[schema(as = Locale, max_length = 35, pattern = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
pub struct LocaleSchema(String);

/// Whether mail to an address arrives.
#[derive(ToSchema)]
#[schema(as = MailStatus, rename_all = "snake_case")]
pub enum MailStatusSchema {
    Deliverable,
    Bounced,
    Complained,
}

/// The day of the month; in a shorter month its last day.
#[derive(ToSchema)]
#[schema(as = PaymentDay, minimum = 1, maximum = 31)]
pub struct PaymentDaySchema(u8);

/// The payment gateway's tokens, never a card number.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PaymentMethod)]
pub struct PaymentMethodSchema {
    /// The customer, as the gateway knows it.
    #[schema(value_type = GatewayTokenSchema)]
    customer: String,
    /// The customer's card or account, as the gateway knows it.
    #[schema(value_type = GatewayTokenSchema)]
    payment_method: String,
}

/// A token that the payment gateway gave.
#[derive(ToSchema)]
#[schema(as = GatewayToken, min_length = 1, max_length = 255, pattern = "^[A-Za-z0-9._-]{1,255}$")]
pub struct GatewayTokenSchema(String);

/// `past_due`: a payment was declined and is tried again. `unpaid`: the last try was; it waits for a new payment method.
#[derive(ToSchema)]
#[schema(as = Status, rename_all = "snake_case")]
pub enum StatusSchema {
    Active,
    PastDue,
    Unpaid,
    Paused,
    Cancelled,
}

/// Where events are posted to.
#[derive(ToSchema)]
#[schema(as = EndpointUrl, max_length = 2048, pattern = "^https?://.+")]
pub struct EndpointUrlSchema(String);

/// The id of an event.
#[derive(ToSchema)]
#[schema(as = EventId, min_length = 1, max_length = 255)]
pub struct EventIdSchema(String);

/// A type of events.
pub struct EventTypeSchema;

impl PartialSchema for EventTypeSchema {
    fn schema() -> RefOr<Schema> {
        let names = billing::EventType::iter().map(|event_type| event_type.to_string());
        let names: Vec<_> = names.collect();
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A type of events."))
            .enum_values(Some(names))
            .into()
    }
}

impl ToSchema for EventTypeSchema {
    fn name() -> std::borrow::Cow<'static, str> {
        "EventType".into()
    }
}

/// `pending`: it is tried, or tried again. `delivered`: the endpoint has taken it. `failed`: it is not tried any more.
#[derive(ToSchema)]
#[schema(as = DeliveryStatus, rename_all = "snake_case")]
pub enum DeliveryStatusSchema {
    Pending,
    Delivered,
    Failed,
}

/// One of the two batches.
#[derive(ToSchema)]
#[schema(as = Batch, rename_all = "snake_case")]
pub enum BatchSchema {
    Reminders,
    Payments,
}

/// How far a shard was walked on a day: `complete` if runs lead from its start to its end and left nothing behind; `running` if
/// it was complete and another run is walking it; `open` if a run has begun and not ended; `missing` without a run; `gap` if one
/// went on from where none had ended; `unfinished` if none came to the end; `stopped` if a run stopped or held back and none was
/// complete since; `left_behind` if the last walk left rows failed, in doubt or under another worker's lease; `rejected` if the
/// gateway refused a charge; `expired` if records of that day have expired. A complete shard is so no longer when a later run
/// of the day stops, leaves rows or is cut off, until it is walked to its end for that date or a later one.
#[derive(ToSchema)]
#[schema(as = Walked, rename_all = "snake_case")]
pub enum WalkedSchema {
    Complete,
    Running,
    Missing,
    Open,
    Gap,
    Unfinished,
    Stopped,
    LeftBehind,
    Rejected,
    Expired,
}

/// What the runs prove of a day: `done` if every shard is proved; `running` if so, and another run is walking one of them;
/// `not_done` if a shard is not proved; `expired` if records of the day have expired, and it cannot be judged any more.
#[derive(ToSchema)]
#[schema(as = DayState, rename_all = "snake_case")]
pub enum DayStateSchema {
    Done,
    Running,
    Expired,
    NotDone,
}

/// `due`: what is due is charged. `open`: payments that were begun and not settled are looked up.
#[derive(ToSchema)]
#[schema(as = Lane, rename_all = "snake_case")]
pub enum LaneSchema {
    Due,
    Open,
}

/// `declined`: by the bank. `rejected`: the gateway refused the request. `dropped`: given up without a charge.
#[derive(ToSchema)]
#[schema(as = AttemptEnd, rename_all = "snake_case")]
pub enum AttemptEndSchema {
    Declined,
    Rejected,
    Dropped,
}

/// `unpaid`: it could not be paid, or the subscription was unpaid when the month fell due. `outage`: it was not charged in
/// time, by our fault. `paused`: the subscription was, from the month's due date to the next. `cancelled`: the subscription
/// was, when the month was owed. `disputed`: a dispute kept the payment method from being charged, and was won.
#[derive(ToSchema)]
#[schema(as = WaivedReason, rename_all = "snake_case")]
pub enum WaivedReasonSchema {
    Unpaid,
    Outage,
    Paused,
    Cancelled,
    Disputed,
}

/// `open`: begun, and not known yet what came of it. `owed`: nothing came of it, for a reason that is the operator's:
/// `not_walked` (no run came to the end), `held_back` (a run stopped or held back), `left_unsettled` (a run left payments,
/// this may be one of them), `unexplained`. `between_tries`: declined before, and not tried on that day. `paid`, `waived`:
/// the month was, by that day. `unrecorded`: the month is neither, and is not owed, though it should be. `expired`: records of
/// that day may have expired.
#[derive(ToSchema)]
#[schema(as = Reason, rename_all = "snake_case")]
pub enum ReasonSchema {
    Charged,
    Open,
    Declined,
    Rejected,
    Dropped,
    BetweenTries,
    Owed,
    NotWalked,
    HeldBack,
    LeftUnsettled,
    Unexplained,
    Paid,
    Waived,
    Stopped,
    Disputed,
    Ending,
    NotBegun,
    NotDue,
    Planned,
    Unrecorded,
    Expired,
}

/// A calendar month, such as 2027-03.
#[derive(ToSchema)]
#[schema(as = Period, pattern = "^[0-9]{4}-(0[1-9]|1[0-2])$")]
pub struct PeriodSchema(String);

/// What became of the payments that a run saw: `due` is the sum of the others.
#[derive(Serialize, ToSchema)]
#[schema(as = PaymentCounts)]
pub struct PaymentCountsSchema {
    /// Rows that the index showed.
    due: u64,
    /// Charged, and receipted.
    paid: u64,
    /// The gateway declined it; it is tried again, or was the last try.
    declined: u64,
    /// The gateway refused the request and made nothing.
    rejected: u64,
    /// Under way at the bank.
    processing: u64,
    /// Begun, and what came of it is not known.
    in_doubt: u64,
    /// Owed, and not charged: its payment method is disputed.
    disputed: u64,
    /// There was nothing to charge after all.
    skipped: u64,
    /// Rows that could not be done with.
    failed: u64,
}

/// What became of the reminders that a run saw: `due` is the sum of the others.
#[derive(Serialize, ToSchema)]
#[schema(as = ReminderCounts)]
pub struct ReminderCountsSchema {
    /// Rows that the index showed.
    due: u64,
    /// Sent, and marked.
    sent: u64,
    /// The account's address takes no mail.
    undeliverable: u64,
    /// It could not be sent before its payment was due.
    missed: u64,
    /// Another worker has claimed it and has not marked it as sent.
    in_progress: u64,
    /// There was nothing to say after all.
    skipped: u64,
    /// Rows that could not be done with.
    failed: u64,
}

/// The counts of a run, by its batch.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = RunCounts)]
pub enum RunCountsSchema {
    Payments(PaymentCountsSchema),
    Reminders(ReminderCountsSchema),
}

/// `pending`: on its way, or not known yet.
#[derive(ToSchema)]
#[schema(as = RefundStatus, rename_all = "snake_case")]
pub enum RefundStatusSchema {
    Pending,
    Succeeded,
    Failed,
}
