//! Reads the numbers of messages in the queues of a stack, with the AWS CLI.

use api::{QueueState, SQS_ATTRIBUTES};
use futures::future::join_all;

use super::aws_cli::{AwsCli, Response};
use super::finding::Finding;
use super::stack;
use crate::Failure;
use crate::machine::open_table::signed_in_sdk;

/// The queues of a stack, or the reason why the stack or its resources could not be read.
pub type StackQueues = Result<Vec<QueueState>, String>;

/// Returns the queues of the stack with the table `table`. `name` is the name of the stack; if it is `None`, the stack is
/// searched. A queue that could not be read has an unknown state.
///
/// # Errors
/// If no region or no credentials of AWS are known.
pub async fn read_queues(table: &str, name: Option<&str>) -> Result<StackQueues, Failure> {
    let sdk = signed_in_sdk().await?;
    let aws = AwsCli { region: sdk.region().map(ToString::to_string).unwrap_or_default() };
    let (found, findings) = stack::find(&aws, name, table).await;
    let queues = match found {
        Some(stack) if !stack.queues.is_empty() => stack.queues,
        _ => return Ok(Err(reason(&findings))),
    };
    Ok(Ok(join_all(queues.iter().map(|(name, url)| read_queue(&aws, name, url))).await))
}

/// Returns why the queues are not known: the first of `findings` that is not good.
fn reason(findings: &[Finding]) -> String {
    let finding = findings.iter().find(|finding| !finding.is_good());
    finding.map_or("the stack has no queues".to_owned(), |finding| finding.detail().to_owned())
}

async fn read_queue(aws: &AwsCli, name: &str, url: &str) -> QueueState {
    let mut arguments = vec!["sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names"];
    arguments.extend(SQS_ATTRIBUTES);
    state(name, &aws.run(&arguments).await)
}

fn state(name: &str, response: &Response) -> QueueState {
    let unknown = || QueueState::unknown(name.to_owned());
    response.as_ref().map_or_else(
        |_| unknown(),
        |response| {
            let attribute = |attribute: &str| response["Attributes"][attribute].as_str();
            QueueState::from_sqs_attributes(name, attribute).unwrap_or_else(|_| unknown())
        },
    )
}
