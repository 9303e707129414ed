//! Events as queues bring them.

use serde_json::Value;

/// The event that a message's `body` is, or has within: what EventBridge itself could not hand over is in its own envelope.
pub fn told(body: &str) -> Option<String> {
    let message: Value = serde_json::from_str(body).ok()?;
    let is_event = |value: &Value| ["specversion", "id", "type"].iter().all(|name| value[name].is_string());
    if is_event(&message) {
        return Some(body.to_owned());
    }
    is_event(&message["detail"]).then(|| message["detail"].to_string())
}
