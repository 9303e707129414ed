//! Reads the numbers of messages in the queues of the deployment from Amazon SQS.

use api::QueueStateReader;
use async_trait::async_trait;
use aws_errors::AwsRequestError;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use days::{QueueState, SQS_ATTRIBUTES};
use futures::future::join_all;
use outbound::QueueError;

/// The queues of the deployment, in Amazon SQS.
#[derive(Debug)]
pub struct SqsQueues {
    client: Client,
    urls: QueueUrls,
}

/// The name and the URL of each queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueUrls(Vec<(String, String)>);

impl QueueUrls {
    /// Parses a text such as `Deliveries=https://sqs/1,Notices=https://sqs/2`. Blank entries are ignored:
    /// `template.yaml` leaves an entry blank if the deployment does not have the queue.
    ///
    /// # Errors
    /// An error message, if an entry has no name or no URL.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entry = |entry: &str| match entry.split_once('=') {
            Some((name, url)) if !name.is_empty() && !url.is_empty() => Ok((name.to_owned(), url.to_owned())),
            _ => Err(format!("must contain NAME=URL for each queue, not {entry:?}")),
        };
        text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(entry).collect::<Result<_, _>>().map(Self)
    }
}

impl SqsQueues {
    /// Creates a reader of the queues at `urls`. Makes no request.
    pub fn new(client: Client, urls: QueueUrls) -> Self {
        Self { client, urls }
    }

    /// Reads the state of the queue `name` at `url`. If the queue cannot be read, logs the error and returns an unknown
    /// state.
    async fn read_if_possible(&self, name: &str, url: &str) -> QueueState {
        self.read_queue(name, url).await.unwrap_or_else(|error| {
            tracing::error!(%error, error_type = "Queue", "a queue could not be read");
            QueueState::unknown(name.to_owned())
        })
    }

    /// Reads the state of the queue `name` at `url`. Sends one GetQueueAttributes request.
    async fn read_queue(&self, name: &str, url: &str) -> Result<QueueState, QueueError> {
        let names = SQS_ATTRIBUTES.into_iter().map(QueueAttributeName::from).collect();
        let response = self.client.get_queue_attributes().queue_url(url).set_attribute_names(Some(names)).send().await;
        let response = response.map_err(|error| QueueError(format!("{name}: {}", AwsRequestError::new(&error))))?;
        let attributes = response.attributes.unwrap_or_default();
        let attribute = |name: &str| attributes.get(&QueueAttributeName::from(name)).map(String::as_str);
        QueueState::from_sqs_attributes(name, attribute).map_err(|error| QueueError(format!("{name}: {error}")))
    }
}

#[async_trait]
impl QueueStateReader for SqsQueues {
    async fn read_queue_states(&self) -> Vec<QueueState> {
        join_all(self.urls.0.iter().map(|(name, url)| self.read_if_possible(name, url))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_urls_are_parsed_with_their_names() {
        let queues = |all: &[(&str, &str)]| {
            Ok(QueueUrls(all.iter().map(|(name, url)| ((*name).to_owned(), (*url).to_owned())).collect()))
        };
        for (text, expected) in [
            ("", queues(&[])),
            ("Paid=https://sqs/1,", queues(&[("Paid", "https://sqs/1")])),
            ("Paid=https://sqs/1?a=b, Notices=x", queues(&[("Paid", "https://sqs/1?a=b"), ("Notices", "x")])),
            ("Paid", Err("must contain NAME=URL for each queue, not \"Paid\"".to_owned())),
            ("=https://sqs/1", Err("must contain NAME=URL for each queue, not \"=https://sqs/1\"".to_owned())),
        ] {
            assert_eq!(QueueUrls::parse(text), expected, "{text}");
        }
    }
}
