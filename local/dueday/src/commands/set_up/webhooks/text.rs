//! The text output of `dueday webhooks`.

use api::{DeliveryView, EndpointView};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};

/// The columns of the table of webhook endpoints.
const ENDPOINT_COLUMNS: [TableColumn; 4] = [
    TableColumn::unwrapped("endpoint"),
    TableColumn::unwrapped("status"),
    TableColumn::text("URL"),
    TableColumn::text("types"),
];

/// The columns of the table of deliveries.
const DELIVERY_COLUMNS: [TableColumn; 6] = [
    TableColumn::unwrapped("event"),
    TableColumn::unwrapped("type"),
    TableColumn::unwrapped("status"),
    TableColumn::number("tries"),
    TableColumn::text("last response"),
    TableColumn::unwrapped("next try"),
];

/// Returns the table of `endpoints`; a hint if there are none.
pub fn endpoint_table(endpoints: &[EndpointView]) -> String {
    if endpoints.is_empty() {
        return "There are no webhook endpoints. Create one: dueday webhooks create URL\n".to_owned();
    }
    let rows = endpoints.iter().map(|endpoint| {
        vec![
            endpoint.id.clone(),
            format_endpoint_status(endpoint),
            endpoint.url.as_str().to_owned(),
            format_event_types(endpoint),
        ]
    });
    format_table(&ENDPOINT_COLUMNS, rows)
}

/// Returns all details of `endpoint`, one for each line.
pub fn endpoint_text(endpoint: &EndpointView) -> String {
    let mut lines = vec![
        format!("endpoint: {}", endpoint.id),
        format!("URL: {}", endpoint.url.as_str()),
        format!("types: {}", format_event_types(endpoint)),
        format!("status: {}", format_endpoint_status(endpoint)),
        format!("created: {}", format_time(endpoint.created_at)),
    ];
    lines.extend(endpoint.disabled_because.as_ref().map(|because| format!("disabled because: {because}")));
    lines.extend(
        endpoint
            .previous_secret_valid_until
            .map(|until| format!("previous secret valid until: {}", format_time(until))),
    );
    lines.join("\n") + "\n"
}

/// Returns the table of `deliveries`.
pub fn delivery_table(deliveries: &[DeliveryView]) -> String {
    if deliveries.is_empty() {
        return "There are no such deliveries in the last 30 days.\n".to_owned();
    }
    let rows = deliveries.iter().map(|delivery| {
        vec![
            delivery.event.clone(),
            delivery.event_type.clone(),
            delivery.status.to_string(),
            delivery.attempts.to_string(),
            delivery.last_answer.clone().unwrap_or_default(),
            delivery.next_try_at.map(format_time).unwrap_or_default(),
        ]
    });
    format_table(&DELIVERY_COLUMNS, rows)
}

/// Formats the time `at` in whole seconds.
fn format_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the state of `endpoint` as text: enabled, disabled, or failing with the time of the next try.
fn format_endpoint_status(endpoint: &EndpointView) -> String {
    match (endpoint.enabled, endpoint.not_tried_until) {
        (false, _) => output::red_text("disabled"),
        (true, Some(until)) => output::red_text(&format!("fails; next try {}", format_time(until))),
        (true, None) => "enabled".to_owned(),
    }
}

/// Returns the event types that `endpoint` receives.
fn format_event_types(endpoint: &EndpointView) -> String {
    if endpoint.types.is_empty() { "all".to_owned() } else { endpoint.types.join(", ") }
}
