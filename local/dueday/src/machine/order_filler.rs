//! Fills backordered orders in the local system if the stock is now sufficient: after each change through the API, and
//! each minute. To fill an order means to deduct its products from the stock, so that the order can be shipped. A fill
//! task names a product or a customer whose backordered orders must be tried. The fill tasks are in the table, so the
//! next server process continues with the tasks that this process has not completed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use chrono::{DateTime, Utc};
use orders_desk::OrderDesk;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::terminal::output;

/// The longest time between two searches for fill tasks. Commands and payments create fill tasks without a request to
/// the API, so these tasks are found only by a search.
const MAX_FILL_TASK_SEARCH_INTERVAL: Duration = Duration::from_secs(60);

/// Works on the fill tasks of the local server.
pub struct OrderFiller {
    desk: OrderDesk,
    changed: Arc<Notify>,
}

impl OrderFiller {
    /// Creates the filler for the fill tasks of `desk`.
    pub fn new(desk: OrderDesk) -> Self {
        Self { desk, changed: Arc::new(Notify::new()) }
    }

    /// Returns `routes`, which wake [`OrderFiller::fill_waiting_orders_continuously`] after each request that may change
    /// the table.
    pub fn observe_changes(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.changed.clone(), wake_filler_after_change))
    }

    /// Works on the fill tasks until the future is dropped.
    pub async fn fill_waiting_orders_continuously(&self) {
        loop {
            let done = self.desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
            if done.failed > 0 {
                output::print_message(format!(
                    "error: {} could not be processed, and will be tried again",
                    output::format_count(done.failed.into(), "waiting order")
                ));
            }
            // The next search starts after a change or at the end of the interval, so the result of the wait is
            // ignored.
            let _: Result<(), _> = timeout(MAX_FILL_TASK_SEARCH_INTERVAL, self.changed.notified()).await;
        }
    }
}

/// Handles `request`, and then notifies `changed` if the request may have changed the table.
async fn wake_filler_after_change(State(changed): State<Arc<Notify>>, request: Request, next: Next) -> Response {
    let is_change = !request.method().is_safe();
    let response = next.run(request).await;
    if is_change {
        changed.notify_one();
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use clock::{Clock as _, SystemClock};
    use emulator::Engine;
    use orders::FillTarget;
    use orders_table::{BucketCount, OrdersTable};
    use tower::ServiceExt as _;

    use super::*;

    /// Lets the filler run. Returns whether there are fill tasks after that.
    async fn has_fill_tasks(table: &OrdersTable) -> bool {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        !table.fill_tasks().await.unwrap().items.is_empty()
    }

    #[tokio::test]
    async fn request_that_may_change_the_table_wakes_the_filler() {
        let table = OrdersTable::new(Engine::in_memory().client(), "dueday-orders");
        table.create_if_absent().await.unwrap();
        let filler = OrderFiller::new(OrderDesk::new(table.clone(), BucketCount::default(), Arc::new(SystemClock)));
        let routes = filler.observe_changes(Router::new().route("/", get(|| async {}).put(|| async {})));
        let send = async |method: &str| {
            let request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
            assert_eq!(routes.clone().oneshot(request).await.unwrap().status(), 200);
        };
        let target = FillTarget::Product("beans".parse().unwrap());
        let requests = async {
            assert!(!has_fill_tasks(&table).await);
            table.request_fill(&target, SystemClock.ulid()).await.unwrap();
            send("GET").await;
            assert!(has_fill_tasks(&table).await, "a GET request changes nothing");
            send("PUT").await;
            assert!(!has_fill_tasks(&table).await);
        };
        tokio::select! {
            () = filler.fill_waiting_orders_continuously() => {}
            () = requests => {}
        }
    }
}
