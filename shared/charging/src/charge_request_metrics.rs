//! Counts and measures the charge requests that a run sends to the gateway.

use std::ops::AddAssign;

use chrono::TimeDelta;
use gateways::ChargeResponse;

/// The number of charge requests to the gateway, how many of them had no usable response, and how long they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChargeRequestMetrics {
    requests: u64,
    /// The number of charge requests without a usable response, so that the outcome of the charge is unknown.
    unknown: u64,
    /// The number of charge requests that the gateway refused because of its rate limit.
    throttled: u64,
    /// The number of charge requests that the gateway refused because of the API key or the gateway account.
    unusable: u64,
    /// How long all charge requests together took, in milliseconds.
    total_ms: u64,
    /// How long the slowest charge request took, in milliseconds.
    longest_ms: u64,
}

impl ChargeRequestMetrics {
    /// Adds a charge request that returned `response` after `duration`.
    pub(crate) fn add(&mut self, response: &ChargeResponse, duration: TimeDelta) {
        let milliseconds = u64::try_from(duration.num_milliseconds()).unwrap_or_default();
        self.requests = self.requests.saturating_add(1);
        self.total_ms = self.total_ms.saturating_add(milliseconds);
        self.longest_ms = self.longest_ms.max(milliseconds);
        let kind = match response {
            ChargeResponse::Unknown { .. } => &mut self.unknown,
            ChargeResponse::Throttled { .. } => &mut self.throttled,
            ChargeResponse::Unusable { .. } => &mut self.unusable,
            _ => return,
        };
        *kind = kind.saturating_add(1);
    }

    /// Logs the numbers of charge requests in one line, which becomes metrics of the function. Logs nothing
    /// if there was no charge request.
    pub fn log(&self) {
        let Self { requests, unknown, throttled, unusable, total_ms, longest_ms } = *self;
        if let Some(mean_ms) = total_ms.checked_div(requests) {
            tracing::info!(requests, unknown, throttled, unusable, mean_ms, longest_ms, "charges at the gateway");
        }
    }
}

impl AddAssign for ChargeRequestMetrics {
    fn add_assign(&mut self, other: Self) {
        let Self { requests, unknown, throttled, unusable, total_ms, longest_ms } = other;
        self.requests = self.requests.saturating_add(requests);
        self.unknown = self.unknown.saturating_add(unknown);
        self.throttled = self.throttled.saturating_add(throttled);
        self.unusable = self.unusable.saturating_add(unusable);
        self.total_ms = self.total_ms.saturating_add(total_ms);
        self.longest_ms = self.longest_ms.max(longest_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charge_responses_are_counted_by_kind_with_their_durations() {
        let mut used = ChargeRequestMetrics::default();
        for (response, milliseconds) in [
            (ChargeResponse::Processing, 300),
            (ChargeResponse::Unknown { reason: "no response".to_owned() }, 30_000),
            (ChargeResponse::Throttled { retry_after: None }, 20),
            (ChargeResponse::Unusable { reason: "the key has expired".to_owned() }, 10),
            // The clock was set back while the request was in progress.
            (ChargeResponse::KeyReused, -5_000),
        ] {
            used.add(&response, TimeDelta::milliseconds(milliseconds));
        }
        let expected = ChargeRequestMetrics {
            requests: 5,
            unknown: 1,
            throttled: 1,
            unusable: 1,
            total_ms: 30_330,
            longest_ms: 30_000,
        };
        assert_eq!(used, expected);
        used += ChargeRequestMetrics { requests: 1, total_ms: 40_000, longest_ms: 40_000, ..Default::default() };
        assert_eq!((used.requests, used.unknown, used.total_ms, used.longest_ms), (6, 1, 70_330, 40_000));
    }
}
