//! Leases: one holder (a worker or an execution) at a time works on an item, until it releases the lease or the lease
//! expires.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, Utc};

use crate::{DynamoTable, Instant, Item, Key, TableError, UpdateItemOutcome, Values, key_of_item, s, values};

/// A kind of lease: the two attributes of an item that store the holder and the time at which the lease expires.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// The name of the attribute with the holder's token.
    pub holder: &'static str,
    /// The name of the attribute with the time at which the lease expires.
    pub expires: &'static str,
    /// Whether a holder may acquire the lease again with its token, to extend the lease. If `false`, every acquisition
    /// uses a new token.
    pub is_renewable: bool,
}

/// A worker that acquires a lease, the time of the acquisition, and the time at which the lease will expire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseHolder {
    /// The text that identifies the holder. By this text, the holder recognizes its own lease.
    pub token: String,
    /// The time of the acquisition.
    pub now: DateTime<Utc>,
    /// The time at which the lease will expire.
    pub until: DateTime<Utc>,
}

/// The conditions and assignments that the caller adds to the update that acquires a lease.
#[derive(Debug)]
pub struct LeaseTerms<'a> {
    /// The caller's condition expression on the item; empty if the caller adds no condition.
    pub condition: &'a str,
    /// The assignments that the caller adds to the SET clause; empty if the caller adds none.
    pub set: &'a str,
    /// The values of the placeholders in `condition` and `set`.
    pub values: Values,
    /// The attributes that the update returns if the lease was acquired.
    pub returned: ReturnValue,
}

/// The result of trying to acquire a lease.
#[derive(Debug)]
pub enum LeaseResult {
    /// The lease was acquired. Contains the attributes that [`LeaseTerms::returned`] requests.
    Acquired(Item),
    /// The condition of the update failed, for example because another holder has the lease. Contains the stored item,
    /// or `None` if the item does not exist.
    Refused(Option<Item>),
}

impl Lease {
    /// Returns a condition expression that is true if the lease is available. A lease is available if it was never
    /// acquired, if it has expired, or if it is renewable and the same holder has it.
    fn availability_condition(&self) -> String {
        let Self { holder, expires, is_renewable } = self;
        let is_own_lease = if *is_renewable { format!(" OR #{holder} = :token") } else { String::new() };
        format!("attribute_not_exists(#{expires}) OR #{expires} <= :now{is_own_lease}")
    }

    /// Returns the token of the lease's holder that is stored in `item`; `None` if there is no holder.
    fn read_holder_token<'a>(&self, item: &'a Item) -> Option<&'a str> {
        item.get(self.holder)?.as_s().ok().map(String::as_str)
    }

    /// Reads from `item` the token of the holder and the time at which the lease expires. Fails with
    /// [`TableError::Unreadable`] if one of the two attributes is missing.
    pub fn read_holder_and_expiry(&self, item: &Item) -> Result<(String, DateTime<Utc>), TableError> {
        let missing =
            |name: &str| TableError::unreadable(key_of_item(item), format!("its lease attribute {name} is missing"));
        let token = self.read_holder_token(item).ok_or_else(|| missing(self.holder))?;
        let expires = item.get(self.expires).and_then(|at| at.as_s().ok()?.parse().ok());
        Ok((token.to_owned(), expires.ok_or_else(|| missing(self.expires))?))
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Acquires `lease` on the item `key` for `holder`, if the lease is available and the condition of `terms` is true.
    /// Sends one UpdateItem request, without reading the item first.
    pub async fn acquire_lease(
        &self,
        key: Key,
        lease: &Lease,
        holder: &LeaseHolder,
        mut terms: LeaseTerms<'_>,
    ) -> Result<LeaseResult, TableError> {
        let is_available = lease.availability_condition();
        let condition = match terms.condition {
            "" => is_available,
            condition => format!("{condition} AND ({is_available})"),
        };
        terms.values.insert(":now".to_owned(), s(Instant(holder.now).to_text()));
        self.acquire_lease_if(key, lease, holder, LeaseTerms { condition: &condition, ..terms }).await
    }

    /// Acquires `lease` on the item `key` for `holder` if the condition of `terms` is true, even if another holder has
    /// the lease. Sends one UpdateItem request, without reading the item first.
    pub async fn acquire_lease_if(
        &self,
        key: Key,
        lease: &Lease,
        holder: &LeaseHolder,
        terms: LeaseTerms<'_>,
    ) -> Result<LeaseResult, TableError> {
        let LeaseTerms { condition, set, mut values, returned } = terms;
        let comma = if set.is_empty() { "" } else { ", " };
        let update = format!("SET #{} = :token, #{} = :lease{comma}{set}", lease.holder, lease.expires);
        values.insert(":token".to_owned(), s(&holder.token));
        values.insert(":lease".to_owned(), s(Instant(holder.until).to_text()));
        match self.send_update(self.build_update(key, &update, condition, values), returned).await? {
            UpdateItemOutcome::Updated(item) => Ok(LeaseResult::Acquired(item)),
            // The SDK has retried the update: an earlier try succeeded, but its response was lost.
            UpdateItemOutcome::ConditionFailed(Some(item)) if lease.read_holder_token(&item) == Some(&holder.token) => {
                Ok(LeaseResult::Acquired(item))
            }
            UpdateItemOutcome::ConditionFailed(stored) => Ok(LeaseResult::Refused(stored)),
        }
    }

    /// Releases `lease` on the item `key` if its holder has `token`. Sets the end of the lease to `at`, which is now or
    /// in the past. Writes nothing if another holder has acquired the lease. Sends one UpdateItem request.
    pub async fn release_lease(
        &self,
        key: Key,
        lease: &Lease,
        token: &str,
        at: DateTime<Utc>,
    ) -> Result<(), TableError> {
        self.set_time_if_leased(key, lease, token, lease.expires, at).await
    }

    /// Sets `attribute` of the item `key` to the time `at` if the holder of `lease` has `token`. Writes nothing if
    /// another holder has acquired the lease. Sends one UpdateItem request.
    pub async fn set_time_if_leased(
        &self,
        key: Key,
        lease: &Lease,
        token: &str,
        attribute: &str,
        at: DateTime<Utc>,
    ) -> Result<(), TableError> {
        let (set, is_own_lease) = (format!("SET #{attribute} = :at"), format!("#{} = :token", lease.holder));
        let values = values([(":at", s(Instant(at).to_text())), (":token", s(token))]);
        self.send_update(self.build_update(key, &set, &is_own_lease, values), ReturnValue::None).await.map(drop)
    }
}
