//! Makes it possible to capture the log events of one test while other tests run in the same process.

use std::sync::LazyLock;

use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

/// Two dispatchers that receive no log events, and exist until the process ends. With only one dispatcher, `tracing`
/// would ask only the subscriber of the current thread whether a log statement is enabled.
static DISPATCHERS: LazyLock<[Dispatch; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::default())));

/// Makes `tracing` ask the subscribers of all threads whether a log statement is enabled. Call this function in each
/// test whose log statements another test captures with [`tracing::subscriber::set_default`].
///
/// `tracing` stores the answer when a log statement is executed for the first time. As long as the process has at most
/// one dispatcher, `tracing` asks only the subscriber of the current thread. So a thread without a subscriber could
/// disable the statement for the thread that captures the log events.
pub fn ask_all_log_subscribers() {
    LazyLock::force(&DISPATCHERS);
}
