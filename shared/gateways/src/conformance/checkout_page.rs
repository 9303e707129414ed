//! The check of the checkout page on which a customer enters a payment method.

use super::running_check::{CheckResult, ConformanceCheck, broken_promise, ensure_promise};
use crate::{CheckoutPageRequest, CheckoutPageState, GatewayError};

impl ConformanceCheck<'_> {
    /// Returns the request for the checkout page of this check.
    pub fn checkout_page_request(&self) -> CheckoutPageRequest {
        CheckoutPageRequest {
            setup: self.parameters.run,
            account: "conformance".parse().expect("an account id"),
            email: "conformance@example.com".parse().expect("an address"),
            customer: Some(self.parameters.customer.clone()),
            return_url: "https://example.com/back".to_owned(),
        }
    }

    /// Checks that a payment method setup has one checkout page, which is open until a payment method is entered.
    pub async fn check_checkout_page(&self) -> CheckResult {
        let request = self.checkout_page_request();
        let failed = |error: GatewayError| broken_promise(error.to_string());
        let page = self.gateway.create_checkout_page(&request).await.map_err(failed)?;
        let second = self.gateway.create_checkout_page(&request).await.map_err(failed)?;
        ensure_promise(page.id == second.id, || format!("the same request opened {} and {}", page.id, second.id))?;
        ensure_promise(page.expires_at > self.now(), || {
            format!("a new checkout page has expired at {}", page.expires_at)
        })?;
        let state = self.gateway.checkout_page_state(&page.id).await.map_err(failed)?;
        ensure_promise(state == CheckoutPageState::Open, || {
            format!("an open checkout page was expected, and its state is {state:?}")
        })
    }
}
