//! Card links: the links in mails about owed payments, with which a customer can enter a new card.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, SubscriptionId};
use dynamo::{Item, TableError};
use dynamo::{PRESENT, TIME_TO_LIVE, expiry_timestamp, from_item, key_of_item, n, to_item, values};

/// How long a card link is stored after the last time at which its payment was seen to be owed: when the mail was sent, and
/// when the customer opened the link.
const CARD_LINK_RETENTION: TimeDelta = TimeDelta::days(365);

/// The minimum time between two renewals of a card link. So a customer who opens a link several times causes one write.
const RENEWAL_INTERVAL: TimeDelta = TimeDelta::days(1);

/// The owed payment for which a card link was sent. Everyone who knows the id of the link can enter a card for the
/// payment. The id is therefore random, and only the mail contains the id.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CardLink {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    #[serde(rename = "DueDate")]
    pub due_on: NaiveDate,
}

/// A card link in the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredCardLink {
    pub id: Ulid,
    pub link: CardLink,
    /// When the link stops working.
    pub expires_at: DateTime<Utc>,
}

impl StoredCardLink {
    /// Returns whether the expiry of the link must change, because it was opened at `now`: while the payment is owed, the
    /// link is renewed. A link that an earlier version stored for ten years expires after the retention, too.
    fn must_change_expiry(&self, is_owed: bool, now: DateTime<Utc>) -> bool {
        let renewed = now + CARD_LINK_RETENTION;
        self.expires_at > renewed || is_owed && self.expires_at <= renewed - RENEWAL_INTERVAL
    }
}

/// Returns the item that this program would store for the card link in `item`, without its TTL.
pub(crate) fn card_link_item(item: &Item) -> Result<Item, TableError> {
    let (key, link) = (key_of_item(item), from_item::<CardLink>(item)?);
    let id = key.pk.strip_prefix(keys::CARD_LINKS).and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| TableError::unreadable(key, "its key contains no id of a card link"))?;
    let mut expected = to_item(&link);
    expected.extend(keys::key_of_card_link(id).attributes());
    Ok(expected)
}

impl Table {
    /// Stores the card link `id`, which was created at `now`. Sends one PutItem request.
    pub async fn put_card_link(&self, id: Ulid, link: &CardLink, now: DateTime<Utc>) -> Result<(), TableError> {
        let mut item = keys::key_of_card_link(id).attributes();
        item.extend(to_item(link));
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(now, CARD_LINK_RETENTION)));
        self.put(item).await
    }

    /// Returns the card link `id`; `None` if it does not exist, or has expired at `now`. Sends one strongly consistent
    /// GetItem request.
    pub async fn get_card_link(&self, id: Ulid, now: DateTime<Utc>) -> Result<Option<StoredCardLink>, TableError> {
        let Some(item) = self.get(keys::key_of_card_link(id)).await? else { return Ok(None) };
        let expiry = item.get(TIME_TO_LIVE).and_then(|expiry| expiry.as_n().ok()?.parse().ok());
        let expires_at = expiry.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let expires_at = expires_at.ok_or_else(|| TableError::unreadable(key_of_item(&item), "it has no valid TTL"))?;
        let stored = StoredCardLink { id, link: from_item(&item)?, expires_at };
        // DynamoDB deletes an expired item only after some days.
        Ok(Some(stored).filter(|stored| now < stored.expires_at))
    }

    /// Renews the card link `stored`, which was opened at `now`, if its payment is still owed. So the link expires when the
    /// payment has not been owed for a year. Sends at most one UpdateItem request a day; none if the payment is not owed.
    pub async fn renew_card_link(
        &self,
        stored: &StoredCardLink,
        is_owed: bool,
        now: DateTime<Utc>,
    ) -> Result<(), TableError> {
        if !stored.must_change_expiry(is_owed, now) {
            return Ok(());
        }
        let values = values([(":expiry", n(expiry_timestamp(now, CARD_LINK_RETENTION)))]);
        let key = keys::key_of_card_link(stored.id);
        let update = self.build_update(key, "SET #TTL = :expiry", PRESENT, values);
        // If the condition fails, the link was removed with its account at the same time.
        self.send_update(update, ReturnValue::None).await.map(drop)
    }
}
