//! What the domain's types look like in JSON, for the OpenAPI document. The types themselves know nothing of it; the
//! examples and the document's own tests keep the two together.
#![allow(dead_code, reason = "only their schemas are used")]

use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The merchant's own identifier.
#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9._-]{1,64}$")]
pub struct Id(String);

/// A ULID.
#[derive(ToSchema)]
#[schema(pattern = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
pub struct SubscriptionId(String);

/// Due date, subscription and SKU.
#[derive(ToSchema)]
#[schema(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}\\.[A-Za-z0-9._-]{1,64}$")]
pub struct ReceiptId(String);

/// An e-mail address.
#[derive(ToSchema)]
#[schema(format = Email, max_length = 254)]
pub struct EmailAddress(String);

/// A name as mails say it: no control characters, no space at its ends, no card number in it.
#[derive(ToSchema)]
#[schema(
    min_length = 1,
    max_length = 200,
    pattern = "^[^\\x00-\\x1f\\x7f-\\x9f\\s]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\x00-\\x1f\\x7f-\\x9f\\s])?$"
)]
pub struct Label(String);

/// A language tag such as `en` or `de-AT`.
#[derive(ToSchema)]
#[schema(max_length = 35, pattern = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
pub struct Locale(String);

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum MailStatus {
    Deliverable,
    Bounced,
    Complained,
}

/// The day of the month; in a shorter month its last day.
#[derive(ToSchema)]
#[schema(minimum = 1, maximum = 31)]
pub struct PaymentDay(u8);

/// Minor units of the currency: 1299 EUR is 12.99 euros, 500 JPY is 500 yen.
#[derive(ToSchema)]
#[schema(minimum = 1, maximum = 999_999_999_999_i64)]
pub struct Amount(i64);

/// The payment gateway's tokens, never a card number.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PaymentMethod {
    #[schema(value_type = GatewayToken)]
    customer: String,
    #[schema(value_type = GatewayToken)]
    payment_method: String,
}

#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 255, pattern = "^[A-Za-z0-9._-]{1,255}$")]
pub struct GatewayToken(String);

/// `past_due`: a payment was declined and is tried again. `unpaid`: the last try was; it waits for a new payment method.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Status {
    Active,
    PastDue,
    Unpaid,
    Paused,
    Cancelled,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Batch {
    Reminders,
    Payments,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Walked {
    Complete,
    Missing,
    Open,
    Gap,
    Unfinished,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum AttemptEnd {
    Declined,
    Rejected,
    Dropped,
}

/// `unpaid`: the subscription was, when the month fell due. `missed`: it was not charged in time, by our fault.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum WaivedReason {
    Unpaid,
    Missed,
}

/// `open`: begun, and not known yet what came of it. `owed`: nothing came of it, for a reason that is the operator's:
/// `not_walked` (no run came to the end), `held_back` (a run stopped or held back), `left_unsettled` (a run left payments,
/// this may be one of them), `unexplained`. `between_tries`: declined before, and not tried on that day. `paid`, `waived`:
/// the month was, by that day. `unrecorded`: the month is neither, and is not owed, as after a pause. `expired`: records of
/// that day may have expired.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Reason {
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
    Ending,
    NotBegun,
    NotDue,
    Planned,
    Unrecorded,
    Expired,
}

#[derive(ToSchema)]
#[schema(minimum = 1, maximum = 100, default = 50)]
pub struct Limit(u32);

#[derive(ToSchema)]
#[schema(minimum = 1, maximum = 36, default = 6)]
pub struct Months(u32);

#[derive(ToSchema)]
#[schema(min_length = 1, pattern = "^[A-Za-z0-9_-]+$")]
pub struct Cursor(String);

#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 255, pattern = "^[\\x20-\\x7e]+$")]
pub struct IdempotencyKey(String);

#[derive(ToSchema)]
#[schema(pattern = "^(\\*|\"[0-9]+\")$")]
pub struct EntityTag(String);

/// An ISO 4217 code: those that are accepted are listed.
pub struct Currency;

impl PartialSchema for Currency {
    fn schema() -> RefOr<Schema> {
        let letters = || 'A'..='Z';
        let codes =
            letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| String::from_iter([a, b, c]))));
        let accepted = codes.filter(|code| code.parse::<shared::billing::Currency>().is_ok());
        let description = Some("An ISO 4217 code with minor units (or none, such as JPY)");
        ObjectBuilder::new().schema_type(Type::String).description(description).enum_values(Some(accepted)).into()
    }
}

impl ToSchema for Currency {
    fn name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }
}

/// What became of the payments that a run saw: `due` is the sum of the others.
#[derive(Serialize, ToSchema)]
pub struct PaymentCounts {
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
    /// There was nothing to charge after all.
    skipped: u64,
    /// Rows that could not be done with.
    failed: u64,
}

/// What became of the reminders that a run saw: `due` is the sum of the others.
#[derive(Serialize, ToSchema)]
pub struct ReminderCounts {
    /// Rows that the index showed.
    due: u64,
    /// Sent, and marked.
    sent: u64,
    /// There was nothing to say after all.
    skipped: u64,
    /// Rows that could not be done with.
    failed: u64,
}

/// The counts of a run, by its batch.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum RunCounts {
    Payments(PaymentCounts),
    Reminders(ReminderCounts),
}
