//! The requests that the gateway has refused because of its rate limit (HTTP status 429).

use std::collections::BTreeSet;

/// The largest number of refused requests after which the check reads a list, so that a gateway that refuses many
/// requests does not get many more.
const MAX_CHECKED_REFUSALS: u32 = 20;

/// The requests that the gateway has refused because of its rate limit.
#[derive(Default)]
pub(super) struct ThrottledRequests {
    /// The idempotency keys and the refund ids of the requests whose payment or refund may exist, because the gateway
    /// has not refused every request with them.
    may_exist: BTreeSet<String>,
    /// The number of refused requests after which the check has read a list.
    pub checked: u32,
    /// What the gateway made for the refused requests.
    pub made: Vec<String>,
}

impl ThrottledRequests {
    /// Remembers that the gateway may have made a payment or a refund under `key`, an idempotency key or a refund id.
    pub fn record_possible_object(&mut self, key: impl Into<String>) {
        self.may_exist.insert(key.into());
    }

    /// Returns whether a list must be read after the gateway refused a request under `key`. If so, counts the request.
    pub fn begin_check(&mut self, key: &str) -> bool {
        let is_checked = !self.may_exist.contains(key) && self.checked < MAX_CHECKED_REFUSALS;
        self.checked += u32::from(is_checked);
        is_checked
    }
}
