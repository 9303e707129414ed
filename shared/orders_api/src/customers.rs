//! `/customers/{account}`: where its orders go, and who looks after it.

use ::orders::{Customer, EmployeeId, PlaceId, ShippingAddress, all_days};
use axum::Json;
use axum::extract::State;
use billing::{AccountId, Label};
use chrono::{DateTime, Utc};
use rest::Problem;
use rest::body::Body;
use rest::caller::Operator;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::parameters::{AccountPath, NoParameters, Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::OrdersApi;
use super::orders::OrderView;
use super::parameters::OrdersQuery;
use super::products::FilledView;

/// Where orders go.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ShippingAddress)]
pub struct AddressView {
    /// Who takes them.
    name: Label,
    /// Street and number.
    street: Label,
    postal_code: Label,
    city: Label,
    /// The country, by the merchant's identifier.
    country: PlaceId,
    /// The region, by which a warehouse is chosen.
    region: PlaceId,
}

/// An account, as the order desk knows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Customer)]
pub struct CustomerView {
    /// The account.
    account: AccountId,
    /// Where its orders go; until there is an address they wait.
    address: Option<AddressView>,
    /// Who looks after it; null if nobody does.
    representative: Option<EmployeeId>,
    /// When its first order or its address came.
    created_at: DateTime<Utc>,
}

/// What a new address came to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CustomerWithOrders)]
pub struct ShippedTo {
    #[serde(flatten)]
    #[schema(inline)]
    customer: CustomerView,
    /// What became of its orders that waited.
    orders: FilledView,
}

/// Who is to look after a customer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Representative)]
pub struct RepresentativeFields {
    /// An employee who looks after customers.
    representative: EmployeeId,
}

/// What a handing over came to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HandedOver)]
pub struct HandedOver {
    #[serde(flatten)]
    #[schema(inline)]
    customer: CustomerView,
    /// So many orders that are still to be shipped count for the new representative.
    orders_handed_over: u32,
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

impl From<Customer> for CustomerView {
    fn from(customer: Customer) -> Self {
        let Customer { account, representative, address, created_at, .. } = customer;
        Self { account, address: address.map(AddressView::from), representative, created_at }
    }
}

fn no_customer() -> Problem {
    Problem::not_found("the order desk does not know this customer: it has neither an order nor an address")
}

/// Say where a customer's orders go
///
/// Those that have waited for an address are filled. What was shipped is not changed.
#[utoipa::path(
    put,
    path = "/customers/{account}",
    operation_id = "put_customer",
    tag = "customers",
    params(AccountPath, IfMatch),
    request_body = AddressView,
    responses((status = 200, description = "The customer as it is now", body = ShippedTo,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn put(
    State(api): State<OrdersApi>,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<AddressView>,
) -> Result<WithETag<Json<ShippedTo>>, Problem> {
    let wanted = |customer: Option<&Customer>| if_match.allows_any(customer.map(|customer| customer.version));
    let (customer, filled) = api.desk.ship_to_if(&account, body.value.into(), wanted).await?;
    let version = customer.version;
    Ok(WithETag(version, Json(ShippedTo { customer: customer.into(), orders: filled.into() })))
}

/// Read a customer
///
/// Where its orders go, and who looks after it. Its `ETag` is what `If-Match` takes.
#[utoipa::path(
    get,
    path = "/customers/{account}",
    operation_id = "get_customer",
    tag = "customers",
    params(AccountPath),
    responses((status = 200, description = "The customer", body = CustomerView,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn read(
    State(api): State<OrdersApi>,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<CustomerView>>, Problem> {
    let customer = api.desk.table.customer(&account).await?.ok_or_else(no_customer)?;
    Ok(WithETag(customer.version, Json(CustomerView::from(customer))))
}

/// Hand a customer over
///
/// To another representative, and its orders that are still to be shipped with it.
#[utoipa::path(
    put,
    path = "/customers/{account}/representative",
    operation_id = "hand_over_customer",
    tag = "customers",
    params(AccountPath),
    request_body = RepresentativeFields,
    responses((status = 200, description = "The customer as it is now", body = HandedOver,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn hand_over(
    State(api): State<OrdersApi>,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Operator,
    _: Query<NoParameters>,
    body: Body<RepresentativeFields>,
) -> Result<WithETag<Json<HandedOver>>, Problem> {
    api.desk.table.customer(&account).await?.ok_or_else(no_customer)?;
    let orders_handed_over = api.desk.hand_over(&account, &body.value.representative, all_days()).await?;
    let customer = api.desk.table.customer(&account).await?.ok_or_else(no_customer)?;
    let version = customer.version;
    Ok(WithETag(version, Json(HandedOver { customer: customer.into(), orders_handed_over })))
}

/// List a customer's orders
///
/// The oldest first.
#[utoipa::path(
    get,
    path = "/customers/{account}/orders",
    operation_id = "list_customer_orders",
    tag = "customers",
    params(AccountPath, OrdersQuery),
    responses((status = 200, description = "A page of them", body = ListView<OrderView>))
)]
pub async fn orders(
    State(api): State<OrdersApi>,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<OrderView>>, Problem> {
    let (statuses, days, paging) = query.read()?;
    let page = api.desk.table.orders_of_customer(&account, &statuses, days, &paging).await?;
    if page.is_empty() && api.desk.table.customer(&account).await?.is_none() {
        return Err(no_customer());
    }
    Ok(Json(ListView::of(page, OrderView::from)?))
}
