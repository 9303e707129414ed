//! Follows the engine's stream, as Lambda does on AWS: the same handler, and a journal for a bus.

use std::sync::Arc;
use std::time::Duration;

use delivery::Publisher;
use emulator::Stream;

use super::journal::Journal;
use super::outlet::Outlet;
use super::post::Post;
use crate::Failure;
use crate::terminal::output;

/// So many records are handed to the handler at once.
const BATCH: usize = 500;
/// The stream is looked at this often.
const INTERVAL: Duration = Duration::from_millis(200);
/// After an error, this long nothing is tried.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// Turns the stream of the data folder's table into kept events.
pub struct Follower {
    stream: Stream,
    journal: Arc<Journal>,
    /// What writes to customers of what has happened.
    pub post: Arc<Post>,
    publisher: Publisher<Outlet>,
}

impl Follower {
    /// Keeps what `stream` tells, and hands it on, by `outlet`.
    pub fn new(stream: Stream, outlet: Outlet) -> Self {
        let (journal, post) = (outlet.journal.clone(), outlet.post.clone());
        Self { stream, journal, post, publisher: Publisher::new(outlet) }
    }

    /// Keeps all that the stream has to tell by now.
    ///
    /// # Errors
    /// [`Failure`]: what is not kept is still in the stream.
    pub async fn catch_up(&self) -> Result<(), Failure> {
        let journal = &self.journal;
        loop {
            let batch = self.stream.after(journal.position().as_deref(), BATCH)?;
            let last = batch["Records"].as_array().and_then(|records| records.last());
            let Some(last) = last.and_then(|record| record["dynamodb"]["SequenceNumber"].as_str()) else {
                return Ok(());
            };
            let published = self.publisher.publish(&batch).await;
            let published = published.map_err(|error| Failure::Events { reason: error.to_string() })?;
            if let Some(refused) = published.refused {
                return Err(Failure::Events { reason: refused });
            }
            if published.unreadable > 0 {
                output::tell(
                    "error: a change of the table cannot be read; `dueday events --type record.unreadable` names it",
                );
            }
            journal.keep(self.stream.arn(), last).map_err(|error| Failure::Events { reason: error.to_string() })?;
            // The engine would keep them for good, and its file would grow with every write.
            self.stream.trim(last)?;
        }
    }

    /// Keeps what the stream tells, for as long as the future is not dropped.
    pub async fn follow(&self) {
        let mut told = None;
        loop {
            match self.catch_up().await {
                Ok(()) => {
                    told = None;
                    tokio::time::sleep(INTERVAL).await;
                }
                Err(error) => {
                    let text = error.told();
                    if told.as_ref() != Some(&text) {
                        output::tell(format!("error: {text}"));
                    }
                    told = Some(text);
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        }
    }
}
