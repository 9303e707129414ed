//! The shipping address of a customer or of an order.

use ::orders::{PlaceId, ShippingAddress};
use billing::Label;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The address that the orders of a customer are shipped to.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ShippingAddress)]
pub struct AddressView {
    /// The name of the recipient.
    name: Label,
    /// The street and house number.
    street: Label,
    /// The postal code.
    postal_code: Label,
    /// The city.
    city: Label,
    /// The merchant's identifier of the country.
    country: PlaceId,
    /// The merchant's identifier of the region. Orders are shipped from a warehouse in this region, if possible.
    region: PlaceId,
}

impl From<ShippingAddress> for AddressView {
    fn from(address: ShippingAddress) -> Self {
        let ShippingAddress { name, street, postal_code, city, country, region } = address;
        Self { name, street, postal_code, city, country, region }
    }
}

impl From<AddressView> for ShippingAddress {
    fn from(address: AddressView) -> Self {
        let AddressView { name, street, postal_code, city, country, region } = address;
        Self { name, street, postal_code, city, country, region }
    }
}
