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
pub fn all_api_routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(accounts::put_account, accounts::get_account, erasure::request_account_erasure))
        .routes(routes!(export::export_account))
        .routes(routes!(action_log::list_actions))
        .routes(routes!(subscriptions::create_subscription, subscriptions::list_subscriptions))
        .routes(routes!(subscriptions::get_subscription, subscriptions::change_subscription))
        .routes(routes!(transitions::pause_subscription))
        .routes(routes!(transitions::resume_subscription))
        .routes(routes!(transitions::cancel_subscription))
        .routes(routes!(transitions::uncancel_subscription))
        .routes(routes!(transitions::retry_owed_payment))
        .routes(routes!(month_corrections::correct_subscription_price))
        .routes(routes!(month_corrections::waive_month))
        .routes(routes!(month_corrections::record_month_paid_elsewhere))
        .routes(routes!(schedule::get_payment_schedule))
        .routes(routes!(payment_method_setups::create_payment_method_setup))
        .routes(routes!(payment_method_setups::get_payment_method_setup))
        .routes(routes!(payment_method_setups::return_from_payment_method_setup))
        .routes(routes!(card_links::show_card_link, card_links::open_card_link))
        .routes(routes!(why::get_charge_explanation))
        .routes(routes!(receipts::list_receipts))
        .routes(routes!(receipts::get_receipt))
        .routes(routes!(receipts::find_receipt_of_number))
        .routes(routes!(refunds::refund_receipt))
        .routes(routes!(due_items::list_due_subscriptions))
        .routes(routes!(forecast::get_payment_forecast))
        .routes(routes!(runs::list_batch_runs))
        .routes(routes!(audits::list_audits))
        .routes(routes!(audits::get_audit))
        .routes(routes!(reports::get_daily_payments_report))
        .routes(routes!(system_status::get_system_status))
        .routes(routes!(webhook_endpoints::create_webhook_endpoint, webhook_endpoints::list_webhook_endpoints))
        .routes(routes!(
            webhook_endpoints::get_webhook_endpoint,
            webhook_endpoints::change_webhook_endpoint,
            webhook_endpoints::remove_webhook_endpoint
        ))
        .routes(routes!(webhook_endpoints::rotate_webhook_secret))
        .routes(routes!(deliveries::list_webhook_deliveries))
        .routes(routes!(deliveries::redeliver_event))
        .routes(routes!(health::check_health))
        .routes(routes!(root_route::get_api_index))
}
