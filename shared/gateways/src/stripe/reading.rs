//! Reads single objects from Stripe in their current state. After an event, the handler of inbound webhooks reads the
//! object of the event again, because events can arrive late and in any order.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ulid::Ulid;

use super::lists::ListedObject;
use super::refunds::Refund;
use super::wire_format::PaymentIntent;
use super::{RequestFailure, Stripe, amount};
use crate::{GatewayDispute, GatewayError, ListPage, TimeRange};
use billing::{DisputeStatus, GatewayToken, Money, Payment, Sku};

/// A payment that was requested by this software.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripePayment {
    pub payment: Payment,
    pub sku: Sku,
    /// The charged payment method, if Stripe returns it.
    pub payment_method: Option<GatewayToken>,
}

/// A dispute of any payment in the Stripe account, including payments of other programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeDispute {
    pub id: GatewayToken,
    /// The disputed PaymentIntent; `None` if the disputed charge has no PaymentIntent.
    pub payment: Option<GatewayToken>,
    pub amount: Money,
    pub reason: String,
    pub status: DisputeStatus,
    pub opened_at: DateTime<Utc>,
}

/// A PaymentIntent, with the payment method that it charges.
#[derive(Debug, Deserialize)]
struct Intent {
    #[serde(flatten)]
    intent: PaymentIntent,
    #[serde(default)]
    payment_method: Option<GatewayToken>,
}

/// A Checkout Session. Only its metadata is read.
#[derive(Debug, Deserialize)]
struct Session {
    #[serde(default)]
    metadata: HashMap<String, String>,
}

/// A dispute in Stripe's wire format.
#[derive(Debug, Deserialize)]
struct Dispute {
    id: GatewayToken,
    #[serde(default)]
    payment_intent: Option<GatewayToken>,
    amount: i64,
    currency: String,
    #[serde(default)]
    reason: String,
    status: String,
    /// The time at which the dispute was opened, in seconds since 1970.
    created: i64,
}

impl ListedObject for Dispute {
    fn id(&self) -> &GatewayToken {
        &self.id
    }
}

impl Dispute {
    /// Converts the amount, the status and the time. Fails if one of them is not valid.
    fn into_stripe_dispute(self) -> Result<StripeDispute, GatewayError> {
        let Dispute { id, .. } = &self;
        let invalid = |field: &str| GatewayError::Unknown { reason: format!("the dispute {id} has no valid {field}") };
        let currency = self.currency.to_ascii_uppercase().parse().map_err(|_| invalid("currency"))?;
        Ok(StripeDispute {
            amount: amount::from_stripe(self.amount, currency).ok_or_else(|| invalid("amount"))?,
            status: dispute_status(&self.status).ok_or_else(|| invalid("status"))?,
            opened_at: DateTime::<Utc>::from_timestamp(self.created, 0).ok_or_else(|| invalid("creation time"))?,
            id: self.id,
            payment: self.payment_intent,
            reason: self.reason,
        })
    }

    /// Converts this dispute like [`Self::into_stripe_dispute`], without its reason.
    fn into_gateway_dispute(self) -> Result<GatewayDispute, GatewayError> {
        let StripeDispute { id, payment, amount, status, opened_at, .. } = self.into_stripe_dispute()?;
        Ok(GatewayDispute { id, payment, amount, status, opened_at })
    }
}

impl Stripe {
    /// Returns the payment of the PaymentIntent `id`; `None` if the PaymentIntent does not exist, or this software did
    /// not request it.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn get_payment_intent(&self, id: &GatewayToken) -> Result<Option<StripePayment>, GatewayError> {
        let Some(found) = self.read_object::<Intent>(&format!("payment_intents/{id}")).await? else { return Ok(None) };
        let Intent { intent, payment_method } = found;
        let payment_method = payment_method.or_else(|| intent.failed_payment_method());
        let payment = intent.payment(intent.reported_status()).zip(intent.sku());
        Ok(payment.map(|(payment, sku)| StripePayment { payment, sku, payment_method }))
    }

    /// Returns the id of the payment method setup for which the Checkout Session `id` was created. Returns `None` if
    /// there is no such session, or this software did not create the session.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn setup_id_of_session(&self, id: &GatewayToken) -> Result<Option<Ulid>, GatewayError> {
        let session = self.read_object::<Session>(&format!("checkout/sessions/{id}")).await?;
        Ok(session.and_then(|session| session.metadata.get("dueday_setup")?.parse().ok()))
    }

    /// Returns the id of the payment that the refund `id` refunds; `None` if there is no such refund, or it refunds a
    /// charge without a PaymentIntent.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn payment_of_refund(&self, id: &GatewayToken) -> Result<Option<GatewayToken>, GatewayError> {
        Ok(self.read_object::<Refund>(&format!("refunds/{id}")).await?.and_then(|refund| refund.payment_intent))
    }

    /// Returns the dispute `id`; `None` if there is no such dispute.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response, or the dispute has a field with an unknown value.
    pub async fn get_dispute(&self, id: &GatewayToken) -> Result<Option<StripeDispute>, GatewayError> {
        let found = self.read_object::<Dispute>(&format!("disputes/{id}")).await?;
        found.map(Dispute::into_stripe_dispute).transpose()
    }

    /// Lists all disputes in the Stripe account that were opened at or after `since`.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    pub(super) async fn disputes_opened_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<GatewayDispute>, GatewayError> {
        let since = since.timestamp().to_string();
        let all: Vec<Dispute> = self.list_all("disputes", Some(("created[gte]", &since))).await?;
        all.into_iter().map(Dispute::into_gateway_dispute).collect()
    }

    /// Returns a list page of the disputes in the Stripe account that were opened in `range`.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub(super) async fn disputes_opened_in(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<ListPage<GatewayDispute>, GatewayError> {
        let page: ListPage<Dispute> = self.list_range("disputes", range, after, None).await?;
        let items = page.items.into_iter().map(Dispute::into_gateway_dispute).collect::<Result<_, GatewayError>>()?;
        Ok(ListPage { items, next: page.next })
    }

    /// Returns the object at `path`; `None` if it does not exist.
    async fn read_object<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, GatewayError> {
        match self.send::<T>(self.http.get(self.api_url(path))).await {
            Ok(object) => Ok(Some(object)),
            Err(RequestFailure::Refused(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Converts Stripe's status of a dispute ("The Dispute object" in Stripe's API reference); `None` for an unknown
/// status. A closed inquiry and a prevented dispute count as won, because they take no money from the merchant.
fn dispute_status(name: &str) -> Option<DisputeStatus> {
    Some(match name {
        "warning_needs_response" | "warning_under_review" => DisputeStatus::Inquiry,
        "needs_response" | "under_review" => DisputeStatus::Open,
        "won" | "warning_closed" | "prevented" => DisputeStatus::Won,
        "lost" => DisputeStatus::Lost,
        _ => return None,
    })
}
