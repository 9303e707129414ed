//! The HTTP API of the order desk: orders, customers, products, SKUs, warehouses, employees and the company, with one file for each
//! resource. The crate `rest` has the code that this API shares with the HTTP API for subscriptions and payments.

mod address;
mod desk_for_caller;
mod desk_problem;
mod fulfilment;
mod goods;
mod openapi;
mod parameters;
mod people;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use clock::Clock;
use orders_desk::OrderDesk;
use rest::RequestTime;
use store::Table;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use address::read_address;
pub use desk_for_caller::StoredPayments;
pub use fulfilment::packing_slips::SlipPrinter;
pub use openapi::openapi_document;

/// The state that all routes share: the order desk, the payments table, the merchant's name and the clock.
#[derive(Clone, Debug)]
pub struct OrdersApi {
    desk: OrderDesk,
    payments: Table,
    merchant: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl FromRef<OrdersApi> for RequestTime {
    fn from_ref(api: &OrdersApi) -> Self {
        let at = api.clock.now();
        Self { at, today: at.date_naive() }
    }
}

impl OrdersApi {
    /// Creates the API of `desk`. The changes of the requests are logged in the table `payments`. Packing slips show the name
    /// `merchant`.
    pub fn new(desk: OrderDesk, payments: Table, merchant: &str, clock: Arc<dyn Clock>) -> Self {
        Self { desk, payments, merchant: merchant.into(), clock }
    }

    /// Returns the printer of packing slips.
    fn slip_printer(&self) -> SlipPrinter<'_> {
        SlipPrinter { orders_table: &self.desk.table, payments: &self.payments, merchant: &self.merchant }
    }

    /// Returns the routes. The server must authenticate each request: it adds a [`rest::Caller`] to the extensions of
    /// the request, and a [`rest::ConfidentialAccess`] if the caller may read confidential data.
    pub fn routes(self) -> Router {
        let (routes, _) = all_orders_api_routes().split_for_parts();
        routes.with_state(self)
    }

    /// Returns the routes, with a problem response for unknown paths.
    pub fn router(self) -> Router {
        rest::complete_router(self.routes())
    }
}

/// Returns all routes with their OpenAPI descriptions.
fn all_orders_api_routes() -> OpenApiRouter<OrdersApi> {
    OpenApiRouter::new()
        .routes(routes!(fulfilment::orders::list_orders))
        .routes(routes!(fulfilment::orders::get_order_ranking))
        .routes(routes!(fulfilment::orders::get_order))
        .routes(routes!(fulfilment::advance_orders::advance_orders))
        .routes(routes!(fulfilment::orders::advance_order))
        .routes(routes!(fulfilment::orders::correct_order_address))
        .routes(routes!(fulfilment::orders::change_order_lines))
        .routes(routes!(fulfilment::follow_ups::split_order))
        .routes(routes!(fulfilment::follow_ups::replace_order))
        .routes(routes!(people::customers::put_customer, people::customers::get_customer))
        .routes(routes!(people::customers::hand_over_customer))
        .routes(routes!(people::customers::list_customer_orders))
        .routes(routes!(goods::products::list_products))
        .routes(routes!(goods::products::create_or_rename_product, goods::products::get_product))
        .routes(routes!(goods::products::list_product_orders))
        .routes(routes!(goods::products::receive_delivery))
        .routes(routes!(goods::stock::count_stock))
        .routes(routes!(goods::stock::write_off_stock))
        .routes(routes!(goods::stock::transfer_stock))
        .routes(routes!(goods::stock::list_movements))
        .routes(routes!(goods::stock::list_order_movements))
        .routes(routes!(goods::skus::put_sku, goods::skus::get_sku))
        .routes(routes!(goods::warehouses::list_warehouses))
        .routes(routes!(goods::warehouses::put_warehouse, goods::warehouses::get_warehouse))
        .routes(routes!(goods::warehouses::list_warehouse_employees))
        .routes(routes!(fulfilment::packing::list_warehouse_orders))
        .routes(routes!(people::employee_lists::list_employees))
        .routes(routes!(people::employees::hire_employee, people::employees::get_employee))
        .routes(routes!(people::employees::assign_employee))
        .routes(routes!(people::employees::end_employment))
        .routes(routes!(people::employees::get_confidential_data))
        .routes(routes!(people::employee_lists::list_employee_customers))
        .routes(routes!(people::employee_lists::list_employee_orders))
        .routes(routes!(people::company::list_company_data))
}
