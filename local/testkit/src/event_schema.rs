//! The comparison of an event with its JSON Schema.

use serde_json::{Value, json};

/// Returns how `event` differs from the schema of its type; empty if the event matches the schema.
///
/// # Panics
/// If there is no schema for the type of the event.
pub fn event_schema_errors(event: &Value) -> Vec<String> {
    let mut schema = billing::event_schemas();
    let name = event["type"].as_str().expect("an event has a type");
    assert!(schema["$defs"][name].is_object(), "there is no schema for {name}");
    // Refer to one type only: the errors of a choice between all types name no field.
    schema.as_object_mut().expect("a schema").remove("oneOf");
    schema["$ref"] = json!(format!("#/$defs/{name}"));
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    validator.iter_errors(event).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
