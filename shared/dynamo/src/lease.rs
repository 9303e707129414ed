//! Leases: one holder at a time works on an item, until it is done or the lease expires.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, Utc};

use crate::{Dynamo, Instant, Item, Key, TableError, UpdateAnswer, Values, key_of, s, values};

/// A kind of lease: the attributes of an item that say who works on it, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// The attribute of the holder's token.
    pub holder: &'static str,
    /// The attribute of the instant at which the lease expires.
    pub expires: &'static str,
    /// Whether its holder may take it again, and so keep it longer. A lease that is taken once only has a new token each time.
    pub is_renewable: bool,
}

/// Who takes a lease, when, and until when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// By which a holder recognizes its own lease.
    pub token: String,
    pub now: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// What the update that takes a lease requires and writes besides the lease.
#[derive(Debug)]
pub struct Terms<'a> {
    /// What must be true of the item; none if it is empty.
    pub condition: &'a str,
    /// Further assignments of the SET clause; none if it is empty.
    pub set: &'a str,
    /// The values of both.
    pub values: Values,
    /// What the update returns if it took effect.
    pub returned: ReturnValue,
}

/// The result of taking a lease.
#[derive(Debug)]
pub enum Leased {
    /// The lease is ours: the item, as far as [`Terms::returned`] asked for it.
    Held(Item),
    /// It is not: the stored item, `None` if there is none.
    Refused(Option<Item>),
}

impl Lease {
    /// The condition that nobody holds it: it was never taken, it has expired, or it is the holder's own.
    fn is_available(&self) -> String {
        let Self { holder, expires, is_renewable } = self;
        let own = if *is_renewable { format!(" OR #{holder} = :token") } else { String::new() };
        format!("attribute_not_exists(#{expires}) OR #{expires} <= :now{own}")
    }

    fn token<'a>(&self, item: &'a Item) -> Option<&'a str> {
        item.get(self.holder)?.as_s().ok().map(String::as_str)
    }

    /// The token of the holder in `item`, and when the lease expires.
    ///
    /// # Errors
    /// [`TableError::Unreadable`].
    pub fn read(&self, item: &Item) -> Result<(String, DateTime<Utc>), TableError> {
        let missing = |name: &str| TableError::unreadable(key_of(item), format!("its attribute {name} is no lease's"));
        let token = self.token(item).ok_or_else(|| missing(self.holder))?;
        let expires = item.get(self.expires).and_then(|at| at.as_s().ok()?.parse().ok());
        Ok((token.to_owned(), expires.ok_or_else(|| missing(self.expires))?))
    }
}

impl<S> Dynamo<S> {
    /// Takes `lease` of the item `key` for `holder`, if it is available and the condition of `terms` is true. UpdateItem,
    /// without a read before it.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn take_lease(
        &self,
        key: Key,
        lease: &Lease,
        holder: &Holder,
        mut terms: Terms<'_>,
    ) -> Result<Leased, TableError> {
        let available = lease.is_available();
        let condition = match terms.condition {
            "" => available,
            condition => format!("{condition} AND ({available})"),
        };
        terms.values.insert(":now".to_owned(), s(Instant(holder.now).text()));
        self.claim_lease(key, lease, holder, Terms { condition: &condition, ..terms }).await
    }

    /// Takes `lease` of the item `key` for `holder` on the condition of `terms` alone. UpdateItem, without a read before it.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn claim_lease(
        &self,
        key: Key,
        lease: &Lease,
        holder: &Holder,
        terms: Terms<'_>,
    ) -> Result<Leased, TableError> {
        let Terms { condition, set, mut values, returned } = terms;
        let comma = if set.is_empty() { "" } else { ", " };
        let update = format!("SET #{} = :token, #{} = :lease{comma}{set}", lease.holder, lease.expires);
        values.insert(":token".to_owned(), s(&holder.token));
        values.insert(":lease".to_owned(), s(Instant(holder.until).text()));
        match self.update(self.update_of(key, &update, condition, values), returned).await? {
            UpdateAnswer::Done(item) => Ok(Leased::Held(item)),
            // An earlier try of this update took effect, and its response was lost.
            UpdateAnswer::Refused(Some(item)) if lease.token(&item) == Some(&holder.token) => Ok(Leased::Held(item)),
            UpdateAnswer::Refused(stored) => Ok(Leased::Refused(stored)),
        }
    }

    /// Releases `lease` of the item `key` if `token` holds it: it expires at `at`. UpdateItem.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn release_lease(
        &self,
        key: Key,
        lease: &Lease,
        token: &str,
        at: DateTime<Utc>,
    ) -> Result<(), TableError> {
        self.mark_leased(key, lease, token, lease.expires, at).await
    }

    /// Sets `attribute` of the item `key` to `at` if `token` holds `lease`; writes nothing if another holder has taken it.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn mark_leased(
        &self,
        key: Key,
        lease: &Lease,
        token: &str,
        attribute: &str,
        at: DateTime<Utc>,
    ) -> Result<(), TableError> {
        let (set, is_ours) = (format!("SET #{attribute} = :at"), format!("#{} = :token", lease.holder));
        let values = values([(":at", s(Instant(at).text())), (":token", s(token))]);
        self.update(self.update_of(key, &set, &is_ours, values), ReturnValue::None).await.map(drop)
    }
}
