//! Payment gateways: the services that charge the customers' payment methods.
//!
//! The payment batch relies on three promises of a gateway:
//! - While the gateway remembers an idempotency key, it makes at most one charge for the key.
//! - A declined payment can no longer succeed.
//! - [`PaymentGateway::payments_of_customer`] lists every payment that the gateway accepted before the list was
//!   requested.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod amount_rules;
mod charges;
mod checkout_pages;
mod comparison;
mod config;
pub mod conformance;
mod contradictory_response;
mod gateway_url;
mod http_gateway;
mod iam_signer;
mod list_page;
mod list_progress;
mod refunds;
mod request_signature;
mod stripe;
mod time_range;

pub use amount_rules::AmountRulesReader;
pub use charges::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
pub use checkout_pages::{CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages};
pub use comparison::{
    PaymentComparison, compare_dispute, compare_dispute_status, compare_payment, compare_receipt, compare_refund,
    compare_refund_status, compare_stored_dispute, compare_stored_refund,
};
pub use config::*;
pub use refunds::{DisputeDetails, GatewayDispute, GatewayRefund, RefundRequest, RefundResponse, RefundState, Refunds};
pub use stripe::{
    DEBIT_EVENTS, EventSubject, HttpResponse, HttpsStripeTransport, InboundWebhookError, NEEDED_EVENTS, SigningSecrets,
    Stripe, StripeDispute, StripeEvent, StripePayment, StripeSigningSecretError, StripeTransport,
    StripeWebhookEndpoint, amount_rules_of_account, is_live_stripe_key, stripe_amount_rules,
};

pub use gateway_url::{GatewayUrl, GatewayUrlError};
pub use http_gateway::{
    ACCOUNT_PATH, CHECKOUT_PAGES_PATH, CLOCK_HEADER, CustomerPaymentsQuery, HttpGateway, LISTS_PATH, PAYMENTS_PATH,
    REFUNDS_PATH, TimeRangeQuery,
};
pub use iam_signer::IamSigner;
pub use list_page::{ListPage, UnreadableObject};
pub use list_progress::ListProgress;
pub use request_signature::{
    GATEWAY_REQUEST_ID_HEADER, GATEWAY_REQUEST_SIGNATURE_HEADER, GATEWAY_REQUEST_TIMESTAMP_HEADER, GatewaySigningKeys,
    GatewaySigningKeysError, MAX_SIGNATURE_TIME_DIFFERENCE, SignatureError, SignedRequestParts,
};
pub use time_range::TimeRange;

/// A payment gateway that supports everything that Dueday needs: charges, refunds and checkout pages.
pub trait FullGateway: CheckoutPages + Refunds {}

impl<T: CheckoutPages + Refunds> FullGateway for T {}
