//! Operations that a test suspends after some steps, so that another operation is made in the middle of them.

use std::task::Poll;

/// The largest number of steps of an operation.
const MAX_STEPS: usize = 1_000;

/// Polls `operation` up to `steps` times. Returns its result if it has ended.
///
/// # Panics
/// `steps` is so large that the operation should have ended at an earlier call.
pub async fn poll_steps<F: Future + Unpin>(operation: &mut F, steps: usize) -> Option<F::Output> {
    assert!(steps < MAX_STEPS, "the operation does not end");
    for _ in 0..steps {
        // Tokio limits the number of operations that a task makes before it returns to the runtime. Without this yield, an
        // operation would make no progress once the test has reached the limit, however often it is polled.
        tokio::task::yield_now().await;
        if let Poll::Ready(result) = futures::poll!(&mut *operation) {
            return Some(result);
        }
    }
    None
}
