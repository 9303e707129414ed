//! Captures the log events of one test while other tests run in the same process.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
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

/// Log lines in memory, each a JSON object.
#[derive(Clone, Debug, Default)]
pub struct LogLines(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    /// Returns the fields of each log line, such as `message` and `error`.
    pub fn fields_of_lines(&self) -> Vec<Value> {
        let text = self.lock();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice::<Value>(line).expect("a log line in JSON")["fields"].take()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Collects the log lines of the current thread until the returned guard is dropped, like [`capture_logs`].
pub fn capture_log_lines() -> (LogLines, DefaultGuard) {
    let lines = LogLines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    (lines, capture_logs(subscriber))
}
