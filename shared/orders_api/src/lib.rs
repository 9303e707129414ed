//! The HTTP API of the order desk: orders, customers, products, SKUs, warehouses and employees, with one file for each
//! resource. The crate `rest` has the code that this API shares with the HTTP API for subscriptions and payments.

mod customers;
mod employee_view;
mod employees;
mod openapi;
mod orders;
mod parameters;
mod products;
mod skus;
mod warehouses;

use std::sync::Arc;

use ::orders::OrderDesk;
use axum::Router;
use axum::extract::FromRef;
use chrono::TimeDelta;
use clock::Clock;
use rest::Now;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use openapi::document;

/// The longest time that a request spends on filling backordered orders, since a request must end within 29 seconds.
/// The hourly schedule fills the remaining orders.
const FILL_TIME_LIMIT: TimeDelta = TimeDelta::seconds(15);

/// The state that all routes share: the order desk and the clock.
#[derive(Clone, Debug)]
pub struct OrdersApi {
    desk: OrderDesk,
    clock: Arc<dyn Clock>,
}

impl FromRef<OrdersApi> for Now {
    fn from_ref(api: &OrdersApi) -> Self {
        let at = api.clock.now();
        Self { at, today: at.date_naive() }
    }
}

impl OrdersApi {
    /// Creates the API of `desk`, which limits the time that each request spends on filling backordered orders.
    pub fn new(desk: OrderDesk, clock: Arc<dyn Clock>) -> Self {
        Self { desk: desk.with_fill_time_limit(FILL_TIME_LIMIT), clock }
    }

    /// Returns the routes. The server must authenticate each request: it adds a [`rest::Caller`] to the extensions of
    /// the request, and a [`rest::caller::ConfidentialAccess`] if the caller may read confidential data.
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
        .routes(routes!(orders::advance_order))
        .routes(routes!(customers::put, customers::read))
        .routes(routes!(customers::hand_over_customer))
        .routes(routes!(customers::list_orders))
        .routes(routes!(products::list))
        .routes(routes!(products::put, products::read))
        .routes(routes!(products::list_orders))
        .routes(routes!(products::receive_delivery))
        .routes(routes!(skus::put, skus::read))
        .routes(routes!(warehouses::list))
        .routes(routes!(warehouses::put, warehouses::read))
        .routes(routes!(warehouses::list_employees))
        .routes(routes!(employees::list))
        .routes(routes!(employees::hire_employee, employees::read, employees::correct))
        .routes(routes!(employees::remove_planned_change))
        .routes(routes!(employees::assign_employee))
        .routes(routes!(employees::end_employment))
        .routes(routes!(employees::read_confidential))
        .routes(routes!(employees::list_customers))
        .routes(routes!(employees::list_orders))
}
