//! Card links: the links in mails about owed payments, with which a customer can enter a new card.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Item, Table, TableError, keys};
use billing::{AccountId, SubscriptionId};
use dynamo::{TIME_TO_LIVE, expiry, from_item, key_of, n, to_item};

/// How long a card link is stored: ten years, because in practice no payment is owed for longer.
const CARD_LINK_RETENTION: TimeDelta = TimeDelta::days(3_650);

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

/// Returns the item that this program would store for the card link in `item`, without its TTL.
pub(super) fn card_link_item(item: &Item) -> Result<Item, TableError> {
    let (key, link) = (key_of(item), from_item::<CardLink>(item)?);
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
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry(now, CARD_LINK_RETENTION)));
        self.put(item).await
    }

    /// Returns the card link `id`; `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_card_link(&self, id: Ulid) -> Result<Option<CardLink>, TableError> {
        self.get(keys::key_of_card_link(id)).await?.map(|item| from_item(&item)).transpose()
    }
}
