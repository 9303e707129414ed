//! Requests to AWS with the AWS CLI, which must be installed. `dueday doctor` and `dueday status` need AWS services
//! that no other part of this program uses. The SDK crates for these services would add minutes to each build.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

/// The time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The AWS CLI. Each request runs the program `aws` once.
#[derive(Clone, Debug)]
pub struct AwsCli {
    pub region: String,
}

/// The reason why a request has no response, to be shown after the text "could not be checked".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AwsError {
    #[error("the AWS CLI is not installed: there is no program `aws`")]
    NotInstalled,
    #[error("the permission {0} is missing")]
    Denied(String),
    /// AWS returned an error for which this type has no other variant. The value is the error code.
    #[error("AWS returned {0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

impl AwsError {
    /// Converts an error of AWS with the error code `code` and the text `message`. `operation` is the name of the
    /// requested operation, or the permission for it.
    pub fn from_code(code: &str, operation: &str, message: &str) -> Self {
        let denied = message.split_once("not authorized to perform: ").map(|(_, rest)| rest);
        match denied.and_then(|rest| rest.split_whitespace().next()) {
            Some(permission) => Self::Denied(permission.to_owned()),
            None if code.starts_with("AccessDenied") || code == "AuthorizationError" => {
                Self::Denied(operation.to_owned())
            }
            None => Self::Refused(code.to_owned()),
        }
    }

    /// Returns whether AWS reports that the requested resource does not exist.
    pub fn is_missing(&self) -> bool {
        let Self::Refused(code) = self else { return false };
        ["NotFound", "NotFoundException", "ResourceNotFoundException"].contains(&code.as_str())
    }
}

/// The response to a request.
pub type Response = Result<Value, AwsError>;

impl AwsCli {
    /// Runs the AWS CLI with `arguments`: a service, an operation and its options. Returns its JSON output. The caller
    /// must choose an operation that changes nothing: this function does not check the operation.
    ///
    /// # Errors
    /// [`AwsError`] if the program is not installed, or the request failed.
    pub async fn run(&self, arguments: &[&str]) -> Response {
        let mut command = Command::new("aws");
        command.args(arguments).args(["--output", "json"]).stdin(Stdio::null()).kill_on_drop(true);
        // Version 1 of the AWS CLI reads the region from `AWS_DEFAULT_REGION`. Without the empty `AWS_PAGER`, version 2
        // would start a pager.
        command.env("AWS_REGION", &self.region).env("AWS_DEFAULT_REGION", &self.region).env("AWS_PAGER", "");
        let output = match tokio::time::timeout(TIMEOUT, command.output()).await {
            Err(_) => return Err(AwsError::Failed("the AWS CLI did not end in 30 seconds".to_owned())),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => return Err(AwsError::NotInstalled),
            Ok(Err(error)) => return Err(AwsError::Failed(format!("the AWS CLI cannot be started: {error}"))),
            Ok(Ok(output)) => output,
        };
        if !output.status.success() {
            return Err(parse_aws_cli_error(&String::from_utf8_lossy(&output.stderr)));
        }
        // Some operations print nothing instead of an empty list.
        let text = if output.stdout.is_empty() { b"{}".as_slice() } else { &output.stdout };
        serde_json::from_slice(text).map_err(|_| AwsError::Failed("the AWS CLI printed no JSON".to_owned()))
    }
}

/// Converts the text that the AWS CLI printed on standard error to an error ("Understanding return codes from the AWS
/// CLI" and the error messages in its user guide).
fn parse_aws_cli_error(stderr: &str) -> AwsError {
    let code =
        stderr.split_once("An error occurred (").and_then(|(_, rest)| rest.split_once(')')).map(|(code, _)| code);
    let Some(code) = code else {
        let line = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("the AWS CLI failed");
        return AwsError::Failed(line.trim().to_owned());
    };
    AwsError::from_code(code, operation_name(stderr).unwrap_or("of this request"), stderr)
}

/// Returns the name of the operation that an error message of the AWS CLI contains, such as `GetAccount`.
fn operation_name(stderr: &str) -> Option<&str> {
    let (_, rest) = stderr.split_once("when calling the ")?;
    rest.split_once(" operation").map(|(operation, _)| operation)
}

/// Returns the elements of the list `name` in `response`.
pub fn list_field<'a>(response: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    response[name].as_array().into_iter().flatten()
}

/// Returns the text `name` of `object`; an empty text if `object` has no such text.
pub fn text_field<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_aws_cli_are_converted_to_reasons_of_findings() {
        for (stderr, expected) in [
            (
                "\nAn error occurred (AccessDeniedException) when calling the GetAccount operation: User: \
                 arn:aws:iam::123456789012:user/mary is not authorized to perform: ses:GetAccount on resource: *\n",
                AwsError::Denied("ses:GetAccount".to_owned()),
            ),
            (
                "\nAn error occurred (AccessDenied) when calling the DescribeStacks operation: Access Denied\n",
                AwsError::Denied("DescribeStacks".to_owned()),
            ),
            (
                "\nAn error occurred (NotFoundException) when calling the GetEmailIdentity operation: Email identity \
                 example.com does not exist.\n",
                AwsError::Refused("NotFoundException".to_owned()),
            ),
            (
                "\nUnable to locate credentials. You can configure credentials by running \"aws configure\".\n",
                AwsError::Failed(
                    "Unable to locate credentials. You can configure credentials by running \"aws configure\"."
                        .to_owned(),
                ),
            ),
            ("", AwsError::Failed("the AWS CLI failed".to_owned())),
        ] {
            assert_eq!(parse_aws_cli_error(stderr), expected);
        }
        assert!(AwsError::Refused("NotFoundException".to_owned()).is_missing());
        assert!(!AwsError::Denied("ses:GetEmailIdentity".to_owned()).is_missing());
    }
}
