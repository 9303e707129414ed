//! Reads the numbers of messages in the queues of a stack, with the AWS CLI.

use api::DeployedParts;
use days::{QUEUE_OF_HEARTBEATS, QueueState, SQS_ATTRIBUTES};
use futures::future::join_all;

use super::aws_cli::AwsCli;
use super::check_result::DoctorCheck;
use super::stack::{self, RESOURCES_CHECK};
use crate::Failure;
use crate::machine::open_table::load_sdk_config_with_credentials;

/// The queues of a stack, or the reason why the stack or its resources could not be read.
pub type StackQueues = Result<Vec<QueueState>, String>;

/// Returns the parts of a stack, and its queues, except for [`QUEUE_OF_HEARTBEATS`]. `name` is the name of the stack; if
/// it is `None`, the stack with the table `table` is searched. A stack that cannot be read counts as a stack with all
/// parts.
///
/// # Errors
/// If the AWS region or the AWS credentials are missing.
pub async fn read_stack_queues(table: &str, name: Option<&str>) -> Result<(DeployedParts, StackQueues), Failure> {
    let sdk = load_sdk_config_with_credentials().await?;
    let aws = AwsCli { region: sdk.region().map(ToString::to_string).unwrap_or_default() };
    let (found, findings) = stack::find_stack(&aws, name, table).await;
    let Some(stack) = found else {
        return Ok((DeployedParts::default(), Err(reason_for_unknown_queues(&findings, |_| true))));
    };
    let parts = stack.parts();
    let queues: Vec<_> = stack.queues.iter().filter(|(name, _)| *name != QUEUE_OF_HEARTBEATS).collect();
    if queues.is_empty() && parts == DeployedParts::Full {
        return Ok((parts, Err(reason_for_unknown_queues(&findings, |finding| finding.check == RESOURCES_CHECK))));
    }
    Ok((parts, Ok(join_all(queues.into_iter().map(|(name, url)| read_queue_state(&aws, name, url))).await)))
}

/// Returns the reason why no queue is known: the text of the first check result that is not good and that `is_wanted`
/// accepts.
fn reason_for_unknown_queues(findings: &[DoctorCheck], is_wanted: impl Fn(&DoctorCheck) -> bool) -> String {
    let finding = findings.iter().find(|finding| !finding.is_good() && is_wanted(finding));
    finding.map_or("the stack has no queues".to_owned(), |finding| finding.detail().to_owned())
}

/// Reads the state of the queue `name` with the URL `url`.
async fn read_queue_state(aws: &AwsCli, name: &str, url: &str) -> QueueState {
    let mut arguments = vec!["sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names"];
    arguments.extend(SQS_ATTRIBUTES);
    let response = aws.run(&arguments).await.map_err(|error| error.to_string());
    let state = response.and_then(|response| {
        QueueState::from_sqs_attributes(name, |attribute| response["Attributes"][attribute].as_str())
    });
    state.unwrap_or_else(|error| QueueState { read_error: Some(error), ..QueueState::unknown(name.to_owned()) })
}
