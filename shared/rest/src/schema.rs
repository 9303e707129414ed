//! What the domain's types look like in JSON, for the OpenAPI document. The types themselves know nothing of it; the
//! examples and the document's own tests keep the two together.
#![allow(dead_code, reason = "only their schemas are used")]

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A ULID.
#[derive(ToSchema)]
#[schema(as = SubscriptionId, pattern = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
pub struct SubscriptionIdSchema(String);

/// A ULID.
#[derive(ToSchema)]
#[schema(as = Ulid, pattern = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
pub struct UlidSchema(String);

/// The merchant's own identifier: letters, digits, `.`, `_`, `-`, first a letter or a digit.
#[derive(ToSchema)]
#[schema(as = Id, min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
pub struct IdSchema(String);

/// Minor units of the currency: 1299 EUR is 12.99 euros, 500 JPY is 500 yen.
#[derive(ToSchema)]
#[schema(as = Amount, minimum = 1, maximum = 999_999_999_999_i64)]
pub struct AmountSchema(i64);

#[derive(ToSchema)]
#[schema(as = Cursor, min_length = 1, max_length = 2048, pattern = "^[A-Za-z0-9_-]+$")]
pub struct CursorSchema(String);

#[derive(ToSchema)]
#[schema(as = IdempotencyKey, min_length = 1, max_length = 255, pattern = "^[\\x20-\\x7e]+$")]
pub struct IdempotencyKeySchema(String);

#[derive(ToSchema)]
#[schema(as = EntityTag, pattern = "^(\\*|\"[0-9]+\")$")]
pub struct EntityTagSchema(String);

/// A name as mails say it.
pub struct LabelSchema;

impl PartialSchema for LabelSchema {
    fn schema() -> RefOr<Schema> {
        const NEVER: &str = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069";
        const INVISIBLE: &str = r"\s\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8";
        let pattern = format!(r"^(?!.*=\?)(?=.*[^{INVISIBLE}])[^{NEVER}\s]([^{NEVER}]*[^{NEVER}\s])?$");
        let description = "A name as mails say it: something visible, no control characters, no space at its ends, no \
            characters that change the direction of the text, no =? (it begins an encoded word in a mail), no card number in \
            the digits of any script";
        let label = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
        label.min_length(Some(1)).max_length(Some(200)).pattern(Some(pattern)).into()
    }
}

impl ToSchema for LabelSchema {
    fn name() -> std::borrow::Cow<'static, str> {
        "Label".into()
    }
}

/// An ISO 4217 code: those that are accepted are listed.
pub struct CurrencySchema;

impl PartialSchema for CurrencySchema {
    fn schema() -> RefOr<Schema> {
        let letters = || 'A'..='Z';
        let codes =
            letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| String::from_iter([a, b, c]))));
        let accepted = codes.filter(|code| code.parse::<billing::Currency>().is_ok());
        let description = Some("An ISO 4217 code with minor units (or none, such as JPY)");
        ObjectBuilder::new().schema_type(Type::String).description(description).enum_values(Some(accepted)).into()
    }
}

impl ToSchema for CurrencySchema {
    fn name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }
}
