//! Exponential back-off with jitter before a request is retried, for a limited number of retries.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{AsyncSleep as _, SharedAsyncSleep};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The shortest delay before a request is retried.
const MIN_DELAY: Duration = Duration::from_millis(50);
/// The largest number of retries of a request. All delays together are shorter than four seconds.
const MAX_RETRIES: usize = 5;

/// The delays that remain for the retries of one operation.
#[derive(Debug)]
pub struct Backoff {
    delays: ExponentialBackoff,
    /// The SDK's function that waits for a delay; `None` in a simulation, in which delays take no time.
    sleep: Option<SharedAsyncSleep>,
}

impl Backoff {
    /// Creates the delays of a new operation. [`Backoff::wait`] uses the same timer that `client` uses for its own
    /// retries.
    pub fn new(client: &Client) -> Self {
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        Self { delays: delays.build(), sleep: client.config().sleep_impl() }
    }

    /// Waits before the next retry. Returns `false`, without waiting, if no retry is left.
    pub async fn wait(&mut self) -> bool {
        let Some(delay) = self.delays.next() else { return false };
        if let Some(sleep) = &self.sleep {
            sleep.sleep(delay).await;
        }
        true
    }
}
