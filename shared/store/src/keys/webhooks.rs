//! The keys of webhook endpoints, of the deliveries of events to them, and of the deliveries that wait for their next try.

use chrono::{DateTime, Utc};
use ulid::Ulid;

use billing::DeliveryKey;
use dynamo::{Instant, Key, shard_of};

/// The partition key of all webhook endpoints.
pub const WEBHOOKS: &str = "WEBHOOKS";
/// The prefix of every webhook endpoint's sort key.
pub const WEBHOOK_ENDPOINTS: &str = "ENDPOINT#";
/// The prefix of the partition keys of the deliveries to webhook endpoints.
pub const DELIVERIES_OF_ENDPOINT: &str = "WEBHOOK#";
/// The prefix of the sort key of every delivery of an event to a webhook endpoint.
pub const DELIVERIES: &str = "EVENT#";
/// The prefix of the sort key of every entry in the list of the deliveries that wait for their next try.
pub const WAITING_DELIVERIES: &str = "WAITING#";
/// The number of partitions over which the deliveries to one webhook endpoint are spread, by the hash of the event's
/// id. DynamoDB writes at most 1,000 units per second to one partition. This number must never change, because the
/// partition of each stored delivery was computed with it.
pub const DELIVERY_PARTITIONS: u32 = 8;

/// Returns the key of a webhook endpoint.
pub fn key_of_webhook_endpoint(id: Ulid) -> Key {
    Key { pk: WEBHOOKS.to_owned(), sk: format!("{WEBHOOK_ENDPOINTS}{id}") }
}

/// Returns the id of the webhook endpoint with this key; `None` if it is the key of another kind of item.
pub fn parse_webhook_endpoint(key: &Key) -> Option<Ulid> {
    key.sk.strip_prefix(WEBHOOK_ENDPOINTS)?.parse().ok()
}

/// Returns the partition key of the deliveries to a webhook endpoint in one of the [`DELIVERY_PARTITIONS`].
pub fn partition_key_of_deliveries(endpoint: Ulid, partition: u32) -> String {
    format!("{DELIVERIES_OF_ENDPOINT}{endpoint}#{partition}")
}

/// Returns the number of the partition that contains the deliveries of the event with the id `event`.
pub fn partition_of_event(event: &str) -> u32 {
    shard_of(event, DELIVERY_PARTITIONS)
}

/// Returns the key of the delivery of an event to a webhook endpoint. An endpoint has at most one delivery for each
/// event.
pub fn key_of_delivery(key: &DeliveryKey) -> Key {
    let partition = partition_of_event(&key.event);
    Key { pk: partition_key_of_deliveries(key.endpoint, partition), sk: format!("{DELIVERIES}{}", key.event) }
}

/// Returns the key of the entry for the delivery `key`, whose next try is at `next_try`. The entries of a partition are
/// sorted by the time of the next try.
pub fn key_of_waiting_delivery(key: &DeliveryKey, next_try: DateTime<Utc>) -> Key {
    let sk = format!("{WAITING_DELIVERIES}{}#{}", Instant(next_try).to_text(), key.event);
    Key { pk: key_of_delivery(key).pk, sk }
}

/// Returns the delivery and the time of its next try that the key of an entry contains; `None` if it is the key of another
/// kind of item.
pub fn parse_waiting_delivery(key: &Key) -> Option<(DeliveryKey, DateTime<Utc>)> {
    let (endpoint, _) = key.pk.strip_prefix(DELIVERIES_OF_ENDPOINT)?.split_once('#')?;
    let (next_try, event) = key.sk.strip_prefix(WAITING_DELIVERIES)?.split_once('#')?;
    Some((DeliveryKey { endpoint: endpoint.parse().ok()?, event: event.to_owned() }, next_try.parse().ok()?))
}

/// Returns a sort key after the keys of all entries whose next try is at `now` or earlier, and before the keys of all
/// other entries.
pub fn end_of_due_deliveries(now: DateTime<Utc>) -> String {
    // `$` is the character after `#`, which is in the keys of the entries.
    format!("{WAITING_DELIVERIES}{}$", Instant(now).to_text())
}

/// Returns the key of the delivery in earlier versions of Dueday. Those versions stored all deliveries to an endpoint
/// in one partition.
pub fn earlier_key_of_delivery(key: &DeliveryKey) -> Key {
    Key { pk: format!("{DELIVERIES_OF_ENDPOINT}{}", key.endpoint), sk: format!("{DELIVERIES}{}", key.event) }
}
