//! Payment gateways: the services that charge the customers' payment methods.
//!
//! The payment batch relies on three promises of a gateway:
//! - While the gateway remembers an idempotency key, it makes at most one charge for the key.
//! - A declined payment can no longer succeed.
//! - [`PaymentGateway::payments_of`] lists every payment that the gateway accepted before the list was requested.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod charges;
mod checkout_pages;
mod config;
pub mod conformance;
mod contradictory_response;
mod gateway_url;
mod http_gateway;
mod iam_signer;
mod refunds;
mod request_signature;
mod stripe;
mod time_range_lists;

pub use charges::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
pub use checkout_pages::{CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages};
pub use config::*;
pub use refunds::{GatewayDispute, GatewayRefund, RefundRequest, RefundResponse, RefundState, Refunds};
pub use stripe::{
    DEBIT_EVENTS, EventSubject, HttpsTransport, InboundWebhookError, NEEDED_EVENTS, Response, SecretError,
    SigningSecrets, Stripe, StripeDispute, StripeEvent, StripePayment, StripeWebhookEndpoint, Transport,
    is_live_stripe_key,
};

pub use gateway_url::{GatewayUrl, GatewayUrlError};
pub use http_gateway::{
    ACCOUNT_PATH, CHECKOUT_PAGES_PATH, CLOCK_HEADER, CustomerPaymentsQuery, HttpGateway, LISTS_PATH, PAYMENTS_PATH,
    REFUNDS_PATH, TimeRangeQuery,
};
pub use iam_signer::IamSigner;
pub use request_signature::{
    GATEWAY_REQUEST_ID_HEADER, GATEWAY_REQUEST_SIGNATURE_HEADER, GATEWAY_REQUEST_TIMESTAMP_HEADER, GatewayKeys,
    MAX_SIGNATURE_TIME_DIFFERENCE, ParseGatewayKeysError, SignatureError, SignedRequestParts,
};
pub use time_range_lists::{ListPage, TimeRange};

/// A payment gateway that supports everything that Dueday needs: charges, refunds and checkout pages.
pub trait FullGateway: CheckoutPages + Refunds {}

impl<T: CheckoutPages + Refunds> FullGateway for T {}
