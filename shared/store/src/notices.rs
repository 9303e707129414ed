//! Notices: who is sending one, and whether it was sent.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use super::{Claim, Table, TableError, keys};
use billing::Token;
use dynamo::{Instant, from_item};
use dynamo::{UpdateAnswer, n, s};

/// So long an event is known to have been told: longer than it is kept anywhere to come again.
const KEPT: TimeDelta = TimeDelta::days(30);

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

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NoticeItem {
    notice_by: Token,
    notice_lease: Instant,
    #[serde(rename = "SentDate")]
    sent_at: Option<Instant>,
}

impl Table {
    /// Claims the notice of the event `id`, unless it was sent or somebody else is sending it. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim_notice(&self, id: &str, claim: Claim) -> Result<NoticeClaimed, TableError> {
        const HOLD: &str = "SET #NoticeBy = :token, #NoticeLease = :lease, #TTL = :ttl";
        const FREE: &str = "attribute_not_exists(#PK) OR (attribute_not_exists(#SentDate) AND #NoticeLease <= :now)";
        let values = [
            (":token", s(claim.token.0)),
            (":lease", s(Instant(claim.leased_until).text())),
            (":now", s(Instant(claim.now).text())),
            (":ttl", n((claim.now + KEPT).timestamp())),
        ];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let update = self.update_of(keys::notice(id), HOLD, FREE, values);
        let UpdateAnswer::Refused(stored) = self.update(update, ReturnValue::None).await? else {
            return Ok(NoticeClaimed::Held);
        };
        let stored = stored.map(|item| from_item::<NoticeItem>(&item)).transpose()?;
        Ok(match stored {
            Some(NoticeItem { sent_at: Some(_), .. }) => NoticeClaimed::Done,
            // Our own claim, by a try whose answer was lost.
            Some(stored) if stored.notice_by == claim.token => NoticeClaimed::Held,
            Some(stored) => NoticeClaimed::HeldElsewhere { until: stored.notice_lease.0 },
            None => NoticeClaimed::HeldElsewhere { until: claim.leased_until },
        })
    }

    /// Marks the notice of the event `id` as sent at `now` by the holder of `token`; nothing if somebody else has taken it over.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn finish_notice(&self, id: &str, token: Token, now: DateTime<Utc>) -> Result<(), TableError> {
        self.end_claim(id, "SET #SentDate = :at", token, now).await
    }

    /// Gives the claim of `token` back: whoever comes next may send it. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn release_notice(&self, id: &str, token: Token) -> Result<(), TableError> {
        self.end_claim(id, "SET #NoticeLease = :at", token, DateTime::UNIX_EPOCH).await
    }

    async fn end_claim(&self, id: &str, update: &str, token: Token, at: DateTime<Utc>) -> Result<(), TableError> {
        let values = [(":at".to_owned(), s(Instant(at).text())), (":token".to_owned(), s(token.0))];
        let update = self.update_of(keys::notice(id), update, "#NoticeBy = :token", values.into());
        self.update(update, ReturnValue::None).await.map(drop)
    }
}
