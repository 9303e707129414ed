//! Fills waiting orders on one machine: after each change through the API, and each minute. The changes write fill tasks
//! to the table, so that the next server continues with them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use chrono::{DateTime, Utc};
use orders::OrderDesk;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::terminal::output;

/// The longest time between two searches for fill tasks. Commands and the processing of payments write tasks without a
/// request to the API.
const FILL_INTERVAL: Duration = Duration::from_secs(60);

/// Works on the fill tasks of the local server.
pub struct OrderFiller {
    desk: OrderDesk,
    changed: Arc<Notify>,
}

impl OrderFiller {
    pub fn new(desk: OrderDesk) -> Self {
        Self { desk, changed: Arc::new(Notify::new()) }
    }

    /// Returns `routes`, which wake [`OrderFiller::keep_filling`] after each request that may change the table.
    pub fn observe_changes(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.changed.clone(), notify_after_change))
    }

    /// Makes the planned changes of employees and works on the fill tasks until the future is dropped.
    pub async fn keep_filling(&self) {
        loop {
            let failed_changes = self.desk.apply_due_changes().await;
            if failed_changes > 0 {
                output::print_message(format!(
                    "error: {} of employees could not be made, and will be tried again",
                    output::format_count(failed_changes.into(), "planned change")
                ));
            }
            let done = self.desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
            if done.failed > 0 {
                output::print_message(format!(
                    "error: {} could not be processed, and will be tried again",
                    output::format_count(done.failed.into(), "waiting order")
                ));
            }
            // Both results lead to the next search: a change, and the end of the interval.
            let _: Result<(), _> = timeout(FILL_INTERVAL, self.changed.notified()).await;
        }
    }
}

async fn notify_after_change(State(changed): State<Arc<Notify>>, request: Request, next: Next) -> Response {
    let is_change = !request.method().is_safe();
    let response = next.run(request).await;
    if is_change {
        changed.notify_one();
    }
    response
}
