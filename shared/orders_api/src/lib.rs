//! The HTTP API of the order desk: orders, customers, products, SKUs, warehouses, employees and the company, with one file for each
//! resource. The crate `rest` has the code that this API shares with the HTTP API for subscriptions and payments.

mod address;
mod advance_orders;
mod company;
mod customers;
mod desk_for_caller;
mod desk_problem;
mod employee_lists;
mod employee_view;
mod employees;
mod follow_ups;
mod lines;
mod openapi;
mod order_view;
mod orders;
mod packing;
mod packing_slips;
mod parameters;
mod products;
mod skus;
mod stock;
mod warehouses;

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
pub use openapi::document;
pub use packing_slips::SlipPrinter;

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
        .routes(routes!(orders::list))
        .routes(routes!(orders::read_ranking))
        .routes(routes!(orders::read))
        .routes(routes!(advance_orders::advance))
        .routes(routes!(orders::advance_order))
        .routes(routes!(orders::correct_address))
        .routes(routes!(orders::change_lines))
        .routes(routes!(follow_ups::split_order))
        .routes(routes!(follow_ups::replace_order))
        .routes(routes!(customers::put, customers::read))
        .routes(routes!(customers::hand_over_customer))
        .routes(routes!(customers::list_orders))
        .routes(routes!(products::list))
        .routes(routes!(products::create_or_rename, products::read))
        .routes(routes!(products::list_orders))
        .routes(routes!(products::receive_delivery))
        .routes(routes!(stock::count))
        .routes(routes!(stock::write_off))
        .routes(routes!(stock::transfer))
        .routes(routes!(stock::list_movements))
        .routes(routes!(stock::list_order_movements))
        .routes(routes!(skus::put, skus::read))
        .routes(routes!(warehouses::list))
        .routes(routes!(warehouses::put, warehouses::read))
        .routes(routes!(warehouses::list_employees))
        .routes(routes!(packing::list_orders))
        .routes(routes!(employee_lists::list))
        .routes(routes!(employees::hire_employee, employees::read))
        .routes(routes!(employees::assign_employee))
        .routes(routes!(employees::end_employment))
        .routes(routes!(employees::read_confidential))
        .routes(routes!(employee_lists::list_customers))
        .routes(routes!(employee_lists::list_orders))
        .routes(routes!(company::list))
}
