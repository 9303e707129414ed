//! How types describe themselves in the OpenAPI document if no derive can do it. All of it needs the feature `openapi`.

/// Describes `$type` in the OpenAPI document, as a schema called `$name`, if the crate has its feature `openapi`.
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

    /// The schema of a text.
    pub fn text(description: &str) -> ObjectBuilder {
        ObjectBuilder::new().schema_type(Type::String).description(Some(description))
    }

    /// The schema of a text that `pattern` matches.
    pub fn pattern(description: &str, pattern: &str) -> ObjectBuilder {
        text(description).pattern(Some(pattern))
    }

    /// The schema of a merchant's own identifier.
    pub fn id() -> ObjectBuilder {
        let description = "The merchant's own identifier: letters, digits, `.`, `_`, `-`, first a letter or a digit.";
        pattern(description, "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$").min_length(Some(1)).max_length(Some(64))
    }

    /// The schema of a [`Label`](crate::Label).
    pub(crate) fn label() -> ObjectBuilder {
        const NEVER: &str = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069";
        const INVISIBLE: &str = r"\s\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8";
        let visible = format!(r"^(?!.*=\?)(?=.*[^{INVISIBLE}])[^{NEVER}\s]([^{NEVER}]*[^{NEVER}\s])?$");
        let description = "A name as mails say it: something visible, no control characters, no space at its ends, no \
            characters that change the direction of the text, no =? (it begins an encoded word in a mail), no card number in \
            the digits of any script";
        pattern(description, &visible).min_length(Some(1)).max_length(Some(200))
    }
}

#[cfg(feature = "openapi")]
pub use schemas::*;
