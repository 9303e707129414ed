//! Checks that the function `events` reads the stream of a table.

use super::aws_cli::{AwsCli, Response, list_field, text_field};
use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check for the stream of the payments table.
pub const READER_OF_PAYMENTS: &str = "reader of the stream";

/// The name of the check for the stream of the order desk's table.
pub const READER_OF_ORDERS: &str = "reader of the stream of the orders table";

/// Checks that the function `events` reads the stream with the ARN `stream`. `check` is the name of the check.
pub async fn check_stream_reader(
    aws: &AwsCli,
    stack: Option<&Stack>,
    check: &'static str,
    stream: Option<&str>,
) -> DoctorCheck {
    let Some(stream) = stream else {
        return DoctorCheck::not_checked(check, "no stream of the table is known");
    };
    let function = stack.and_then(|stack| stack.resources.get("EventsFunction"));
    let mappings = aws.run(&["lambda", "list-event-source-mappings", "--event-source-arn", stream]).await;
    check_event_source_mappings(check, mappings, function.map(String::as_str))
}

/// Checks that one of the event source mappings of the stream starts `function`. If `function` is `None`, any function
/// is accepted.
fn check_event_source_mappings(check: &'static str, mappings: Response, function: Option<&str>) -> DoctorCheck {
    let mappings = match mappings {
        Ok(mappings) => mappings,
        Err(error) => return DoctorCheck::not_checked(check, error.to_string()),
    };
    let is_of_function = |arn: &str| function.is_none_or(|function| arn.rsplit(':').next() == Some(function));
    let found =
        list_field(&mappings, "EventSourceMappings").find(|mapping| is_of_function(text_field(mapping, "FunctionArn")));
    let Some(mapping) = found else {
        let detail = "no function reads the stream, so no events are published";
        return DoctorCheck::wrong(check, detail, "Deploy the template again");
    };
    let (uuid, result) = (text_field(mapping, "UUID"), text_field(mapping, "LastProcessingResult"));
    match text_field(mapping, "State") {
        "Enabled" if result.starts_with("PROBLEM") => DoctorCheck::wrong(
            check,
            format!("its last run ended with: {result}"),
            "See the log of the function `events`",
        ),
        "Enabled" => DoctorCheck::good(check, "the function `events` is started"),
        "Creating" | "Enabling" | "Updating" => {
            DoctorCheck::wrong(check, "it is not ready yet", "Wait a minute, and check again")
        }
        state => {
            let advice = format!("Run `aws lambda update-event-source-mapping --uuid {uuid} --enabled`");
            DoctorCheck::wrong(
                check,
                format!("its event source mapping is {state}, so no events are published"),
                advice,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::aws_cli::AwsError;
    use super::*;

    const CHECK_NAME: &str = READER_OF_PAYMENTS;

    /// Returns a response of `list-event-source-mappings`, as documented in the AWS CLI reference.
    fn event_source_mappings_response(state: &str, result: &str) -> Value {
        json!({"EventSourceMappings": [{
            "UUID": "a1b2c3d4-5678-90ab-cdef-11111EXAMPLE",
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": 100,
            "EventSourceArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/t/stream/2026-11-25T00:00:00.000",
            "FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:dueday-EventsFunction-1A2B",
            "LastModified": 1569284520.333,
            "LastProcessingResult": result,
            "State": state,
        }]})
    }

    #[test]
    fn stream_reader_needs_an_enabled_event_source_mapping() {
        let function = Some("dueday-EventsFunction-1A2B");
        assert!(
            check_event_source_mappings(CHECK_NAME, Ok(event_source_mappings_response("Enabled", "OK")), function)
                .is_good()
        );
        assert!(
            check_event_source_mappings(
                CHECK_NAME,
                Ok(event_source_mappings_response("Enabled", "No records processed")),
                None
            )
            .is_good()
        );
        assert!(
            !check_event_source_mappings(CHECK_NAME, Ok(event_source_mappings_response("Disabled", "OK")), function)
                .is_good()
        );
        assert!(
            !check_event_source_mappings(
                CHECK_NAME,
                Ok(event_source_mappings_response("Enabled", "PROBLEM: Function call failed")),
                function
            )
            .is_good()
        );
        assert!(
            !check_event_source_mappings(
                CHECK_NAME,
                Ok(event_source_mappings_response("Enabled", "OK")),
                Some("dueday-EventsFunction-OTHER")
            )
            .is_good()
        );
        assert!(!check_event_source_mappings(CHECK_NAME, Ok(json!({"EventSourceMappings": []})), function).is_good());
        let denied = AwsError::Denied("lambda:ListEventSourceMappings".to_owned());
        let expected = DoctorCheck::not_checked(CHECK_NAME, "the permission lambda:ListEventSourceMappings is missing");
        assert_eq!(check_event_source_mappings(CHECK_NAME, Err(denied), function), expected);
    }
}
