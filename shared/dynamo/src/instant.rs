use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// An instant as `2026-03-31T06:00:00.000Z`: always of one length, so that texts compare as instants do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(transparent)]
pub struct Instant(pub DateTime<Utc>);

impl Instant {
    /// As written in the table.
    pub fn text(self) -> String {
        self.0.to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl Serialize for Instant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}
