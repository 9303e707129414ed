//! [`ListCursor`]: the position of a list page, in an encoding that is opaque to the caller.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use store::{Cursor, Paging};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::Problem;

/// The largest length of a cursor, in characters.
const MAX_CURSOR_CHARS: usize = 2_048;

/// The position at which a list page begins: the encoded `next_cursor` of an earlier page, or `None` for the beginning
/// of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct ListCursor(Option<String>);

impl ListCursor {
    const INVALID_CURSOR_MESSAGE: &str = "must be the next_cursor of an earlier page of this list";

    /// Encodes `text`, a position in a list, as the cursor that callers get.
    pub fn encode(text: &str) -> String {
        URL_SAFE_NO_PAD.encode(text)
    }

    /// Decodes the cursor and reads its position with `parse`, which returns `None` for a cursor of another list.
    /// Returns `Ok(None)` if the request has no cursor: the list page then begins at the start of the list.
    ///
    /// # Errors
    /// 422 for the cursor of another list.
    pub fn decode<T>(self, parse: impl Fn(String) -> Option<T>) -> Result<Option<T>, Problem> {
        let Some(encoded) = self.0 else { return Ok(None) };
        let decoded = URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.and_then(parse).map(Some).ok_or_else(|| Problem::refused_field("cursor", Self::INVALID_CURSOR_MESSAGE))
    }

    /// Returns the range of at most `limit` items that begins at this cursor. `parse` reads the decoded position; it
    /// returns `None` for the cursor of another list.
    ///
    /// # Errors
    /// 422 for the cursor of another list.
    pub fn paging(self, limit: usize, parse: impl Fn(String) -> Option<Cursor>) -> Result<Paging, Problem> {
        Ok(Paging { after: self.decode(parse)?, limit: Some(limit) })
    }
}

impl TryFrom<String> for ListCursor {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let is_base64 = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let has_valid_length = (1..=MAX_CURSOR_CHARS).contains(&text.len());
        if is_base64 && has_valid_length { Ok(Self(Some(text))) } else { Err(Self::INVALID_CURSOR_MESSAGE) }
    }
}

impl PartialSchema for ListCursor {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[A-Za-z0-9_-]+$"));
        text.min_length(Some(1)).max_length(Some(MAX_CURSOR_CHARS)).into()
    }
}

impl ToSchema for ListCursor {
    fn name() -> Cow<'static, str> {
        "Cursor".into()
    }
}
