//! `/customers/{account}`: the shipping address, the representative and the orders of a customer.

use axum::Json;
use axum::extract::State;
use billing::AccountId;
use chrono::{DateTime, Utc};
use orders::{Customer, EmployeeId};
use orders_table::OrderList;
use rest::body::Body;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::parameters::{AccountPath, NoParameters, Path, Query};
use rest::{AccountAction, Caller, OperatorAccess, Problem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::OrdersApi;
use crate::address::AddressView;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;
use crate::fulfilment::order_view::OrderView;
use crate::parameters::OrdersQuery;

/// A customer: an account that has an order or a shipping address.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Customer)]
pub struct CustomerView {
    /// The identifier of the account.
    account: AccountId,
    /// The shipping address; null until it is set. Until then, orders without an address of their own
    /// are backordered.
    address: Option<AddressView>,
    /// The employee who represents the customer; null if there is none.
    representative: Option<EmployeeId>,
    /// When the first order was placed or the first address was set.
    created_at: DateTime<Utc>,
}

/// The request to hand a customer over to a new representative.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Representative)]
pub struct RepresentativeFields {
    /// The employee who will represent the customer. This employee must be a customer representative.
    representative: EmployeeId,
}

impl From<Customer> for CustomerView {
    fn from(customer: Customer) -> Self {
        let Customer { account, representative, address, created_at, .. } = customer;
        Self { account, address: address.map(AddressView::from), representative, created_at }
    }
}

/// Returns the problem response (404) for an account that is not a customer of the order desk.
fn customer_not_found() -> Problem {
    Problem::not_found("there is no such customer: the account has neither an order nor a shipping address")
}

/// Set the shipping address of a customer
///
/// Creates the customer if it does not exist. Within a few minutes after the response, the stock is reserved for the
/// customer's backordered orders, oldest first, as far as it suffices. Orders that already have an address keep
/// it: correct the address of such an order with `PUT /orders/{order}/address`.
#[utoipa::path(
    put,
    path = "/customers/{account}",
    operation_id = "put_customer",
    tag = "customers",
    params(AccountPath, IfMatch),
    request_body = AddressView,
    responses((status = 200, description = "The changed customer", body = CustomerView,
        headers(("ETag" = String, description = "The version of the customer, in double quotes"))))
)]
pub async fn put_customer(
    DeskForCaller(desk): DeskForCaller,
    Path(AccountPath { account }): Path<AccountPath>,
    caller: Caller,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<AddressView>,
) -> Result<WithETag<Json<CustomerView>>, DeskProblem> {
    caller.check_action(AccountAction::Address)?;
    let precondition = |customer: Option<&Customer>| {
        if_match.check_optional_version(customer.map(|customer| customer.version)).map_err(DeskProblem)
    };
    let customer = desk.set_shipping_address_if(&account, body.value.into(), precondition).await?;
    Ok(WithETag(customer.version, Json(CustomerView::from(customer))))
}

/// Get a customer
///
/// Returns the shipping address and the representative. If you send the `ETag` of the response as `If-Match` with a
/// later change, the change is refused if the customer has changed in between.
#[utoipa::path(
    get,
    path = "/customers/{account}",
    operation_id = "get_customer",
    tag = "customers",
    params(AccountPath),
    responses((status = 200, description = "The customer", body = CustomerView,
        headers(("ETag" = String, description = "The version of the customer, in double quotes"))))
)]
pub async fn get_customer(
    State(api): State<OrdersApi>,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<CustomerView>>, DeskProblem> {
    let customer = api.desk.table.get_customer(&account).await?.ok_or_else(customer_not_found)?;
    Ok(WithETag(customer.version, Json(CustomerView::from(customer))))
}

/// Hand a customer over to another representative
///
/// Later orders of the customer are credited to the new representative. Orders that were placed before stay credited to
/// the representative whom the customer had then.
#[utoipa::path(
    put,
    path = "/customers/{account}/representative",
    operation_id = "hand_over_customer",
    tag = "customers",
    params(AccountPath),
    request_body = RepresentativeFields,
    responses((status = 200, description = "The customer with its new representative", body = CustomerView,
        headers(("ETag" = String, description = "The version of the customer, in double quotes"))))
)]
pub async fn hand_over_customer(
    DeskForCaller(desk): DeskForCaller,
    Path(AccountPath { account }): Path<AccountPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
    body: Body<RepresentativeFields>,
) -> Result<WithETag<Json<CustomerView>>, DeskProblem> {
    desk.table.get_customer(&account).await?.ok_or_else(customer_not_found)?;
    let customer = desk.hand_over_customer(&account, &body.value.representative).await?;
    Ok(WithETag(customer.version, Json(CustomerView::from(customer))))
}

/// List the orders of a customer
///
/// Sorted by the time of the payment, oldest first.
#[utoipa::path(
    get,
    path = "/customers/{account}/orders",
    operation_id = "list_customer_orders",
    tag = "customers",
    params(AccountPath, OrdersQuery),
    responses((status = 200, description = "A list page of orders", body = ListView<OrderView>))
)]
pub async fn list_customer_orders(
    State(api): State<OrdersApi>,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<OrderView>>, DeskProblem> {
    let (statuses, days, paging) = query.into_statuses_days_and_paging(OrderList::OfCustomer(&account))?;
    let page = api.desk.table.orders_of_customer(&account, &statuses, days, &paging).await?;
    if page.is_empty() && api.desk.table.get_customer(&account).await?.is_none() {
        return Err(customer_not_found().into());
    }
    Ok(Json(ListView::from_page(page, OrderView::from)?))
}
