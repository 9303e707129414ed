//! One file a resource.

mod accounts;
mod due;
mod health;
mod receipts;
mod runs;
mod schedule;
mod subscriptions;
mod transitions;
mod why;

pub use accounts::View as AccountView;
pub use receipts::View as ReceiptView;
pub use subscriptions::View as SubscriptionView;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
pub use why::View as ExplanationView;

use crate::Api;

/// Every route, with its description.
pub fn all() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(accounts::put, accounts::read))
        .routes(routes!(subscriptions::create, subscriptions::list))
        .routes(routes!(subscriptions::read, subscriptions::change))
        .routes(routes!(transitions::pause))
        .routes(routes!(transitions::resume))
        .routes(routes!(transitions::cancel))
        .routes(routes!(transitions::uncancel))
        .routes(routes!(schedule::read))
        .routes(routes!(why::read))
        .routes(routes!(receipts::list))
        .routes(routes!(receipts::read))
        .routes(routes!(due::payments))
        .routes(routes!(due::reminders))
        .routes(routes!(runs::list))
        .routes(routes!(health::check))
}
