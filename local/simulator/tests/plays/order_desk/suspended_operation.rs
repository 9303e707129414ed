//! Suspends an operation after some steps, so that a test can make another operation before the first operation
//! continues.

use std::task::Poll;

/// The limit on the steps of an operation, so that a test fails if an operation never ends.
const MAX_STEPS: usize = 1_000;

/// Polls `operation` up to `steps` times. Returns the result of the operation; `None` if the operation has not ended
/// yet.
///
/// # Panics
/// If `steps` is 1,000 or more. The tests increase `steps` until the operation ends, so it would probably never end.
pub async fn poll_steps<F: Future + Unpin>(operation: &mut F, steps: usize) -> Option<F::Output> {
    assert!(steps < MAX_STEPS, "the operation does not end");
    for _ in 0..steps {
        // Tokio limits how much a task may do before it yields to the runtime. Once the task of this test has reached
        // the limit, `operation` makes no progress, however often it is polled. So yield before each poll.
        tokio::task::yield_now().await;
        if let Poll::Ready(result) = futures::poll!(&mut *operation) {
            return Some(result);
        }
    }
    None
}
