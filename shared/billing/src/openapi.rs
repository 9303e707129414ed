//! Hand-written OpenAPI schemas of the types whose schema cannot be derived. The schemas exist only with the crate's
//! feature `openapi`.

/// Implements the OpenAPI schema of `$type`, with the schema name `$name`, if the feature `openapi` of the crate is
/// enabled.
#[macro_export]
macro_rules! openapi_schema {
    ($type:ty, $name:expr, $schema:expr) => {
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
        }
    };
}

#[cfg(feature = "openapi")]
mod schemas {
    use utoipa::openapi::{ObjectBuilder, Type};

    /// Returns the schema of a string.
    pub fn build_text_schema(description: &str) -> ObjectBuilder {
        ObjectBuilder::new().schema_type(Type::String).description(Some(description))
    }

    /// Returns the schema of a string that matches `pattern`.
    pub fn build_pattern_schema(description: &str, pattern: &str) -> ObjectBuilder {
        build_text_schema(description).pattern(Some(pattern))
    }

    /// Returns the schema of a ULID.
    pub fn build_ulid_schema(description: &str) -> ObjectBuilder {
        build_pattern_schema(description, "^[0-7][0-9A-HJKMNP-TV-Z]{25}$")
    }

    /// Returns the schema of an identifier that the merchant chooses.
    pub fn build_id_schema() -> ObjectBuilder {
        let description = "An identifier that the merchant chooses: letters, digits, `.`, `_` and `-`. The first \
            character is a letter or a digit.";
        build_pattern_schema(description, "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$").min_length(Some(1)).max_length(Some(64))
    }

    /// Control characters, and characters that change the direction of the text, as the content of a character class in
    /// a regular expression.
    const FORBIDDEN_CHARACTERS: &str = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069";

    /// Returns the schema of an [`ExternalId`](crate::values::ids::ExternalId).
    pub(crate) fn build_external_id_schema() -> ObjectBuilder {
        let line = format!(r"^[^{FORBIDDEN_CHARACTERS}\s]([^{FORBIDDEN_CHARACTERS}]*[^{FORBIDDEN_CHARACTERS}\s])?$");
        let description = "The id of a subscription in the merchant's earlier system. Not allowed: control characters, \
            white space at the start or end, characters that change the direction of the text, and card numbers.";
        build_pattern_schema(description, &line).min_length(Some(1)).max_length(Some(255))
    }

    /// Returns the schema of a [`Label`](crate::values::contact_data::Label).
    pub(crate) fn build_label_schema() -> ObjectBuilder {
        /// The characters without a visible mark, as the content of a character class in a regular expression.
        const INVISIBLE_CHARACTERS: &str = r"\s\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8";
        let visible = format!(
            r"^(?!.*=\?)(?=.*[^{INVISIBLE_CHARACTERS}])[^{FORBIDDEN_CHARACTERS}\s]([^{FORBIDDEN_CHARACTERS}]*[^{FORBIDDEN_CHARACTERS}\s])?$"
        );
        let description = "A name that appears in mails, with at least one visible character. Not allowed: control \
            characters, white space at the start or end, characters that change the direction of the text, =? (the \
            start of an encoded word in a mail), and card numbers (in digits of any script).";
        build_pattern_schema(description, &visible).min_length(Some(1)).max_length(Some(200))
    }
}

#[cfg(feature = "openapi")]
pub use schemas::*;
