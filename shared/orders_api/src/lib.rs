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
pub use openapi::document;

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
        let (routes, _) = all_routes().split_for_parts();
        routes.with_state(self)
    }

    /// Returns the routes, with a problem response for unknown paths.
    pub fn router(self) -> Router {
        rest::router(self.routes())
    }
}

/// Returns all routes with their OpenAPI descriptions.
fn all_routes() -> OpenApiRouter<OrdersApi> {
    OpenApiRouter::new()
        .routes(routes!(fulfilment::orders::list))
        .routes(routes!(fulfilment::orders::read_ranking))
        .routes(routes!(fulfilment::orders::read))
        .routes(routes!(fulfilment::advance_orders::advance))
        .routes(routes!(fulfilment::orders::advance_order))
        .routes(routes!(fulfilment::orders::correct_address))
        .routes(routes!(fulfilment::orders::change_lines))
        .routes(routes!(fulfilment::follow_ups::split_order))
        .routes(routes!(fulfilment::follow_ups::replace_order))
        .routes(routes!(people::customers::put, people::customers::read))
        .routes(routes!(people::customers::hand_over_customer))
        .routes(routes!(people::customers::list_orders))
        .routes(routes!(goods::products::list))
        .routes(routes!(goods::products::create_or_rename, goods::products::read))
        .routes(routes!(goods::products::list_orders))
        .routes(routes!(goods::products::receive_delivery))
        .routes(routes!(goods::stock::count))
        .routes(routes!(goods::stock::write_off))
        .routes(routes!(goods::stock::transfer))
        .routes(routes!(goods::stock::list_movements))
        .routes(routes!(goods::stock::list_order_movements))
        .routes(routes!(goods::skus::put, goods::skus::read))
        .routes(routes!(goods::warehouses::list))
        .routes(routes!(goods::warehouses::put, goods::warehouses::read))
        .routes(routes!(goods::warehouses::list_employees))
        .routes(routes!(fulfilment::packing::list_orders))
        .routes(routes!(people::employee_lists::list))
        .routes(routes!(people::employees::hire_employee, people::employees::read))
        .routes(routes!(people::employees::assign_employee))
        .routes(routes!(people::employees::end_employment))
        .routes(routes!(people::employees::read_confidential))
        .routes(routes!(people::employee_lists::list_customers))
        .routes(routes!(people::employee_lists::list_orders))
        .routes(routes!(people::company::list))
}
