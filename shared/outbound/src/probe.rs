//! The back-off of webhook endpoints to which all deliveries fail: for some time, no delivery to the endpoint is tried.
//! This module counts the failed tries, and admits one delivery as a probe at the end of a back-off.

use billing::{BackoffState, WebhookEndpoint};
use chrono::{DateTime, Utc};
use store::{Table, TableError};
use ulid::Ulid;

/// Whether a delivery to an endpoint may be tried now.
pub enum DeliveryAdmission {
    /// A delivery to the endpoint may be tried. Contains the stored endpoint.
    Try(Box<WebhookEndpoint>),
    /// No delivery to the endpoint must be tried before this instant. Also contains the stored endpoint.
    Wait(Box<WebhookEndpoint>, DateTime<Utc>),
    /// The endpoint does not exist any more.
    Removed,
}

/// Decides whether a delivery to `endpoint` may be tried at `now`. If a probe of the endpoint is due, claims the probe
/// with a conditional write, so that only one worker sends a request. `id` is the unique id of this try.
pub async fn admit_delivery(
    table: &Table,
    endpoint: WebhookEndpoint,
    now: DateTime<Utc>,
    id: Ulid,
) -> Result<DeliveryAdmission, TableError> {
    let seen = endpoint.backoff;
    match seen.state(now) {
        BackoffState::Inactive => return Ok(DeliveryAdmission::Try(Box::new(endpoint))),
        BackoffState::WaitsUntil(until) => return Ok(DeliveryAdmission::Wait(Box::new(endpoint), until)),
        BackoffState::ProbeIsDue => {}
    }
    // `change_webhook_endpoint` calls this closure again after a write conflict. If another worker has claimed the
    // probe in the meantime, the closure returns `None`, and nothing is written.
    let claim = |stored: &WebhookEndpoint| {
        let backoff = seen.with_claimed_probe(now, id);
        (stored.backoff == seen).then(|| WebhookEndpoint { backoff, ..stored.clone() })
    };
    let Some(stored) = table.change_webhook_endpoint(endpoint, claim).await? else {
        return Ok(DeliveryAdmission::Removed);
    };
    let until = match stored.backoff.state(now) {
        // Another worker's probe has succeeded.
        BackoffState::Inactive => None,
        BackoffState::WaitsUntil(until) => Some(until),
        // Another worker, whose clock is behind, has changed the back-off, and a probe is due again. Let the caller try
        // again at once, with the endpoint read again.
        BackoffState::ProbeIsDue => Some(now),
    };
    let has_claim = stored.backoff.changed_by == Some(id);
    Ok(match until.filter(|_| !has_claim) {
        Some(until) => DeliveryAdmission::Wait(Box::new(stored), until),
        None => DeliveryAdmission::Try(Box::new(stored)),
    })
}

/// Counts a failed try in the item of the endpoint. The try has the id `id` and failed at `now`. `endpoint` is the
/// endpoint as it was stored when the try began. Writes nothing if the merchant has changed the URL since then, or if
/// another try has started or continued the back-off. `not_before` is the time before which the endpoint wants no request,
/// if it has requested a time.
pub async fn count_failed_try(
    table: &Table,
    endpoint: &WebhookEndpoint,
    now: DateTime<Utc>,
    not_before: Option<DateTime<Utc>>,
    id: Ulid,
) -> Result<(), TableError> {
    let with_failure = |stored: &WebhookEndpoint| {
        let backoff = stored.backoff.after_failure(&endpoint.backoff, now, not_before, id)?;
        (stored.url == endpoint.url).then(|| WebhookEndpoint { backoff, ..stored.clone() })
    };
    table.change_webhook_endpoint(endpoint.clone(), with_failure).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use billing::{EndpointBackoff, FAILURES_BEFORE_BACKOFF, StoredSecret};
    use emulator::Engine;

    #[tokio::test]
    async fn only_one_of_two_workers_that_read_the_same_endpoint_claims_the_probe() {
        let now = DateTime::UNIX_EPOCH;
        let table = Table::new(Engine::in_memory().client(), "dueday");
        table.create_if_absent().await.unwrap();
        let backoff = EndpointBackoff { failures: FAILURES_BEFORE_BACKOFF, until: Some(now), changed_by: None };
        let url = "https://example.com/".parse().unwrap();
        let endpoint = WebhookEndpoint {
            backoff,
            ..WebhookEndpoint::new(Ulid(1), url, StoredSecret::Encrypted("v1".to_owned()), now)
        };
        table.create_webhook_endpoint(&endpoint, None).await.unwrap();
        let first = admit_delivery(&table, endpoint.clone(), now, Ulid(1)).await.unwrap();
        assert!(matches!(first, DeliveryAdmission::Try(_)));
        let second = admit_delivery(&table, endpoint.clone(), now, Ulid(2)).await.unwrap();
        assert!(matches!(second, DeliveryAdmission::Wait(_, until) if until > now));

        let DeliveryAdmission::Try(probed) = first else { panic!("the first worker has no claim") };
        count_failed_try(&table, &endpoint, now, None, Ulid(3)).await.unwrap();
        let stored = table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
        assert_eq!(stored, *probed, "a try that began before the claim does not count");
        count_failed_try(&table, &probed, now, None, Ulid(1)).await.unwrap();
        let stored = table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
        assert_eq!(stored.backoff.failures, FAILURES_BEFORE_BACKOFF + 1);
    }

    #[tokio::test]
    async fn two_tries_that_fail_at_the_same_time_count_twice() {
        let now = DateTime::UNIX_EPOCH;
        let table = Table::new(Engine::in_memory().client(), "dueday");
        table.create_if_absent().await.unwrap();
        let url = "https://example.com/".parse().unwrap();
        let endpoint = WebhookEndpoint::new(Ulid(1), url, StoredSecret::Encrypted("v1".to_owned()), now);
        table.create_webhook_endpoint(&endpoint, None).await.unwrap();
        for id in [1, 2] {
            count_failed_try(&table, &endpoint, now, None, Ulid(id)).await.unwrap();
        }
        let stored = table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
        assert_eq!(stored.backoff.failures, 2);
    }
}
