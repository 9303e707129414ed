//! The JSON Schemas of events, computed from their types. `docs/events.json` contains them.

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::event::cloud_event::SCHEMA_VERSION;
use crate::event::data::EventData;
use crate::event::operator_event::OperatorEvent;

/// The name of the schema of the fields that all events have.
const ENVELOPE: &str = "Envelope";

/// Returns the JSON Schema of all events: the schema of each type in `$defs`, under the name of the type, and the parts
/// that several types have in common.
///
/// An event has no other fields than those of its schema. A field that the schema does not require is absent if it has
/// no value.
pub fn event_schemas() -> Value {
    let mut parts = Vec::new();
    EventData::schemas(&mut parts);
    OperatorEvent::schemas(&mut parts);
    let parts: Map<String, Value> = parts.into_iter().map(|(name, part)| (name, json!(part))).collect();
    let mut definitions = Map::new();
    let mut types = Vec::new();
    for union in [json!(EventData::schema()), json!(OperatorEvent::schema())] {
        for variant in union["oneOf"].as_array().expect("an enum has a schema for each variant") {
            let event_type = variant["properties"]["type"]["enum"][0].as_str().expect("the tag of a variant is text");
            types.push(json!({"$ref": format!("#/$defs/{event_type}")}));
            definitions.insert(event_type.to_owned(), event_schema(event_type, variant, &parts));
        }
    }
    definitions.insert(ENVELOPE.to_owned(), envelope_schema());
    for (name, part) in &parts {
        definitions.insert(name.clone(), forbid_other_fields(part, &parts));
    }
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Generated from the types in shared/billing/src/event: UPDATE_EXAMPLES=1 cargo test --test story events::",
        "title": "The events of Dueday",
        "oneOf": types,
        "$defs": definitions,
    });
    remove_unused_definitions(&mut document);
    document
}

/// Returns the schema of the fields that all events have, except for those that depend on the type.
fn envelope_schema() -> Value {
    let text = |description: &str| json!({"type": "string", "minLength": 1, "description": description});
    json!({
        "description": "The fields of every event, as CloudEvents 1.0 defines them",
        "type": "object",
        "required": ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": text("The id of the event; a repeated event has the same id"),
            "source": text("The ARN or the name of the table"),
            "subject": text("The id of the account; otherwise the id of the audit, a day, or the key of an item"),
            "time": {"type": "string", "format": "date-time", "description": "The time of the change"},
            "datacontenttype": {"const": "application/json"},
        },
    })
}

/// Returns the schema of the events of the type `event_type`: the envelope with the data of `variant`.
fn event_schema(event_type: &str, variant: &Value, parts: &Map<String, Value>) -> Value {
    json!({
        "title": event_type,
        "description": variant["description"],
        "$ref": format!("#/$defs/{ENVELOPE}"),
        "properties": {
            "type": {"const": event_type},
            "dataschema": {"const": format!("urn:dueday:event:{event_type}:{SCHEMA_VERSION}")},
            "data": forbid_other_fields(&without_description(&variant["properties"]["data"]), parts),
        },
        "unevaluatedProperties": false,
    })
}

/// Returns `schema` without its description, which is already that of the event.
fn without_description(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema.as_object_mut().map(|schema| schema.remove("description"));
    schema
}

/// Returns `schema` with references into `$defs`, with the fields of flattened parts, and without other fields than
/// those that it describes.
fn forbid_other_fields(schema: &Value, parts: &Map<String, Value>) -> Value {
    match schema {
        Value::Object(object) => {
            let flattened;
            let object = match object.get("allOf").and_then(Value::as_array) {
                Some(members) => {
                    flattened = merge_flattened_members(object, members, parts);
                    &flattened
                }
                None => object,
            };
            let mut strict_object: Map<String, Value> =
                object.iter().map(|(name, value)| (name.clone(), forbid_other_fields(value, parts))).collect();
            if let Some(properties) = object.get("properties").and_then(Value::as_object) {
                let is_required = |name: &&String| is_required(object, name, &properties[name.as_str()]);
                strict_object.insert("required".to_owned(), properties.keys().filter(is_required).cloned().collect());
                strict_object.insert("additionalProperties".to_owned(), false.into());
            }
            Value::Object(strict_object)
        }
        Value::Array(members) => members.iter().map(|member| forbid_other_fields(member, parts)).collect(),
        Value::String(text) => text.replace("#/components/schemas/", "#/$defs/").into(),
        other => other.clone(),
    }
}

/// Returns whether an event always has the field `name`. The serializer writes an `Option` without a value as `null`, except
/// if the type says that the field is then absent: only then the schema of an optional field does not allow `null`.
fn is_required(object: &Map<String, Value>, name: &str, property: &Value) -> bool {
    let is_listed = object["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    is_listed || property.to_string().contains("\"null\"")
}

/// Returns an object schema with the fields of all `members` of an `allOf`, which is the schema of a flattened field.
fn merge_flattened_members(
    object: &Map<String, Value>,
    members: &[Value],
    parts: &Map<String, Value>,
) -> Map<String, Value> {
    let mut flattened = object.clone();
    flattened.remove("allOf");
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for member in members {
        let name = member["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        let member = name.map_or(member, |name| &parts[name]);
        properties.extend(member["properties"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
        required.extend(member["required"].as_array().into_iter().flatten().cloned());
    }
    flattened.extend([("type".to_owned(), "object".into()), ("properties".to_owned(), properties.into())]);
    flattened.insert("required".to_owned(), required.into());
    flattened
}

/// Removes the parts to which nothing refers, such as flattened parts.
fn remove_unused_definitions(document: &mut Value) {
    loop {
        let text = document.to_string();
        let definitions = document["$defs"].as_object_mut().expect("a document with definitions");
        let before = definitions.len();
        definitions.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if definitions.len() == before {
            return;
        }
    }
}
