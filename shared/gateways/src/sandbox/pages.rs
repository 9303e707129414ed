//! The sandbox's checkout pages, on which a customer selects one of the test payment methods.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::ledger::{LedgerEntry, PageOpened};
use super::{LedgerError, Sandbox, methods};
use crate::{CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayError};
use billing::{GatewayToken, PaymentMethod};

/// How long a checkout page is open.
const CHECKOUT_PAGE_LIFETIME: TimeDelta = TimeDelta::hours(24);

impl Sandbox {
    /// Sets the base URL at which this sandbox and its checkout pages are served. Only the first call has an effect.
    pub fn set_url(&self, url: &str) {
        let _ = self.url.set(url.trim_end_matches('/').to_owned());
    }

    /// Opens a checkout page below the base URL `url` at the time `now`, or returns the checkout page that was opened
    /// before for the same payment method setup.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written.
    pub fn open_page_at(
        &self,
        request: &CheckoutPageRequest,
        url: &str,
        now: DateTime<Utc>,
    ) -> Result<CheckoutPage, LedgerError> {
        let id: GatewayToken = format!("page_{}", request.setup).parse().expect("a ULID is a token");
        let mut ledger = self.ledger();
        if ledger.find_page(&id).is_none() {
            let new_customer = || format!("cus_{}", request.account).parse().expect("an account's id is a token");
            ledger.append(LedgerEntry::PageOpened(PageOpened {
                id: id.clone(),
                customer: request.customer.clone().unwrap_or_else(new_customer),
                return_url: request.return_url.clone(),
                expires_at: now + CHECKOUT_PAGE_LIFETIME,
            }))?;
        }
        let expires_at = ledger.find_page(&id).map_or(now, |(opened, _)| opened.expires_at);
        Ok(CheckoutPage { url: format!("{url}/pages/{id}"), id, expires_at })
    }

    /// Returns the checkout page `id` and its state at the time `now`; `None` if there is no such page.
    pub fn page_at(&self, id: &GatewayToken, now: DateTime<Utc>) -> Option<(PageOpened, CheckoutPageState)> {
        let ledger = self.ledger();
        let (opened, entered) = ledger.find_page(id)?;
        let state = match entered {
            Some((payment_method, given_at)) => {
                let (customer, payment_method) = (opened.customer.clone(), payment_method.clone());
                CheckoutPageState::Complete {
                    payment_method: PaymentMethod { customer, payment_method },
                    given_at: *given_at,
                }
            }
            None if now >= opened.expires_at => CheckoutPageState::Expired,
            None => CheckoutPageState::Open,
        };
        Some((opened.clone(), state))
    }

    /// Enters `payment_method` on the checkout page `id` at the time `now`. Returns `false` if the page is not open or
    /// there is no such test payment method.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written.
    pub fn complete_page_at(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, LedgerError> {
        let is_open = self.page_at(id, now).is_some_and(|(_, state)| state == CheckoutPageState::Open);
        if !is_open || methods::behaviour_of_method(payment_method).is_none() {
            return Ok(false);
        }
        self.ledger().append(LedgerEntry::PageCompleted {
            id: id.clone(),
            payment_method: payment_method.clone(),
            at: now,
        })?;
        Ok(true)
    }
}

#[async_trait]
impl CheckoutPages for Sandbox {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        let unknown = |reason: String| GatewayError::Unknown { reason };
        let url = self.url.get().ok_or_else(|| unknown("the sandbox serves no checkout pages".to_owned()))?;
        self.open_page_at(request, url, self.clock.now()).map_err(|error| unknown(error.to_string()))
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        let found = self.page_at(id, self.clock.now());
        found
            .map(|(_, state)| state)
            .ok_or_else(|| GatewayError::Unknown { reason: "there is no such checkout page".to_owned() })
    }
}
