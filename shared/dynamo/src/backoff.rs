//! Waiting before a request is made again: exponential, with jitter, a limited number of times.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{AsyncSleep as _, SharedAsyncSleep};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The shortest wait.
const MIN_DELAY: Duration = Duration::from_millis(50);
/// A request is made again at most this many times: the waits add up to less than four seconds.
const MAX_RETRIES: usize = 5;

/// The waits that are left to one operation.
#[derive(Debug)]
pub struct Backoff {
    delays: ExponentialBackoff,
    /// The SDK's own: on AWS the runtime's timer, in a simulation none.
    sleep: Option<SharedAsyncSleep>,
}

impl Backoff {
    /// All of them, slept as `client` sleeps between its retries.
    pub fn new(client: &Client) -> Self {
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        Self { delays: delays.build(), sleep: client.config().sleep_impl() }
    }

    /// Waits once more; `false` when no wait is left.
    pub async fn wait(&mut self) -> bool {
        let Some(delay) = self.delays.next() else { return false };
        if let Some(sleep) = &self.sleep {
            sleep.sleep(delay).await;
        }
        true
    }
}
