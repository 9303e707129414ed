//! The HTTP API of orders, goods, customers and people: a file a resource. What it has in common with that of the payments is in
//! `rest`.

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

/// A request ends after 29 seconds: what it lets be filled and is not by then is filled within the hour.
const PATIENCE: TimeDelta = TimeDelta::seconds(15);

/// What the routes need.
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
    /// The API of `desk`.
    pub fn new(desk: OrderDesk, clock: Arc<dyn Clock>) -> Self {
        Self { desk: desk.with_patience(PATIENCE), clock }
    }

    /// The routes. Whoever serves them puts a [`rest::Caller`] into each request, and [`rest::caller::ReadsConfidential`] if
    /// that may.
    pub fn routes(self) -> Router {
        let (routes, _) = all().split_for_parts();
        routes.with_state(self)
    }

    /// The routes, and an answer to all else.
    pub fn router(self) -> Router {
        rest::router(self.routes())
    }
}

/// Every route, with its description.
fn all() -> OpenApiRouter<OrdersApi> {
    OpenApiRouter::new()
        .routes(routes!(orders::list))
        .routes(routes!(orders::ranking))
        .routes(routes!(orders::read))
        .routes(routes!(orders::advance))
        .routes(routes!(customers::put, customers::read))
        .routes(routes!(customers::hand_over))
        .routes(routes!(customers::orders))
        .routes(routes!(products::list))
        .routes(routes!(products::put, products::read))
        .routes(routes!(products::orders))
        .routes(routes!(products::receive))
        .routes(routes!(skus::put, skus::read))
        .routes(routes!(warehouses::list))
        .routes(routes!(warehouses::put, warehouses::read))
        .routes(routes!(warehouses::employees))
        .routes(routes!(employees::list))
        .routes(routes!(employees::hire, employees::read))
        .routes(routes!(employees::assign))
        .routes(routes!(employees::leave))
        .routes(routes!(employees::confidential))
        .routes(routes!(employees::customers))
        .routes(routes!(employees::orders))
}
