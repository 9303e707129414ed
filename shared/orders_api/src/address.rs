//! The shipping address of a customer or of an order.

use billing::Label;
use orders::{PhoneNumber, PlaceId, ShippingAddress};
use rest::request_input::{InvalidInput, RequestInput};
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
    /// The second line of the address, such as the apartment or the building; null if there is none.
    line2: Option<Label>,
    /// The postal code.
    postal_code: Label,
    /// The city.
    city: Label,
    /// The state or province; null if the address has none.
    state: Option<Label>,
    /// The merchant's identifier of the country.
    country: PlaceId,
    /// The merchant's identifier of the region. Orders are shipped from a warehouse in this region, if possible.
    region: PlaceId,
    /// The phone number that the carrier may call; null if there is none.
    phone: Option<PhoneNumber>,
}

/// Reads an address with the fields and the checks of the API.
///
/// # Errors
/// A field is missing, unknown or invalid. The error names the field and what is allowed.
pub fn read_address(input: RequestInput) -> Result<ShippingAddress, InvalidInput> {
    input.read::<AddressView>().map(ShippingAddress::from)
}

impl From<ShippingAddress> for AddressView {
    fn from(address: ShippingAddress) -> Self {
        let ShippingAddress { name, street, line2, postal_code, city, state, country, region, phone } = address;
        Self { name, street, line2, postal_code, city, state, country, region, phone }
    }
}

impl From<AddressView> for ShippingAddress {
    fn from(address: AddressView) -> Self {
        let AddressView { name, street, line2, postal_code, city, state, country, region, phone } = address;
        Self { name, street, line2, postal_code, city, state, country, region, phone }
    }
}
