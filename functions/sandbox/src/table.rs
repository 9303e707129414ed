//! The DynamoDB table of the sandbox gateway, in which its routes store payments.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use chrono::{DateTime, Utc};
use dynamo::{DynamoTable, KeySchema, TableError, TableSchema};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPageRequest, CheckoutPageState, GatewayRefund, ListPage, RefundRequest,
    RefundResponse, TimeRange,
};
use sandbox::{CheckoutPageAddress, OpenedCheckoutPage, SandboxStore, StoreError, rules};

use crate::items::{PaymentItem, SandboxAccountItem, account_key};
use billing::{GatewayAccount, GatewayToken, Payment};
use clock::Clock;

/// The marker type of the sandbox's table, which distinguishes it from other tables at compile time.
#[derive(Clone, Copy, Debug)]
pub enum SandboxSchema {}

/// The keys of the table. The table has no index, because the list of a customer's payments must be strongly
/// consistent. On AWS, `template.yaml` creates the same table.
static SANDBOX_SCHEMA: TableSchema<0> =
    TableSchema { keys: KeySchema { partition: ("PK", "S"), sort: ("SK", "S") }, indexes: [] };

/// The number of tries of a request whose write conflicts with concurrent requests that change the same items.
pub(crate) const MAX_TRIES: u32 = 8;

/// A sandbox gateway that stores its payments in a DynamoDB table. Concurrent requests may use the same table: every
/// write has the condition that the items from which it was computed are unchanged.
#[derive(Clone, Debug)]
pub struct SandboxTable {
    pub(crate) table: DynamoTable<SandboxSchema>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl SandboxTable {
    /// Creates a sandbox on the table `name`, which is accessed through `client`. `clock` creates the ids. If a caller
    /// sends no time with a request, the request is processed at the time of `clock`.
    pub fn new(client: Client, name: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self { table: DynamoTable::new(client, name), clock }
    }

    /// Creates the table if it does not exist. This method is only for the embedded DynamoDB engine: on AWS, the
    /// template creates the table.
    ///
    /// # Errors
    /// [`TableError`] if a request fails.
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        if self.table.table_exists().await? { Ok(()) } else { self.table.create_table(&SANDBOX_SCHEMA).await }
    }

    /// Returns the id of the gateway account. The first call creates the id and stores it.
    async fn account_id(&self) -> Result<String, TableError> {
        let key = account_key();
        if let Some(item) = self.table.get(key.clone()).await? {
            return dynamo::from_item::<SandboxAccountItem>(&item).map(|stored| stored.id);
        }
        let new = SandboxAccountItem { id: format!("sandbox_{}", self.clock.ulid()) };
        if self.table.put_if_absent(new.to_item()).await? {
            return Ok(new.id);
        }
        // A concurrent request has created the account.
        let item = self.table.get(key.clone()).await?.ok_or(TableError::Missing { key })?;
        dynamo::from_item::<SandboxAccountItem>(&item).map(|stored| stored.id)
    }
}

#[async_trait]
impl SandboxStore for SandboxTable {
    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    fn checkout_page_address(&self) -> CheckoutPageAddress {
        CheckoutPageAddress::OriginOfReturnUrl
    }

    async fn account(&self) -> Result<GatewayAccount, StoreError> {
        Ok(rules::sandbox_account(&self.account_id().await?))
    }

    async fn charge(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeResponse, StoreError> {
        Ok(self.make_charge(request, now).await?)
    }

    async fn payments(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, StoreError> {
        Ok(self.list_payments(customer, since, now).await?)
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<ListPage<Payment>, StoreError> {
        let select = |stored: PaymentItem| {
            let made = stored.payment;
            let is_in_range = range.contains(made.created_at);
            is_in_range.then(|| made.payment(rules::payment_status_at(&made, now))).into_iter().collect()
        };
        Ok(self.scan_payments(after, select).await?)
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<ListPage<(GatewayToken, GatewayRefund)>, StoreError> {
        let select = |stored: PaymentItem| {
            let in_range = stored.refunds.iter().filter(|request| range.contains(rules::refund_request_time(request)));
            in_range.map(|request| (request.payment.clone(), rules::succeeded_refund(request))).collect()
        };
        Ok(self.scan_payments(after, select).await?)
    }

    async fn payment(&self, id: &GatewayToken, now: DateTime<Utc>) -> Result<Option<Payment>, StoreError> {
        Ok(self
            .get_payment(id)
            .await?
            .map(|stored| stored.payment.payment(rules::payment_status_at(&stored.payment, now))))
    }

    async fn refund(&self, request: &RefundRequest, now: DateTime<Utc>) -> Result<RefundResponse, StoreError> {
        Ok(self.make_refund(request, now).await?)
    }

    async fn refunds(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, StoreError> {
        let stored = self.get_payment(payment).await?;
        Ok(stored.into_iter().flat_map(|stored| stored.refunds).map(|made| rules::succeeded_refund(&made)).collect())
    }

    async fn open_page(
        &self,
        request: &CheckoutPageRequest,
        now: DateTime<Utc>,
    ) -> Result<OpenedCheckoutPage, StoreError> {
        Ok(self.create_checkout_page(request, now).await?)
    }

    async fn checkout_page_with_state(
        &self,
        id: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<Option<(OpenedCheckoutPage, CheckoutPageState)>, StoreError> {
        Ok(self.get_checkout_page_state(id, now).await?)
    }

    async fn complete_page(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        Ok(self.enter_payment_method(id, payment_method, now).await?)
    }
}
