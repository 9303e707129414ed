//! Removes personal data from the error messages of AWS.
//!
//! Most messages of AWS name only resources, attributes and permissions. Some messages repeat a value of the request,
//! and a value can be the name, the email address or the token of a customer. DynamoDB repeats values in these messages
//! of `ValidationException` (they are documented only by the messages themselves):
//!
//! - `Value '...' at 'tableName' failed to satisfy constraint: ...`
//! - `The parameter cannot be converted to a numeric value: ...`
//! - `Input collection [...] contains duplicates`
//! - `lower bound operand: AttributeValue: {S:...}`
//!
//! Messages of Amazon SES, and the names of roles and sessions in an ARN, can contain an email address. Account ids and
//! ARNs stay in the message, because they show which permission is missing.

/// The text that replaces a removed value.
const REDACTED: &str = "<redacted>";

/// Returns the error message `message` of AWS without the values of the request and without email addresses.
pub fn remove_personal_data(message: &str) -> String {
    let message = redact_each_between(message, "Value '", "' at '");
    let message = redact_from_first_to_last(&message, "[", "]");
    let message = redact_from_first_to_last(&message, "{", "}");
    let message = redact_from_first_to_last(&message, "numeric value: ", " for key ");
    redact_email_addresses(&message)
}

/// Replaces each text between `start` and the next `end`. A text without an `end` goes to the end of the message.
fn redact_each_between(message: &str, start: &str, end: &str) -> String {
    let Some((before, rest)) = message.split_once(start) else { return message.to_owned() };
    let rest = rest.find(end).map_or("", |end| &rest[end..]);
    format!("{before}{start}{REDACTED}{}", redact_each_between(rest, start, end))
}

/// Replaces the text between the first `start` and the last `end`, because the value itself can contain `end`. A text
/// without an `end` goes to the end of the message.
fn redact_from_first_to_last(message: &str, start: &str, end: &str) -> String {
    let Some((before, rest)) = message.split_once(start) else { return message.to_owned() };
    let rest = rest.rfind(end).map_or("", |end| &rest[end..]);
    format!("{before}{start}{REDACTED}{rest}")
}

/// Replaces each word that contains an `@`.
fn redact_email_addresses(message: &str) -> String {
    let is_separator = |c: char| c.is_whitespace() || "\"'`()<>[]{},;:/=".contains(c);
    let words = message.split_inclusive(is_separator).map(|word| match word.strip_suffix(is_separator) {
        Some(address) if address.contains('@') => format!("{REDACTED}{}", &word[address.len()..]),
        None if word.contains('@') => REDACTED.to_owned(),
        _ => word.to_owned(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_request_and_email_addresses_are_removed() {
        for (message, expected) in [
            (
                "1 validation error detected: Value '[TransactWriteItem(put=O'Neil, [ada@example.com])]' at \
                 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100",
                "1 validation error detected: Value '<redacted>' at 'transactItems' failed to satisfy constraint: \
                 Member must have length less than or equal to 100",
            ),
            (
                "2 validation errors detected: Value 'Ada' at 'a' failed to satisfy constraint: x; Value 'Lovelace' \
                 at 'b' failed to satisfy constraint: y",
                "2 validation errors detected: Value '<redacted>' at 'a' failed to satisfy constraint: x; Value \
                 '<redacted>' at 'b' failed to satisfy constraint: y",
            ),
            (
                "The parameter cannot be converted to a numeric value: Ada Lovelace",
                "The parameter cannot be converted to a numeric value: <redacted>",
            ),
            (
                "ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric \
                 value: Ada for key :x",
                "ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric \
                 value: <redacted> for key :x",
            ),
            (
                "Input collection [Ada], [Bell] contains duplicates.",
                "Input collection [<redacted>] contains duplicates.",
            ),
            (
                "lower bound operand: AttributeValue: {S:Ada}, upper bound operand: AttributeValue: {S:Bell}",
                "lower bound operand: AttributeValue: {<redacted>}",
            ),
            ("Value 'Ada Lovelace", "Value '<redacted>"),
            (
                "identities failed the check in region EU-WEST-1: Ada <ada@example.com>, bell@example.com",
                "identities failed the check in region EU-WEST-1: Ada <<redacted>>, <redacted>",
            ),
        ] {
            assert_eq!(remove_personal_data(message), expected);
        }
    }

    #[test]
    fn missing_permission_stays_in_the_message() {
        let denied = |session: &str| {
            format!(
                "User: arn:aws:sts::123456789012:assumed-role/admin/{session} is not authorized to perform: \
                 dynamodb:PutItem on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/dueday because no \
                 identity-based policy allows the dynamodb:PutItem action"
            )
        };
        assert_eq!(remove_personal_data(&denied("dueday-api")), denied("dueday-api"));
        assert_eq!(remove_personal_data(&denied("ada@example.com")), denied("<redacted>"));
        let mismatch = "One or more parameter values were invalid: Type mismatch for key PK expected: S actual: N";
        assert_eq!(remove_personal_data(mismatch), mismatch);
    }
}
