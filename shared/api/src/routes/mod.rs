//! The routes of the API, one file per resource.

mod accounts;
mod action_log;
mod audits;
mod card_links;
mod charge_now;
mod created_view;
mod deliveries;
mod due_items;
mod encrypted_responses;
mod erasure;
mod export;
mod forecast;
mod health;
mod month_corrections;
mod payment_method_setups;
mod receipts;
mod refunds;
mod reports;
mod root_route;
mod runs;
mod schedule;
mod subscription_view;
mod subscriptions;
mod system_status;
mod transitions;
mod webhook_endpoints;
mod why;

pub use accounts::AccountView;
pub use action_log::{ActionView, ActorView};
pub use audits::{AuditView, AuditViolationView};
pub use deliveries::DeliveryView;
pub use erasure::ErasureView;
pub use export::{AccountExport, ExportError, MAX_EXPORTED_ITEMS};
pub use payment_method_setups::SetupView;
pub use receipts::ReceiptView;
pub use refunds::RefundView;
pub use subscription_view::SubscriptionView;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
pub use webhook_endpoints::{EndpointView, EndpointWithSecret};
pub use why::ExplanationView;

use crate::Api;

/// Returns all routes of the API, each with its OpenAPI description.
pub fn all() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(accounts::put, accounts::read, erasure::request))
        .routes(routes!(export::read))
        .routes(routes!(action_log::list))
        .routes(routes!(subscriptions::create, subscriptions::list))
        .routes(routes!(subscriptions::read, subscriptions::change))
        .routes(routes!(transitions::pause))
        .routes(routes!(transitions::resume))
        .routes(routes!(transitions::cancel))
        .routes(routes!(transitions::uncancel))
        .routes(routes!(transitions::retry))
        .routes(routes!(month_corrections::correct_price))
        .routes(routes!(month_corrections::waive))
        .routes(routes!(month_corrections::paid_elsewhere))
        .routes(routes!(schedule::read))
        .routes(routes!(payment_method_setups::create))
        .routes(routes!(payment_method_setups::read))
        .routes(routes!(payment_method_setups::return_from_page))
        .routes(routes!(card_links::show, card_links::open))
        .routes(routes!(why::read))
        .routes(routes!(receipts::list))
        .routes(routes!(receipts::read))
        .routes(routes!(receipts::find))
        .routes(routes!(refunds::create))
        .routes(routes!(due_items::list))
        .routes(routes!(forecast::read))
        .routes(routes!(runs::list))
        .routes(routes!(audits::list))
        .routes(routes!(audits::read))
        .routes(routes!(reports::read))
        .routes(routes!(system_status::read))
        .routes(routes!(webhook_endpoints::create, webhook_endpoints::list))
        .routes(routes!(webhook_endpoints::read, webhook_endpoints::change, webhook_endpoints::remove))
        .routes(routes!(webhook_endpoints::rotate_secret))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::redeliver))
        .routes(routes!(health::check))
        .routes(routes!(root_route::read))
}
