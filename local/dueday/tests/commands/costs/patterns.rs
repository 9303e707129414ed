//! Event patterns of EventBridge rules and of stream filters, as far as `template.yaml` uses them.

use serde_json::Value;

/// Returns whether `event` matches `pattern`. For each field of the pattern, the event must match at least one of the
/// values that the pattern lists for this field.
///
/// # Panics
/// If the pattern contains an operator that this function does not know.
pub fn is_match(pattern: &Value, event: &Value) -> bool {
    let fields = pattern.as_object().unwrap_or_else(|| panic!("not a pattern: {pattern}"));
    fields.iter().all(|(name, wanted)| match wanted {
        Value::Array(alternatives) if name == "$or" => alternatives.iter().any(|one| is_match(one, event)),
        Value::Array(values) => values.iter().any(|value| is_value_match(value, &event[name])),
        nested => is_match(nested, &event[name]),
    })
}

/// Returns whether `found`, a field of an event, matches `wanted`, a value of a pattern. If `found` is a list, at least
/// one element must match. If the event does not contain the field, `found` is `null`.
fn is_value_match(wanted: &Value, found: &Value) -> bool {
    if let Value::Array(elements) = found
        && !elements.is_empty()
    {
        return elements.iter().any(|element| is_value_match(wanted, element));
    }
    let Value::Object(operator) = wanted else { return wanted == found };
    let exists = !matches!(found, Value::Null | Value::Array(_));
    let (name, argument) = operator.iter().next().expect("an operator");
    match (name.as_str(), argument) {
        ("exists", Value::Bool(wanted)) => exists == *wanted,
        ("prefix", Value::String(prefix)) => found.as_str().is_some_and(|text| text.starts_with(prefix)),
        ("anything-but", Value::Array(excluded)) => exists && !excluded.contains(found),
        _ => panic!("unknown operator: {wanted}"),
    }
}

#[test]
fn event_patterns_match_as_in_the_documentation_of_eventbridge() {
    use serde_json::json;
    let event = json!({ "source": "dueday", "resources": ["a", "b"], "none": [], "detail": { "n": { "N": "1" } } });
    for (pattern, expected) in [
        (json!({ "source": ["dueday"] }), true),
        (json!({ "source": ["other"] }), false),
        (json!({ "source": ["other", { "prefix": "due" }] }), true),
        (json!({ "source": ["dueday"], "detail": { "n": { "N": ["2"] } } }), false),
        (json!({ "detail": { "n": { "N": [{ "exists": true }] } } }), true),
        (json!({ "detail": { "m": { "N": [{ "exists": true }] } } }), false),
        (json!({ "detail": { "m": { "N": [{ "exists": false }] } } }), true),
        (json!({ "none": [{ "exists": false }] }), true),
        (json!({ "resources": ["b"] }), true),
        (json!({ "resources": [{ "anything-but": ["a", "b"] }] }), false),
        (json!({ "source": [{ "anything-but": ["other"] }] }), true),
        (json!({ "absent": [{ "anything-but": ["other"] }] }), false),
        (json!({ "$or": [{ "source": ["other"] }, { "resources": ["a"] }] }), true),
    ] {
        assert_eq!(is_match(&pattern, &event), expected, "{pattern}");
    }
}
