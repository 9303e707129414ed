//! The interface between the HTTP routes of the sandbox and the store that contains its payments: a file, the memory,
//! or a DynamoDB table.

use std::fmt;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPageRequest, CheckoutPageState, GatewayRefund, ListPage, RefundRequest,
    RefundResponse, TimeRange,
};

use crate::records::OpenedCheckoutPage;
use billing::{GatewayAccount, GatewayToken, Payment};

/// The reason why a store could not read or write. If a write failed, the outcome of the request is unknown.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// The rule for the base URL of a checkout page, which a customer opens in a browser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckoutPageAddress {
    /// The URL of a checkout page contains the host to which the caller sent its request.
    HostOfRequest,
    /// The URL of a checkout page has the origin of the request's `return_url`, because the API of the deployment also
    /// serves the checkout pages.
    OriginOfReturnUrl,
}

/// A sandbox with its stored payments. Most methods have the time of the request as a parameter (`now`), because the
/// caller can send a simulated time with its request. A method returns [`StoreError`] if the store cannot be read or
/// written.
#[async_trait]
pub trait SandboxStore: Send + Sync + fmt::Debug {
    /// Returns the current time. Requests whose caller sends no time are processed at this time.
    fn now(&self) -> DateTime<Utc>;

    /// Returns the rule for the base URL of a checkout page.
    fn checkout_page_address(&self) -> CheckoutPageAddress {
        CheckoutPageAddress::HostOfRequest
    }

    /// Returns the gateway account of this sandbox. The account never changes.
    async fn account(&self) -> Result<GatewayAccount, StoreError>;

    /// Makes a charge, at most once while the idempotency key is remembered.
    async fn charge(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeResponse, StoreError>;

    /// Lists all payments of `customer` that were made at or after `since`. The list is strongly consistent.
    async fn payments(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, StoreError>;

    /// Returns a list page of the payments that were made in `range`: the first list page, or the list page after the
    /// position `after`.
    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<ListPage<Payment>, StoreError>;

    /// Returns a list page of the refunds that were requested in `range`, each with the id of its payment. `after` is
    /// the same as in [`SandboxStore::payments_in_range`].
    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<ListPage<(GatewayToken, GatewayRefund)>, StoreError>;

    /// Returns the payment `id`; `None` if there is no such payment.
    async fn payment(&self, id: &GatewayToken, now: DateTime<Utc>) -> Result<Option<Payment>, StoreError>;

    /// Makes a refund, at most once for each id of a refund.
    async fn refund(&self, request: &RefundRequest, now: DateTime<Utc>) -> Result<RefundResponse, StoreError>;

    /// Lists the refunds of `payment`.
    async fn refunds(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, StoreError>;

    /// Opens a checkout page, or returns the checkout page that was opened before for the same payment method setup.
    async fn open_page(
        &self,
        request: &CheckoutPageRequest,
        now: DateTime<Utc>,
    ) -> Result<OpenedCheckoutPage, StoreError>;

    /// Returns the checkout page `id` and its state; `None` if there is no such page.
    async fn checkout_page_with_state(
        &self,
        id: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<Option<(OpenedCheckoutPage, CheckoutPageState)>, StoreError>;

    /// Enters `payment_method` on the checkout page `id`. Returns `false` if the checkout page is not open or there is
    /// no such test payment method.
    async fn complete_page(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}
