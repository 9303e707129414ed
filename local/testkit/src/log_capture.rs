//! Captures the log events of one test while other tests run in the same process.

use std::sync::LazyLock;

use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Subscriber};

/// Two dispatchers that receive no log events, and exist until the process ends. With only one dispatcher, `tracing`
/// would ask only the subscriber of the current thread whether a log statement is enabled.
static DISPATCHERS: LazyLock<[Dispatch; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::default())));

/// Sends the log events of the current thread to `subscriber` until the returned guard is dropped.
///
/// Unlike with [`tracing::subscriber::set_default`], the subscriber also receives the log events if another test executes
/// one of the log statements first. `tracing` stores at the first execution whether a log statement is enabled. As long
/// as the process has at most one dispatcher, `tracing` asks only the subscriber of the current thread. So the thread of
/// the other test, which has no subscriber, would disable the statement for all threads.
pub fn capture_logs(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    LazyLock::force(&DISPATCHERS);
    tracing::subscriber::set_default(subscriber)
}
