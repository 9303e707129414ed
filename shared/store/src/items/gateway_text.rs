use serde::{Deserialize, Serialize};

/// The maximum number of characters of a stored [`GatewayText`].
const MAX_CHARS: usize = 100;

/// A code or a short message from a gateway. The text is cut to [`MAX_CHARS`] characters when it is stored and when it
/// is read, because a longer text could make the item, and the event about the item, too large.
#[derive(Serialize, Deserialize)]
#[serde(from = "String")]
pub(super) struct GatewayText(String);

impl From<&str> for GatewayText {
    fn from(text: &str) -> Self {
        Self(text.chars().take(MAX_CHARS).collect())
    }
}

impl From<String> for GatewayText {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<GatewayText> for String {
    fn from(text: GatewayText) -> Self {
        text.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_text_is_cut_to_100_characters_when_it_is_written_and_read() {
        let long = "é".repeat(300_000);
        assert_eq!(String::from(GatewayText::from(long.as_str())), "é".repeat(100));
        let stored = aws_sdk_dynamodb::types::AttributeValue::S(long);
        let read: GatewayText = serde_dynamo::from_attribute_value(stored).unwrap();
        assert_eq!(String::from(read), "é".repeat(100));
        assert_eq!(String::from(GatewayText::from("card_declined")), "card_declined");
    }
}
