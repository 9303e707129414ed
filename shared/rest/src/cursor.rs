//! Cursors of lists, opaque to the caller.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use store::{Cursor, Paging};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::Problem;

/// A cursor is at most this many characters.
const MAX_CURSOR_CHARS: usize = 2_048;

/// Where a list goes on: the cursor that an earlier page has shown, opaque to the caller, or the list's beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct ShownCursor(Option<String>);

impl ShownCursor {
    const EXPECTED: &str = "must be the next_cursor of an earlier page of this list";

    /// `text` as it is shown.
    pub fn shown(text: &str) -> String {
        URL_SAFE_NO_PAD.encode(text)
    }

    /// What it stands for in the list that `read` knows the cursors of; nothing at the list's beginning.
    ///
    /// # Errors
    /// 422 for the cursor of another list.
    pub fn read<T>(self, read: impl Fn(String) -> Option<T>) -> Result<Option<T>, Problem> {
        let Some(shown) = self.0 else { return Ok(None) };
        let decoded = URL_SAFE_NO_PAD.decode(shown).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.and_then(read).map(Some).ok_or_else(|| Problem::refused("cursor", Self::EXPECTED))
    }

    /// The page of at most `limit` items that begins here, in the list that `read` knows the cursors of.
    ///
    /// # Errors
    /// 422 for the cursor of another list.
    pub fn paging(self, limit: usize, read: impl Fn(String) -> Option<Cursor>) -> Result<Paging, Problem> {
        Ok(Paging { after: self.read(read)?, limit: Some(limit) })
    }
}

impl TryFrom<String> for ShownCursor {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let is_shown = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let fits = (1..=MAX_CURSOR_CHARS).contains(&text.len());
        if is_shown && fits { Ok(Self(Some(text))) } else { Err(Self::EXPECTED) }
    }
}

impl PartialSchema for ShownCursor {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[A-Za-z0-9_-]+$"));
        text.min_length(Some(1)).max_length(Some(MAX_CURSOR_CHARS)).into()
    }
}

impl ToSchema for ShownCursor {
    fn name() -> Cow<'static, str> {
        "Cursor".into()
    }
}
