//! Messages of the queue of events, told to customers.

use billing::{CloudEvent, told};

use crate::{NoticeError, Noticed, Notices};

/// Why a message could not be worked on. It comes again.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    #[error("a message is no event")]
    NoEvent,
    #[error(transparent)]
    Notice(#[from] NoticeError),
}

impl TellError {
    /// Whether the same message may be worked on later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Notice(error) if error.is_transient())
    }
}

/// Whether `event`, a CloudEvent in JSON, is one that customers are told of.
pub fn is_told(event: &str) -> bool {
    told(event)
        .and_then(|event| serde_json::from_str::<CloudEvent>(&event).ok())
        .is_some_and(|event| Notices::tells(&event))
}

/// Tells the customer what `event`, a CloudEvent in JSON, says.
///
/// # Errors
/// [`TellError`].
pub async fn tell(notices: &Notices, event: &str) -> Result<Noticed, TellError> {
    let event = told(event).and_then(|event| serde_json::from_str::<CloudEvent>(&event).ok());
    Ok(notices.tell(&event.ok_or(TellError::NoEvent)?).await?)
}
