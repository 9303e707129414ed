//! Customers of the order desk: accounts of Dueday, with their shipping address and their representative.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::ids::{EmployeeId, PlaceId};
use crate::people::phone_number::PhoneNumber;
use billing::{AccountId, Label};

/// The address that the orders of a customer are shipped to.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShippingAddress {
    pub name: Label,
    pub street: Label,
    /// The second line, such as the apartment or the building.
    pub line2: Option<Label>,
    pub postal_code: Label,
    pub city: Label,
    /// The state or province.
    pub state: Option<Label>,
    pub country: PlaceId,
    /// The region of the customer. Orders are shipped from a warehouse in this region, if possible.
    pub region: PlaceId,
    /// The phone number that the carrier may call.
    pub phone: Option<PhoneNumber>,
}

/// A customer of the order desk: a Dueday account that has an order or a shipping address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Customer {
    pub account: AccountId,
    /// The employee who looks after the customer and to whom the orders of the customer are credited. `None` if the
    /// company had no customer representative when the customer was created. Handing over the customer sets a
    /// representative.
    pub representative: Option<EmployeeId>,
    /// The shipping address; `None` until an address is set. Until then, orders that have no address of their own are
    /// backordered.
    pub address: Option<ShippingAddress>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl Customer {
    /// Creates a customer without a shipping address, created at `now`.
    pub fn new(account: AccountId, representative: Option<EmployeeId>, now: DateTime<Utc>) -> Self {
        Self { account, representative, address: None, created_at: now, version: 1 }
    }
}
