//! The time of the next try of a delivery.

use chrono::{DateTime, Utc};

/// The time of the next try of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextTryTime {
    /// There is no next try, because the delivery has succeeded or has finally failed.
    Done,
    /// The next try must not be before this instant.
    At(DateTime<Utc>),
    /// This delivery was not tried, because the endpoint is in back-off or cannot be read. No delivery to the endpoint
    /// must be tried before this instant.
    EndpointWaits(DateTime<Utc>),
}

impl NextTryTime {
    /// Returns the instant before which the delivery must not be tried; `None` if there is no next try.
    pub fn earliest_instant(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Done => None,
            Self::At(then) | Self::EndpointWaits(then) => Some(then),
        }
    }
}
