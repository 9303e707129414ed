use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// A time that is stored as text such as `2026-03-31T06:00:00.000Z`. The text always has the same length and is in UTC,
/// so comparing two texts compares the times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(transparent)]
pub struct Instant(pub DateTime<Utc>);

impl Instant {
    /// Returns the text that is stored in the table.
    pub fn to_text(self) -> String {
        self.0.to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl Serialize for Instant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}
