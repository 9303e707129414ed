//! The check of the web page on which a customer gives a payment method.

use super::case::{Case, Outcome, broken, ensure};
use crate::{GatewayError, PageRequest, PageState};

impl Case<'_> {
    pub async fn web_page(&self) -> Outcome {
        let request = PageRequest {
            setup: self.sample.run,
            account: "conformance".parse().expect("an account id"),
            email: "conformance@example.com".parse().expect("an address"),
            customer: Some(self.sample.customer.clone()),
            return_url: "https://example.com/back".to_owned(),
        };
        let failed = |error: GatewayError| broken(error.to_string());
        let page = self.gateway.open_page(&request).await.map_err(failed)?;
        let again = self.gateway.open_page(&request).await.map_err(failed)?;
        ensure(page.id == again.id, || format!("it opened {} and {}", page.id, again.id))?;
        ensure(page.expires_at > self.now(), || format!("it closed at {}", page.expires_at))?;
        let state = self.gateway.page_state(&page.id).await.map_err(failed)?;
        ensure(state == PageState::Open, || format!("an open page was expected, and it is {state:?}"))
    }
}
