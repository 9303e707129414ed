//! The causes of failed requests to AWS, as texts for logs and for people.
//!
//! The output of an error of the AWS SDK must not be logged. Its `Display` output is only `service error` or `dispatch
//! failure`. Its `Debug` output contains the whole response of AWS, which can contain stored items or a secret.
//! [`AwsRequestError`] contains the complete cause and no personal data.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod redaction;

use std::error::Error;
use std::fmt;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

pub use redaction::remove_personal_data;

/// The response header in which AWS returns the id of a request.
const REQUEST_ID_HEADER: &str = "x-amzn-requestid";

/// The reason why a request to AWS failed. The texts contain no email addresses, and no values that the request sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwsRequestError {
    /// The error code of AWS, such as `AccessDeniedException`; `None` if AWS returned no error code.
    pub code: Option<Box<str>>,
    /// The message of AWS. Without an error code: the errors of the SDK, from the outermost to the innermost.
    texts: Vec<String>,
    /// The id of the request, with which AWS Support can find it.
    request_id: Option<Box<str>>,
}

impl AwsRequestError {
    /// Creates the error from the SDK's `error`.
    pub fn new<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let response = error.raw_response();
        let request_id = response.and_then(|response| response.headers().get(REQUEST_ID_HEADER)).map(Box::from);
        match error.code() {
            Some(code) => Self { request_id, ..Self::of_code(code, error.message()) },
            None => {
                let chain = std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (**error).source());
                let status = response.map(|response| format!("HTTP status {}", response.status()));
                let texts = chain.map(|error| remove_personal_data(&error.to_string()));
                Self { code: None, texts: status.into_iter().chain(texts).collect(), request_id }
            }
        }
    }

    /// Creates the error of one entry of a request, for which AWS returned the error `code` and perhaps a `message`.
    pub fn of_code(code: &str, message: Option<&str>) -> Self {
        let texts = message.map(remove_personal_data).into_iter().collect();
        Self { code: Some(remove_personal_data(code).into()), texts, request_id: None }
    }

    /// Returns this error with the `code` and the `message` of the entry that made the whole request fail.
    #[must_use]
    pub fn of_entry(self, code: &str, message: Option<&str>) -> Self {
        Self { request_id: self.request_id, ..Self::of_code(code, message) }
    }

    /// Returns the error for a person who does not know the AWS SDK: without the errors of the SDK between the
    /// outermost and the innermost error.
    pub fn short_text(&self) -> String {
        match &self.code {
            Some(_) => self.to_string(),
            None => format!("no usable response: {}", self.innermost_text()),
        }
    }

    /// Returns the message of AWS. Without an error code: the innermost error of the SDK.
    pub fn innermost_text(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }
}

impl fmt::Display for AwsRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.code.as_deref().into_iter().chain(self.texts.iter().map(String::as_str)).collect();
        f.write_str(&texts.join(": "))?;
        match &self.request_id {
            Some(id) => write!(f, " (request id {id})"),
            None => Ok(()),
        }
    }
}

impl Error for AwsRequestError {}

#[cfg(test)]
mod tests {
    use std::io;

    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_types::body::SdkBody;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;

    const DENIED: &str = "User: arn:aws:sts::123456789012:assumed-role/dueday-api/dueday-api is not authorized to \
                          perform: dynamodb:GetItem on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/dueday";

    fn aws_response(body: &'static str) -> HttpResponse {
        let mut response = HttpResponse::new(400.try_into().unwrap(), SdkBody::from(body));
        response.headers_mut().insert(REQUEST_ID_HEADER, "REQ1");
        response
    }

    #[test]
    fn error_of_aws_contains_code_message_and_request_id_but_not_the_response() {
        let metadata = ErrorMetadata::builder().code("AccessDeniedException").message(DENIED).build();
        let error =
            AwsRequestError::new(&SdkError::service_error(metadata, aws_response(r#"{"Email":"ada@example.com"}"#)));
        assert_eq!(error.to_string(), format!("AccessDeniedException: {DENIED} (request id REQ1)"));
        assert_eq!((error.code.as_deref(), error.innermost_text()), (Some("AccessDeniedException"), DENIED));
        assert!(!format!("{error:?}").contains("Email"), "{error:?}");
        let of_entry = error.of_entry("ValidationError", Some("Item size has exceeded the maximum allowed size"));
        let expected = "ValidationError: Item size has exceeded the maximum allowed size (request id REQ1)";
        assert_eq!(of_entry.to_string(), expected);
    }

    #[test]
    fn error_without_a_response_contains_all_its_causes() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let sdk: SdkError<ErrorMetadata, HttpResponse> = SdkError::dispatch_failure(ConnectorError::io(refused.into()));
        let error = AwsRequestError::new(&sdk);
        assert_eq!(error.to_string(), "dispatch failure: io error: connection refused");
        assert_eq!(error.short_text(), "no usable response: connection refused");
        assert_eq!((error.code.as_deref(), error.innermost_text()), (None, "connection refused"));
    }

    #[test]
    fn response_that_cannot_be_read_is_not_printed() {
        let sdk: SdkError<ErrorMetadata, HttpResponse> =
            SdkError::response_error("unexpected token", aws_response(r#"{"SecretString":"top"}"#));
        let error = AwsRequestError::new(&sdk);
        assert_eq!(error.to_string(), "HTTP status 400: response error: unexpected token (request id REQ1)");
        assert!(!format!("{error:?}").contains("top"), "{error:?}");
    }
}
