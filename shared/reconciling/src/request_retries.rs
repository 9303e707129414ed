//! Repeats requests that the gateway throttles (refuses because of too many requests).

use std::time::Duration;

use gateways::GatewayError;

/// The maximum number of retries of a request that the gateway has throttled (refused because of too many requests).
const MAX_RETRIES: u32 = 5;
/// The longest wait before a retry.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The shortest wait before a retry. It is also the wait if the gateway does not return a time to wait.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// Sends a request, and repeats it after a wait while the gateway throttles it.
pub(crate) async fn with_retries<T, F>(send: impl Fn() -> F) -> Result<T, GatewayError>
where
    F: Future<Output = Result<T, GatewayError>>,
{
    let mut retries = 0;
    loop {
        match send().await {
            Err(GatewayError::Throttled { retry_after }) if retries < MAX_RETRIES => {
                retries += 1;
                tokio::time::sleep(retry_after.unwrap_or(SHORTEST_WAIT).clamp(SHORTEST_WAIT, LONGEST_WAIT)).await;
            }
            result => return result,
        }
    }
}
