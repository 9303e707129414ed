//! Reads customers from Stripe, and returns the payments of a customer that does not exist at Stripe.

use reqwest::StatusCode;

use super::wire_format::StripeCustomer;
use super::{RequestFailure, Stripe};
use billing::{GatewayToken, Payment};

impl Stripe {
    /// Returns the customer `id`; `None` if the Stripe account never had this customer.
    pub(super) async fn read_customer(&self, id: &str) -> Result<Option<StripeCustomer>, RequestFailure> {
        match self.send::<StripeCustomer>(self.http.get(self.api_url(&format!("customers/{id}")))).await {
            Ok(customer) => Ok(Some(customer)),
            Err(RequestFailure::Refused(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(RequestFailure::Refused(_, error)) if error.code.as_deref() == Some("resource_missing") => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the payments of `customer` after Stripe refused to list them because the customer does not exist. The
    /// list is empty if the Stripe account never had this customer.
    ///
    /// # Errors
    /// [`RequestFailure::Unknown`] if the customer was deleted. The customer may have paid before, but Stripe does not
    /// list the payments of a deleted customer.
    pub(super) async fn payments_of_missing_customer(
        &self,
        customer: &GatewayToken,
    ) -> Result<Vec<Payment>, RequestFailure> {
        match self.read_customer(customer.as_str()).await? {
            None => Ok(Vec::new()),
            Some(found) if found.deleted => Err(RequestFailure::Unknown(format!(
                "the customer {customer} was deleted at Stripe, which does not list its payments any more"
            ))),
            Some(_) => Err(RequestFailure::Unknown(format!(
                "the customer {customer} exists at Stripe, but Stripe does not list its payments"
            ))),
        }
    }
}
