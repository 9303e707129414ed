//! The measured requests of a run to charge at the gateway.

use chrono::TimeDelta;
use gateways::ChargeResponse;

/// The number of requests to charge, how many had no usable response, and how long they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GatewayUse {
    requests: u64,
    /// The requests without a response, or with one that cannot be used: the outcome is not known.
    unknown: u64,
    /// The requests that the gateway refused because of its rate limit.
    throttled: u64,
    /// The requests that the gateway refused because of the key or the account.
    unusable: u64,
    total_ms: u64,
    longest_ms: u64,
}

impl GatewayUse {
    /// Adds a request to charge that returned `response` after `duration`.
    pub(super) fn add(&mut self, response: &ChargeResponse, duration: TimeDelta) {
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

    /// Logs the requests in one line, from which metric filters of `template.yaml` read the numbers. Logs nothing if there
    /// was no request.
    pub fn log(&self) {
        let Self { requests, unknown, throttled, unusable, total_ms, longest_ms } = *self;
        if let Some(mean_ms) = total_ms.checked_div(requests) {
            tracing::info!(requests, unknown, throttled, unusable, mean_ms, longest_ms, "charges at the gateway");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_kind_with_their_durations() {
        let mut used = GatewayUse::default();
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
        let expected =
            GatewayUse { requests: 5, unknown: 1, throttled: 1, unusable: 1, total_ms: 30_330, longest_ms: 30_000 };
        assert_eq!(used, expected);
    }
}
