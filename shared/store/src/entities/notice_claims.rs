//! The requests for the claims of notices. A notice is a mail to a customer about an event, for example about a
//! declined payment. The mail itself is not stored. The item stores only which worker is sending the notice, and
//! whether the notice was sent, so that the notice is not sent twice.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, TimeDelta, Utc};

use crate::entities::claims::Claim;
use crate::items::keep_attributes;
use crate::keys;
use crate::table::payments_table::Table;
use billing::ClaimToken;
use dynamo::{Instant, Lease, LeaseResult, LeaseTerms, from_item, n, values};
use dynamo::{Item, TableError};
use serde::Deserialize;

/// How long the item of a notice is stored, so that the notice is not sent twice. After this time, the event of the
/// notice cannot arrive again.
pub(crate) const NOTICE_RETENTION: TimeDelta = TimeDelta::days(30);

/// The attributes of the lease of the worker that sends a notice.
const NOTICE_LEASE: Lease = Lease { holder: "NoticeBy", expires: "NoticeLease", is_renewable: false };
/// The attribute with the time at which the notice was sent, or at which a worker decided not to send it.
const SENT_DATE: &str = "SentDate";

/// Returns the attributes of `item`, the item of a notice, that this program stores.
pub(crate) fn check_notice(item: &Item) -> Result<Item, TableError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct NoticeItem {
        #[serde(rename = "NoticeBy")]
        _notice_by: Option<String>,
        #[serde(rename = "NoticeLease")]
        _notice_lease: Option<Instant>,
        #[serde(rename = "SentDate")]
        _sent_date: Option<Instant>,
    }
    from_item::<NoticeItem>(item)?;
    Ok(keep_attributes(item, |name| [NOTICE_LEASE.holder, NOTICE_LEASE.expires, SENT_DATE].contains(&name)))
}

/// The result of claiming a notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeClaimOutcome {
    /// The caller has claimed the notice, and must send it.
    Claimed,
    /// The notice was sent before, or a worker has decided before not to send it.
    AlreadyFinished,
    /// Another worker has claimed the notice until the time `until`.
    ClaimedByOther { until: DateTime<Utc> },
}

impl Table {
    /// Claims the notice of the event `id`, unless it was sent or another worker has leased it. Sends one UpdateItem
    /// request.
    pub async fn claim_notice(&self, id: &str, claim: Claim) -> Result<NoticeClaimOutcome, TableError> {
        let terms = LeaseTerms {
            condition: &format!("attribute_not_exists(#{SENT_DATE})"),
            set: "#TTL = :ttl",
            values: values([(":ttl", n((claim.now + NOTICE_RETENTION).timestamp()))]),
            returned: ReturnValue::None,
        };
        match self.acquire_lease(keys::key_of_notice(id), &NOTICE_LEASE, &claim.holder(), terms).await? {
            LeaseResult::Acquired(_) => Ok(NoticeClaimOutcome::Claimed),
            LeaseResult::Refused(Some(stored)) if stored.contains_key(SENT_DATE) => {
                Ok(NoticeClaimOutcome::AlreadyFinished)
            }
            LeaseResult::Refused(Some(stored)) => {
                Ok(NoticeClaimOutcome::ClaimedByOther { until: NOTICE_LEASE.read_holder_and_expiry(&stored)?.1 })
            }
            LeaseResult::Refused(None) => Ok(NoticeClaimOutcome::ClaimedByOther { until: claim.leased_until }),
        }
    }

    /// Marks the notice of the event `id` as sent at `now`. Writes nothing if another worker has claimed the notice
    /// after the claim with `token`. Sends one UpdateItem request.
    pub async fn finish_notice(&self, id: &str, token: ClaimToken, now: DateTime<Utc>) -> Result<(), TableError> {
        self.set_time_if_leased(keys::key_of_notice(id), &NOTICE_LEASE, &token.0.to_string(), SENT_DATE, now).await
    }

    /// Releases the claim with `token` of the notice of the event `id`, so that another worker can send the notice
    /// immediately. Sends one UpdateItem request.
    pub async fn release_notice(&self, id: &str, token: ClaimToken) -> Result<(), TableError> {
        self.release_lease(keys::key_of_notice(id), &NOTICE_LEASE, &token.0.to_string(), DateTime::UNIX_EPOCH).await
    }
}
