//! Customers: what a list of payments means whose customer Stripe does not know.

use reqwest::StatusCode;

use super::wire::Customer;
use super::{Failed, Stripe};
use billing::{GatewayToken, Payment};

impl Stripe {
    /// Returns the customer `id`; `None` if the account never had one.
    pub(super) async fn customer(&self, id: &str) -> Result<Option<Customer>, Failed> {
        match self.send::<Customer>(self.http.get(self.at(&format!("customers/{id}")))).await {
            Ok(customer) => Ok(Some(customer)),
            Err(Failed::Refused(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(Failed::Refused(_, error)) if error.code.as_deref() == Some("resource_missing") => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// Returns the payments of `customer`, whose list Stripe refused because it has no such customer: none, if the account never had the
    /// customer. A deleted customer may have paid, so the payments are unknown.
    pub(super) async fn payments_of_missing(&self, customer: &GatewayToken) -> Result<Vec<Payment>, Failed> {
        match self.customer(customer.as_str()).await? {
            None => Ok(Vec::new()),
            Some(found) if found.deleted => {
                Err(Failed::Unknown(format!("{customer} was deleted at Stripe, which lists none of its payments")))
            }
            Some(_) => Err(Failed::Unknown(format!("Stripe has {customer}, and does not list its payments"))),
        }
    }
}
