//! Reads single objects from Stripe in their current state. After an event, the handler of inbound webhooks reads the
//! object of the event again, because events can arrive late and in any order.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use reqwest::{RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ulid::Ulid;

use super::wire_format::{PaymentIntent, null_as_default};
use super::{RequestFailure, Stripe, amount};
use crate::{GatewayDispute, GatewayError, UnreadableObject};
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

/// A Checkout Session. Only its metadata is read.
#[derive(Debug, Deserialize)]
struct SessionMetadata {
    #[serde(default, deserialize_with = "null_as_default")]
    metadata: HashMap<String, String>,
}

/// A refund or a dispute. Only the payment that it refunds or disputes is read.
#[derive(Debug, Deserialize)]
struct PaymentReference {
    #[serde(default)]
    payment_intent: Option<GatewayToken>,
}

/// A dispute in Stripe's wire format.
#[derive(Debug, Deserialize)]
struct DisputeObject {
    id: GatewayToken,
    #[serde(default)]
    payment_intent: Option<GatewayToken>,
    amount: i64,
    currency: String,
    #[serde(default, deserialize_with = "null_as_default")]
    reason: String,
    status: String,
    /// The time at which the dispute was opened, in seconds since 1970.
    created: i64,
}

impl DisputeObject {
    /// Converts the amount, the status and the time. Fails with the reason if one of them is not valid.
    fn into_stripe_dispute(self) -> Result<StripeDispute, String> {
        let invalid = |field: &str| format!("it has no valid {field}");
        let currency = self.currency.to_ascii_uppercase().parse().map_err(|_| invalid("currency"))?;
        Ok(StripeDispute {
            amount: amount::money_from_stripe_amount(self.amount, currency).ok_or_else(|| invalid("amount"))?,
            status: parse_dispute_status(&self.status).ok_or_else(|| invalid("status"))?,
            opened_at: DateTime::<Utc>::from_timestamp(self.created, 0).ok_or_else(|| invalid("creation time"))?,
            id: self.id,
            payment: self.payment_intent,
            reason: self.reason,
        })
    }
}

/// Reads a dispute from `object`.
///
/// # Errors
/// [`UnreadableObject`] if a field is missing or is not valid.
fn read_dispute(object: &Value) -> Result<StripeDispute, UnreadableObject> {
    let read = DisputeObject::deserialize(object).map_err(|error| error.to_string());
    let payment = || object["payment_intent"].as_str()?.parse().ok();
    read.and_then(DisputeObject::into_stripe_dispute).map_err(|reason| UnreadableObject::new(object, payment(), reason))
}

/// Reads a dispute in a list from `object`. Returns `None` if the disputed charge has no PaymentIntent: this software
/// creates only PaymentIntents, so such a charge belongs to another program.
pub(super) fn read_listed_dispute(object: &Value) -> Option<Result<GatewayDispute, UnreadableObject>> {
    object["payment_intent"].as_str()?;
    let without_reason = |StripeDispute { id, payment, amount, status, opened_at, .. }| GatewayDispute {
        id,
        payment,
        amount,
        status,
        opened_at,
    };
    Some(read_dispute(object).map(without_reason))
}

impl Stripe {
    /// Returns the payment of the PaymentIntent `id`; `None` if the PaymentIntent does not exist, or this software did
    /// not request it.
    ///
    /// # Errors
    /// - [`GatewayError::Unreadable`] if the PaymentIntent contradicts itself or cannot be read.
    /// - Any other [`GatewayError`] if there is no usable response.
    pub async fn get_payment_intent(&self, id: &GatewayToken) -> Result<Option<StripePayment>, GatewayError> {
        let object: Option<Value> = self.read_stripe_object(self.payment_intent_request(id)).await?;
        let Some((object, intent)) =
            object.as_ref().and_then(|object| Some((object, PaymentIntent::read_own(object)?)))
        else {
            return Ok(None);
        };
        let intent = intent?;
        let charged = object["payment_method"].as_str().and_then(|id| id.parse().ok());
        Ok(Some(StripePayment {
            payment: intent.reported_payment()?,
            sku: intent.sku().ok_or_else(|| intent.unreadable("it has no valid SKU".to_owned()))?,
            payment_method: charged.or_else(|| intent.failed_payment_method()),
        }))
    }

    /// Returns the request for the PaymentIntent `id` with its latest charge in expanded form.
    pub(super) fn payment_intent_request(&self, id: &GatewayToken) -> RequestBuilder {
        self.http.get(self.api_url(&format!("payment_intents/{id}"))).query(&[("expand[0]", "latest_charge")])
    }

    /// Returns the id of the payment method setup for which the Checkout Session `id` was created. Returns `None` if
    /// there is no such session, or this software did not create the session.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn setup_id_of_session(&self, id: &GatewayToken) -> Result<Option<Ulid>, GatewayError> {
        let session = self.read_object_at::<SessionMetadata>(&format!("checkout/sessions/{id}")).await?;
        Ok(session.and_then(|session| session.metadata.get("dueday_setup")?.parse().ok()))
    }

    /// Returns the id of the payment that the refund `id` refunds; `None` if there is no such refund, or it refunds a
    /// charge without a PaymentIntent.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn payment_of_refund(&self, id: &GatewayToken) -> Result<Option<GatewayToken>, GatewayError> {
        let refund = self.read_object_at::<PaymentReference>(&format!("refunds/{id}")).await?;
        Ok(refund.and_then(|refund| refund.payment_intent))
    }

    /// Returns the id of the payment that the dispute `id` disputes; `None` if there is no such dispute, or it disputes
    /// a charge without a PaymentIntent.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn payment_of_dispute(&self, id: &GatewayToken) -> Result<Option<GatewayToken>, GatewayError> {
        let dispute = self.read_object_at::<PaymentReference>(&format!("disputes/{id}")).await?;
        Ok(dispute.and_then(|dispute| dispute.payment_intent))
    }

    /// Returns the dispute `id`; `None` if there is no such dispute.
    ///
    /// # Errors
    /// - [`GatewayError::Unreadable`] if the dispute has a field with an unknown value.
    /// - Any other [`GatewayError`] if there is no usable response.
    pub async fn get_dispute(&self, id: &GatewayToken) -> Result<Option<StripeDispute>, GatewayError> {
        let found: Option<Value> = self.read_object_at(&format!("disputes/{id}")).await?;
        Ok(found.as_ref().map(read_dispute).transpose()?)
    }

    /// Returns the object at `path`; `None` if it does not exist.
    async fn read_object_at<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, GatewayError> {
        self.read_stripe_object(self.http.get(self.api_url(path))).await
    }

    /// Returns the object that `request` reads; `None` if it does not exist.
    async fn read_stripe_object<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<Option<T>, GatewayError> {
        match self.send::<T>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(RequestFailure::Refused(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Converts Stripe's status of a dispute ("The Dispute object" in Stripe's API reference); `None` for an unknown
/// status. A closed inquiry and a prevented dispute count as won, because they take no money from the merchant.
fn parse_dispute_status(name: &str) -> Option<DisputeStatus> {
    Some(match name {
        "warning_needs_response" | "warning_under_review" => DisputeStatus::Inquiry,
        "needs_response" | "under_review" => DisputeStatus::Open,
        "won" | "warning_closed" | "prevented" => DisputeStatus::Won,
        "lost" => DisputeStatus::Lost,
        _ => return None,
    })
}
