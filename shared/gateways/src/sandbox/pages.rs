//! The sandbox's pages: what a customer gives on them is one of the test payment methods.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::ledger::{Entry, PageOpened};
use super::{LedgerError, Sandbox, methods};
use crate::{GatewayError, Page, PageRequest, PageState, PaymentMethodPages};
use billing::{GatewayToken, PaymentMethod};

/// A page is open this long.
const PAGE_LIFE: TimeDelta = TimeDelta::hours(24);

impl Sandbox {
    /// Says where this sandbox is served, and its pages with it.
    pub fn served_at(&self, url: &str) {
        // Whoever serves it says so once.
        let _ = self.url.set(url.trim_end_matches('/').to_owned());
    }

    /// Opens a page at `url` as of `now`, or tells of the one that was opened for the same setup.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn open_at(&self, request: &PageRequest, url: &str, now: DateTime<Utc>) -> Result<Page, LedgerError> {
        let id: GatewayToken = format!("page_{}", request.setup).parse().expect("a ULID is a token");
        let mut ledger = self.ledger();
        if ledger.page(&id).is_none() {
            let new = || format!("cus_{}", request.account).parse().expect("an account's id is a token");
            ledger.append(Entry::PageOpened(PageOpened {
                id: id.clone(),
                customer: request.customer.clone().unwrap_or_else(new),
                return_url: request.return_url.clone(),
                expires_at: now + PAGE_LIFE,
            }))?;
        }
        let expires_at = ledger.page(&id).map_or(now, |(opened, _)| opened.expires_at);
        Ok(Page { url: format!("{url}/pages/{id}"), id, expires_at })
    }

    /// The page `id`, and what has become of it as of `now`.
    pub fn page_at(&self, id: &GatewayToken, now: DateTime<Utc>) -> Option<(PageOpened, PageState)> {
        let ledger = self.ledger();
        let (opened, given) = ledger.page(id)?;
        let state = match given {
            Some((payment_method, given_at)) => {
                let (customer, payment_method) = (opened.customer.clone(), payment_method.clone());
                PageState::Complete { payment_method: PaymentMethod { customer, payment_method }, given_at: *given_at }
            }
            None if now >= opened.expires_at => PageState::Expired,
            None => PageState::Open,
        };
        Some((opened.clone(), state))
    }

    /// Gives `payment_method` on the page `id`, if it is open; answers whether it took it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn give_at(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, LedgerError> {
        let is_open = self.page_at(id, now).is_some_and(|(_, state)| state == PageState::Open);
        if !is_open || methods::behaviour(payment_method).is_none() {
            return Ok(false);
        }
        self.ledger().append(Entry::PageCompleted {
            id: id.clone(),
            payment_method: payment_method.clone(),
            at: now,
        })?;
        Ok(true)
    }
}

#[async_trait]
impl PaymentMethodPages for Sandbox {
    async fn open_page(&self, request: &PageRequest) -> Result<Page, GatewayError> {
        let unknown = |reason: String| GatewayError::Unknown { reason };
        let url = self.url.get().ok_or_else(|| unknown("the sandbox serves no pages".to_owned()))?;
        self.open_at(request, url, self.clock.now()).map_err(|error| unknown(error.to_string()))
    }

    async fn page_state(&self, id: &GatewayToken) -> Result<PageState, GatewayError> {
        let found = self.page_at(id, self.clock.now());
        found
            .map(|(_, state)| state)
            .ok_or_else(|| GatewayError::Unknown { reason: "there is no such page".to_owned() })
    }
}
