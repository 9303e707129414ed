//! The SDK's settings, and a client of DynamoDB.

use std::time::Duration;

use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;

/// The SDK's settings: the region and the credentials that the machine has.
pub async fn sdk() -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts())
        // It watches over long bodies. Ours are short, and each try has its time.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .load()
        .await
}

/// A client of `sdk`, for DynamoDB at `endpoint`; `None` is AWS.
pub fn dynamodb(sdk: &SdkConfig, endpoint: Option<&str>) -> Client {
    let config = Builder::from(sdk);
    Client::from_conf(match endpoint {
        Some(endpoint) => config.endpoint_url(endpoint).build(),
        None => config.build(),
    })
}

/// The SDK has no operation, attempt or read time-out by default.
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(2))
        .operation_attempt_timeout(Duration::from_secs(3))
        .operation_timeout(Duration::from_secs(10))
        .build()
}
