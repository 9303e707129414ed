//! Stripe's objects as they stand now, one by one: what an event is about is read again, for events come late and in no order.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ulid::Ulid;

use super::lists::Listed;
use super::refunds::Refund;
use super::wire::PaymentIntent;
use super::{Failed, Stripe, amount};
use crate::{DisputeMade, GatewayError};
use billing::{DisputeStatus, GatewayToken, Money, Payment, Sku};

/// A payment that was asked for here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripePayment {
    pub payment: Payment,
    pub sku: Sku,
    /// What it was charged to, if it says so.
    pub payment_method: Option<GatewayToken>,
}

/// A dispute of a payment, whoever has asked for that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeDispute {
    pub id: GatewayToken,
    /// The PaymentIntent; absent of a charge that has none.
    pub payment: Option<GatewayToken>,
    pub amount: Money,
    pub reason: String,
    pub status: DisputeStatus,
    pub opened_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
struct Intent {
    #[serde(flatten)]
    intent: PaymentIntent,
    #[serde(default)]
    payment_method: Option<GatewayToken>,
}

#[derive(Debug, Deserialize)]
struct Session {
    #[serde(default)]
    metadata: HashMap<String, String>,
}

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
    /// Seconds since 1970.
    created: i64,
}

impl Listed for Dispute {
    fn id(&self) -> &GatewayToken {
        &self.id
    }
}

impl Dispute {
    fn read(self) -> Result<StripeDispute, GatewayError> {
        let Dispute { id, .. } = &self;
        let unreadable = |what: &str| GatewayError::Unknown { reason: format!("{id} has no readable {what}") };
        let currency = self.currency.to_ascii_uppercase().parse().map_err(|_| unreadable("currency"))?;
        Ok(StripeDispute {
            amount: amount::from_stripe(self.amount, currency).ok_or_else(|| unreadable("amount"))?,
            status: status(&self.status).ok_or_else(|| unreadable("status"))?,
            opened_at: DateTime::<Utc>::from_timestamp(self.created, 0).ok_or_else(|| unreadable("date"))?,
            id: self.id,
            payment: self.payment_intent,
            reason: self.reason,
        })
    }
}

impl Stripe {
    /// The PaymentIntent `id`; `None` if there is none, or it was not asked for here.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn intent(&self, id: &GatewayToken) -> Result<Option<StripePayment>, GatewayError> {
        let Some(read) = self.object::<Intent>(&format!("payment_intents/{id}")).await? else { return Ok(None) };
        let Intent { intent, payment_method } = read;
        let payment_method = payment_method.or_else(|| intent.failed_payment_method());
        let named = intent.payment(intent.told()).zip(intent.sku());
        Ok(named.map(|(payment, sku)| StripePayment { payment, sku, payment_method }))
    }

    /// The setup that the Checkout Session `id` was opened for; `None` if there is none, or it was opened elsewhere.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn setup_of(&self, id: &GatewayToken) -> Result<Option<Ulid>, GatewayError> {
        let session = self.object::<Session>(&format!("checkout/sessions/{id}")).await?;
        Ok(session.and_then(|session| session.metadata.get("dueday_setup")?.parse().ok()))
    }

    /// The payment that the refund `id` is of; `None` if there is none.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn payment_of_refund(&self, id: &GatewayToken) -> Result<Option<GatewayToken>, GatewayError> {
        Ok(self.object::<Refund>(&format!("refunds/{id}")).await?.and_then(|refund| refund.payment_intent))
    }

    /// The dispute `id`; `None` if there is none.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn dispute(&self, id: &GatewayToken) -> Result<Option<StripeDispute>, GatewayError> {
        let read = self.object::<Dispute>(&format!("disputes/{id}")).await?;
        read.map(Dispute::read).transpose()
    }

    /// All disputes opened since an instant, of whatever payment.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub(super) async fn disputes_opened_since(&self, since: DateTime<Utc>) -> Result<Vec<DisputeMade>, GatewayError> {
        let since = since.timestamp().to_string();
        let all: Vec<Dispute> = self.list_all("disputes", ("created[gte]", &since)).await?;
        let made = |dispute: Dispute| {
            let StripeDispute { id, payment, amount, status, opened_at, .. } = dispute.read()?;
            Ok(DisputeMade { id, payment, amount, status, opened_at })
        };
        all.into_iter().map(made).collect()
    }

    async fn object<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, GatewayError> {
        match self.send::<T>(self.http.get(self.at(path))).await {
            Ok(object) => Ok(Some(object)),
            Err(Failed::Refused(StatusCode::NOT_FOUND, _)) => Ok(None),
            Err(failed) => Err(failed.into()),
        }
    }
}

/// Maps the status of a dispute ("The Dispute object" in Stripe's API reference). An inquiry takes no money back, and neither
/// does one that was closed, or a dispute that was prevented.
fn status(name: &str) -> Option<DisputeStatus> {
    Some(match name {
        "warning_needs_response" | "warning_under_review" => DisputeStatus::Inquiry,
        "needs_response" | "under_review" => DisputeStatus::Open,
        "won" | "warning_closed" | "prevented" => DisputeStatus::Won,
        "lost" => DisputeStatus::Lost,
        _ => return None,
    })
}
