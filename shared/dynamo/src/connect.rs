//! Loads the settings of the AWS SDK, and creates a DynamoDB client with them.

use std::time::Duration;

use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;

/// Loads the AWS SDK's settings, with the region and the credentials of this machine.
pub async fn load_sdk_config() -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(aws_request_timeouts())
        // This protection aborts stalled transfers of long response bodies. DynamoDB's response bodies are short, and
        // each try of a request has a time-out.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .load()
        .await
}

/// Creates a client for DynamoDB at `endpoint`; `None` means AWS.
pub fn create_dynamodb_client(sdk: &SdkConfig, endpoint: Option<&str>) -> Client {
    let config = Builder::from(sdk);
    Client::from_conf(match endpoint {
        Some(endpoint) => config.endpoint_url(endpoint).build(),
        None => config.build(),
    })
}

/// Returns the time-outs of every request to AWS. The SDK has no operation, attempt or read time-out by default.
pub fn aws_request_timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(2))
        .operation_attempt_timeout(Duration::from_secs(3))
        .operation_timeout(Duration::from_secs(10))
        .build()
}
