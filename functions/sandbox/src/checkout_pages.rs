//! Opens, reads and completes checkout pages in the sandbox's table.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, SecondsFormat, Utc};
use dynamo::{TableError, UpdateItemOutcome, from_item, s, values};
use gateways::{CheckoutPageRequest, CheckoutPageState};
use sandbox::{OpenedCheckoutPage, rules};

use crate::items::{PageItem, page_key};
use crate::table::SandboxTable;
use billing::GatewayToken;

/// An update expression that stores the payment method that a customer entered on a checkout page.
const SET_PAYMENT_METHOD: &str = "SET #PaymentMethod = :method, #GivenAt = :now";
/// A condition expression that is true if the checkout page exists and no payment method was entered on it.
const PAYMENT_METHOD_NOT_ENTERED: &str = "attribute_exists(#PK) AND attribute_not_exists(#PaymentMethod)";

impl SandboxTable {
    /// Opens a checkout page at the time `now`, or returns the checkout page that was opened before for the same
    /// payment method setup.
    pub(crate) async fn create_checkout_page(
        &self,
        request: &CheckoutPageRequest,
        now: DateTime<Utc>,
    ) -> Result<OpenedCheckoutPage, TableError> {
        let opened = rules::new_checkout_page(request, now);
        let new = PageItem { opened: opened.clone(), payment_method: None, given_at: None };
        if self.table.put_if_absent(new.to_item()).await? {
            return Ok(opened);
        }
        let key = page_key(&opened.id);
        let stored = self.read_checkout_page(&opened.id).await?.ok_or(TableError::Missing { key })?;
        Ok(stored.opened)
    }

    /// Reads the stored checkout page `id`; `None` if there is no such page.
    async fn read_checkout_page(&self, id: &GatewayToken) -> Result<Option<PageItem>, TableError> {
        self.table.get(page_key(id)).await?.as_ref().map(from_item).transpose()
    }

    /// Returns the checkout page `id` and its state at the time `now`; `None` if there is no such page.
    pub(crate) async fn get_checkout_page_state(
        &self,
        id: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<Option<(OpenedCheckoutPage, CheckoutPageState)>, TableError> {
        let stored = self.read_checkout_page(id).await?;
        Ok(stored.map(|page| {
            let state = rules::checkout_page_state(&page.opened, page.entered_payment_method().as_ref(), now);
            (page.opened, state)
        }))
    }

    /// Enters `payment_method` on the checkout page `id` at the time `now`. Returns `false` if the checkout page is not
    /// open or there is no such test payment method.
    pub(crate) async fn enter_payment_method(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, TableError> {
        let state = self.get_checkout_page_state(id, now).await?.map(|(_, state)| state);
        if !state.is_some_and(|state| rules::can_payment_method_be_entered(payment_method, &state)) {
            return Ok(false);
        }
        let now = now.to_rfc3339_opts(SecondsFormat::Nanos, true);
        let values = values([(":method", s(payment_method)), (":now", s(now))]);
        let enter = self.table.build_update(page_key(id), SET_PAYMENT_METHOD, PAYMENT_METHOD_NOT_ENTERED, values);
        let outcome = self.table.send_update(enter, ReturnValue::None).await?;
        Ok(matches!(outcome, UpdateItemOutcome::Updated(_)))
    }
}
