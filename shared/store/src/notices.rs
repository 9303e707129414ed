//! Notices: who is sending one, and whether it was sent.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Claim, Table, TableError, keys};
use billing::Token;
use dynamo::{Lease, Leased, Terms, n, values};

/// How long a sent notice is remembered, so that it is not sent twice: longer than its event can arrive again.
const KEPT: TimeDelta = TimeDelta::days(30);

/// Held while a notice is sent. A notice that was sent is not claimed again.
const LEASE: Lease = Lease { holder: "NoticeBy", expires: "NoticeLease", is_renewable: false };
/// Present once the notice was sent.
const SENT_DATE: &str = "SentDate";

/// What claiming a notice came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeClaimed {
    /// It is ours to send.
    Held,
    /// It was sent, or is not to be.
    Done,
    HeldElsewhere {
        until: DateTime<Utc>,
    },
}

impl Table {
    /// Claims the notice of the event `id`, unless it was sent or somebody else is sending it. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim_notice(&self, id: &str, claim: Claim) -> Result<NoticeClaimed, TableError> {
        let terms = Terms {
            condition: &format!("attribute_not_exists(#{SENT_DATE})"),
            set: "#TTL = :ttl",
            values: values([(":ttl", n((claim.now + KEPT).timestamp()))]),
            returned: ReturnValue::None,
        };
        match self.take_lease(keys::notice(id), &LEASE, &claim.holder(), terms).await? {
            Leased::Held(_) => Ok(NoticeClaimed::Held),
            Leased::Refused(Some(stored)) if stored.contains_key(SENT_DATE) => Ok(NoticeClaimed::Done),
            Leased::Refused(Some(stored)) => Ok(NoticeClaimed::HeldElsewhere { until: LEASE.read(&stored)?.1 }),
            Leased::Refused(None) => Ok(NoticeClaimed::HeldElsewhere { until: claim.leased_until }),
        }
    }

    /// Marks the notice of the event `id` as sent at `now` by the holder of `token`; nothing if somebody else has taken it over.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn finish_notice(&self, id: &str, token: Token, now: DateTime<Utc>) -> Result<(), TableError> {
        self.mark_leased(keys::notice(id), &LEASE, &token.0.to_string(), SENT_DATE, now).await
    }

    /// Gives the claim of `token` back: the next worker may send the notice at once. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn release_notice(&self, id: &str, token: Token) -> Result<(), TableError> {
        self.release_lease(keys::notice(id), &LEASE, &token.0.to_string(), DateTime::UNIX_EPOCH).await
    }
}
