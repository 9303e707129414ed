//! Customers: Dueday's accounts, as the order desk knows them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{EmployeeId, PlaceId};
use billing::{AccountId, Label};
use dynamo::shard_of;

/// Where orders go.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShippingAddress {
    pub name: Label,
    pub street: Label,
    pub postal_code: Label,
    pub city: Label,
    pub country: PlaceId,
    /// By which a warehouse is chosen.
    pub region: PlaceId,
}

/// A customer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Customer {
    pub account: AccountId,
    /// Who is credited with what it orders; nobody, if there was nobody to look after it.
    pub representative: Option<EmployeeId>,
    /// Until there is one, its orders wait.
    pub address: Option<ShippingAddress>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl Customer {
    /// One whose first order comes at `now`.
    pub fn new(account: AccountId, representative: Option<EmployeeId>, now: DateTime<Utc>) -> Self {
        Self { account, representative, address: None, created_at: now, version: 1 }
    }
}

/// Who of `representatives` looks after a new customer: they are spread evenly.
pub fn representative_for<'a>(account: &AccountId, representatives: &'a [EmployeeId]) -> Option<&'a EmployeeId> {
    let count = u32::try_from(representatives.len()).unwrap_or(u32::MAX);
    representatives.get(shard_of(account.as_str(), count) as usize)
}
