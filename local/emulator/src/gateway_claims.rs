//! The claims of a token in the form in which the JWT authorizer of API Gateway passes them to a function.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Returns `claims` as texts, as the JWT authorizer of an HTTP API passes them: a list becomes one text in brackets,
/// such as `[read write]`, a string stays unchanged, and every other value becomes its JSON text.
pub fn gateway_claims(claims: &Map<String, Value>) -> HashMap<String, String> {
    claims.iter().map(|(name, value)| (name.clone(), claim_text(value))).collect()
}

/// Returns the text of one claim, as described at [`gateway_claims`].
fn claim_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(claim_text).collect::<Vec<_>>().join(" ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gateway_claims_convert_a_list_to_text_in_brackets_and_a_number_to_digits() {
        let claims = json!({"sub": "acme", "permissions": ["read", "write"], "version": 2, "email_verified": true});
        let passed = gateway_claims(claims.as_object().unwrap());
        let texts = ["sub", "permissions", "version", "email_verified"].map(|name| passed[name].as_str());
        assert_eq!(texts, ["acme", "[read write]", "2", "true"]);
    }
}
