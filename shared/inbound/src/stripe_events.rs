//! Handles events from Stripe: verifies the signature, reads the object of the event (such as a payment) from Stripe
//! again, and processes each event once.

use std::sync::Arc;

use billing::{Dispute, DisputeStatus, GatewayToken, Payment, PaymentStatus, ReceiptId};
use charging::{ApplyResult, ChargingEngine, LookUpError, OpenReason};
use chrono::{DateTime, NaiveDate, Utc};
use clock::Clock;
use config::{ConfigError, CurrentSecret};
use gateway_objects::{DisputeRecorder, PaymentMethodSetups, RefundError, RefundRequester, SetupError};
use gateways::{EventSubject, GatewayError, InboundWebhookError, SigningSecrets, Stripe, StripeEvent, StripePayment};
use store::{Table, TableError};
use ulid::Ulid;

/// Handles events from Stripe about payments, refunds, disputes and checkout pages.
#[derive(Debug)]
pub struct StripeEventHandler {
    table: Table,
    stripe: Arc<Stripe>,
    secrets: CurrentSecret<SigningSecrets>,
    setups: PaymentMethodSetups,
    refunds: RefundRequester,
    disputes: DisputeRecorder,
    engine: ChargingEngine,
    clock: Arc<dyn Clock>,
}

/// The result of handling an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboundOutcome {
    /// The event was processed.
    Processed,
    /// The event was processed before.
    AlreadyProcessed,
    /// The event concerns no payment, refund, dispute or setup of this table.
    Ignored,
}

/// The reason why an event was not processed. Stripe must send the event again, unless its signature is not valid.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum InboundError {
    #[error(transparent)]
    NotVerified(#[from] InboundWebhookError),
    /// The signing secret cannot be read.
    #[error(transparent)]
    Secret(#[from] ConfigError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    PaymentMethodSetup(#[from] SetupError),
    #[error(transparent)]
    Refund(#[from] RefundError),
    #[error("another worker has leased the attempt of {due_on} until {until}")]
    AttemptLeased { due_on: NaiveDate, until: DateTime<Utc> },
    #[error("the attempt of {due_on} is not settled: {reason}")]
    NotSettled { due_on: NaiveDate, reason: String },
}

impl From<LookUpError> for InboundError {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::Table(error) => Self::Table(error),
            LookUpError::Gateway(error) => Self::Gateway(error),
        }
    }
}

impl InboundError {
    /// Returns the name of the error, such as `NotSettled`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }

    /// Returns whether the same event may be processed successfully later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Table(error) => error.is_transient() || error.is_conflict(),
            Self::Secret(_) | Self::Gateway(_) | Self::AttemptLeased { .. } | Self::NotSettled { .. } => true,
            Self::PaymentMethodSetup(error) => matches!(error, SetupError::Table(_) | SetupError::Gateway(_)),
            Self::Refund(error) => {
                matches!(error, RefundError::Table(_) | RefundError::Gateway(_) | RefundError::InProgress)
            }
            Self::NotVerified(_) => false,
        }
    }
}

impl StripeEventHandler {
    /// Creates a handler of events about the payments in `table`. The events must be signed with one of `secrets`, and
    /// their objects are read with `stripe`.
    pub fn new(
        table: Table,
        stripe: Arc<Stripe>,
        secrets: impl Into<CurrentSecret<SigningSecrets>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            setups: PaymentMethodSetups::new(table.clone(), stripe.clone(), clock.clone()),
            refunds: RefundRequester::new(table.clone(), stripe.clone(), clock.clone()),
            disputes: DisputeRecorder::new(table.clone(), clock.clone()),
            engine: ChargingEngine::new(table.clone(), clock.clone()),
            table,
            stripe,
            secrets: secrets.into(),
            clock,
        }
    }

    /// Handles the event in the request `body`, whose header `Stripe-Signature` is `signature`.
    ///
    /// # Errors
    /// - [`InboundError::NotVerified`] if the signature or the event is not valid.
    /// - [`InboundError::AttemptLeased`] if another worker has leased the attempt that the event is about.
    /// - [`InboundError::NotSettled`] if this attempt cannot be settled now for another reason.
    /// - Any other error if the signing secret cannot be read, or a request to the table or to Stripe failed.
    pub async fn handle(&self, signature: &str, body: &[u8]) -> Result<InboundOutcome, InboundError> {
        // Use one time, so that an event that is processed across midnight has one date.
        let now = self.clock.now();
        let event = self.verify(signature, body).await?;
        let Some(subject) = &event.subject else { return Ok(InboundOutcome::Ignored) };
        self.table.refresh_policy(now).await?;
        let name = format!("stripe:{}", event.id);
        if self.table.is_inbound_event_processed(&name).await? {
            return Ok(InboundOutcome::AlreadyProcessed);
        }
        let outcome = match subject {
            EventSubject::Payment(id) => match self.own_payment(id).await? {
                Some(paid) => self.handle_payment(&paid, now).await?,
                None => InboundOutcome::Ignored,
            },
            EventSubject::CheckoutPage(id) => match self.stripe.setup_id_of_session(id).await? {
                Some(setup) => self.handle_setup(setup, self.table.policy().date_at(now)).await?,
                None => InboundOutcome::Ignored,
            },
            EventSubject::Refund(id) => match self.stripe.payment_of_refund(id).await? {
                Some(payment) => self.handle_refunds(&payment, now).await?,
                None => InboundOutcome::Ignored,
            },
            EventSubject::ChargeOfPayment(payment) => self.handle_refunds(payment, now).await?,
            EventSubject::Dispute(id) => match self.stripe.payment_of_dispute(id).await? {
                Some(payment) => self.handle_dispute(id, &payment, now).await?,
                None => InboundOutcome::Ignored,
            },
        };
        // If the process ends before this write, the event is processed again, with the same result.
        self.table.mark_inbound_event_processed(&name, self.clock.now()).await?;
        tracing::info!(event = event.id, kind = event.kind, told = ?outcome, "an event of the gateway was processed");
        Ok(outcome)
    }

    /// Verifies the event in the request `body`. If no secret matches and the secrets have been replaced since they
    /// were read, verifies the event with the new secrets.
    async fn verify(&self, signature: &str, body: &[u8]) -> Result<StripeEvent, InboundError> {
        let (secrets, now) = (self.secrets.get().await?, self.clock.now());
        match secrets.verify(signature, body, now) {
            Err(InboundWebhookError::NotSigned) => match self.secrets.get_replacement(&secrets).await {
                Some(newer) => Ok(newer.verify(signature, body, now)?),
                None => Err(InboundWebhookError::NotSigned.into()),
            },
            verified => Ok(verified?),
        }
    }

    /// Returns the payment `id`. Returns `None` if the payment does not exist, or was requested for another table:
    /// another deployment may use the same Stripe account.
    async fn own_payment(&self, id: &GatewayToken) -> Result<Option<StripePayment>, InboundError> {
        let Some(paid) = self.stripe.get_payment_intent(id).await? else { return Ok(None) };
        let settings = self.table.get_settings().await?;
        let is_own = paid.payment.table.is_none() || paid.payment.table == settings.map(|settings| settings.table_id);
        Ok(is_own.then_some(paid))
    }

    /// Handles an event about the payment `paid`, whose processing began at `now`. If the payment has a receipt and is
    /// now reported as failed, stores that the bank has reversed the payment. Otherwise, the engine applies the payment.
    async fn handle_payment(&self, paid: &StripePayment, now: DateTime<Utc>) -> Result<InboundOutcome, InboundError> {
        let payment = &paid.payment;
        match payment.status {
            PaymentStatus::Processing => return Ok(InboundOutcome::Processed),
            PaymentStatus::Declined(_) => {
                if let Some(receipt) = self.find_receipt(paid).await? {
                    return self.store_returned_payment(paid, receipt, now).await;
                }
            }
            PaymentStatus::Succeeded => {}
        }
        let (due_on, today) = (payment.due_on, self.table.policy().date_at(now));
        match self.engine.apply_payment(self.stripe.as_ref(), payment, today).await? {
            ApplyResult::Settled(_)
            | ApplyResult::AlreadySettled(_)
            | ApplyResult::NothingOpen
            | ApplyResult::FindingStored(_) => Ok(InboundOutcome::Processed),
            ApplyResult::Open(OpenReason::Leased { until }) => Err(InboundError::AttemptLeased { due_on, until }),
            ApplyResult::Open(OpenReason::NoResponse(error)) => Err(error.into()),
            ApplyResult::Open(reason) => Err(InboundError::NotSettled { due_on, reason: reason.to_string() }),
            ApplyResult::Missing => Ok(InboundOutcome::Ignored),
        }
    }

    /// Returns whether the open attempt of the subscription is the attempt of `paid`.
    async fn is_attempt_open(&self, paid: &StripePayment) -> Result<bool, InboundError> {
        let StripePayment { payment, .. } = paid;
        let stored = self.table.get_subscription(&payment.account, payment.subscription).await?;
        Ok(stored.and_then(|stored| stored.attempt).is_some_and(|open| open.no == payment.attempt_no))
    }

    /// Returns the id of the stored receipt of `paid`; `None` if the payment has no receipt. Looks for the receipt by
    /// month and not by due date, because the payment day may have changed since the payment was requested.
    async fn find_receipt(&self, paid: &StripePayment) -> Result<Option<ReceiptId>, InboundError> {
        let (payment, now) = (&paid.payment, self.clock.now());
        let Payment { account, subscription, .. } = payment;
        let receipt = self.table.get_receipt_of_month(account, *subscription, payment.period(), now).await?;
        Ok(receipt.filter(|receipt| receipt.payment == payment.id).map(|receipt| receipt.id()))
    }

    /// Stores that the bank has reversed the payment `paid`. The payment had succeeded, as its `receipt` shows, and
    /// Stripe now reports the payment as failed.
    async fn store_returned_payment(
        &self,
        paid: &StripePayment,
        receipt: ReceiptId,
        now: DateTime<Utc>,
    ) -> Result<InboundOutcome, InboundError> {
        let (account, id) = (&paid.payment.account, &paid.payment.id);
        let stored = self.table.get_disputes_by_account(account).await?;
        let is_lost_dispute = |dispute: &Dispute| dispute.payment == *id && dispute.status == DisputeStatus::Lost;
        if stored.iter().any(is_lost_dispute) {
            return Ok(InboundOutcome::Processed);
        }
        let payment_method = charged_payment_method(paid)?;
        let read = async {
            let read_at = self.clock.now();
            let StripePayment { payment, .. } =
                self.stripe.get_payment_intent(id).await?.ok_or_else(|| object_not_found(id))?;
            let PaymentStatus::Declined(decline) = payment.status else {
                return Err(GatewayError::Unknown {
                    reason: format!("the payment {id} has succeeded in the meantime"),
                }
                .into());
            };
            Ok::<_, InboundError>(Dispute {
                id: payment.id.clone(),
                account: payment.account,
                receipt,
                payment: payment.id,
                payment_method,
                amount: payment.amount,
                reason: decline.code,
                status: DisputeStatus::Returned,
                opened_at: read_at,
                closed_at: Some(read_at),
                version: 1,
            })
        };
        let stored_dispute = self.disputes.store_reported_dispute(account, id.as_str(), read, now).await?;
        let Dispute { payment, reason, .. } = &stored_dispute;
        tracing::warn!(%payment, %account, reason, "a payment failed after it had succeeded");
        Ok(InboundOutcome::Processed)
    }

    /// Completes the payment method setup `id`, if the customer has entered a payment method.
    async fn handle_setup(&self, id: Ulid, today: NaiveDate) -> Result<InboundOutcome, InboundError> {
        let Some(setup) = self.table.get_setup(id).await? else { return Ok(InboundOutcome::Ignored) };
        self.setups.complete(setup, today).await?;
        Ok(InboundOutcome::Processed)
    }

    /// Updates the stored refunds of the payment `payment`, or stores that the bank has reversed the payment.
    async fn handle_refunds(&self, payment: &GatewayToken, now: DateTime<Utc>) -> Result<InboundOutcome, InboundError> {
        let Some(paid) = self.own_payment(payment).await? else { return Ok(InboundOutcome::Ignored) };
        // If the payment has no receipt, because the receipt has expired or the payment is a finding, its refunds
        // cannot be stored.
        if let Some(receipt) = self.find_receipt(&paid).await? {
            if matches!(paid.payment.status, PaymentStatus::Declined(_)) {
                return self.store_returned_payment(&paid, receipt, now).await;
            }
            self.refunds.update_refunds_from_gateway(&paid.payment.account, &receipt, payment).await?;
        }
        Ok(InboundOutcome::Processed)
    }

    /// Stores the current state of the dispute `id` of `payment`, and marks the disputed payment method and a reversed
    /// receipt. A dispute of another program is ignored before its amount and status are read, because they may be
    /// unknown here.
    async fn handle_dispute(
        &self,
        id: &GatewayToken,
        payment: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<InboundOutcome, InboundError> {
        let Some(paid) = self.own_payment(payment).await? else { return Ok(InboundOutcome::Ignored) };
        let payment_method = charged_payment_method(&paid)?;
        let receipt = self.find_receipt(&paid).await?;
        let is_without_receipt = receipt.is_none();
        let receipt = receipt.unwrap_or_else(|| expected_receipt_id(&paid));
        let account = paid.payment.account.clone();
        let read = async {
            let current = self.stripe.get_dispute(id).await?.ok_or_else(|| object_not_found(id))?;
            Ok::<_, InboundError>(Dispute {
                receipt,
                account: account.clone(),
                payment: paid.payment.id.clone(),
                payment_method,
                closed_at: current.status.is_closed().then(|| self.clock.now()),
                id: current.id,
                amount: current.amount,
                reason: current.reason,
                status: current.status,
                opened_at: current.opened_at,
                version: 1,
            })
        };
        let stored_dispute = self.disputes.store_reported_dispute(&account, id.as_str(), read, now).await?;
        tracing::warn!(dispute = %stored_dispute.id, %account, status = %stored_dispute.status, "a payment is disputed");
        // The bank can dispute a debit whose success is not yet stored here. Store the success now, and mark the
        // receipt as reversed if the dispute is lost.
        if is_without_receipt {
            if self.is_attempt_open(&paid).await? {
                self.handle_payment(&paid, now).await?;
            }
            if let Some(receipt) = self.find_receipt(&paid).await? {
                self.disputes.update_dispute_and_reversal_marks(&account, &receipt, now).await?;
            }
        }
        Ok(InboundOutcome::Processed)
    }
}

/// Returns the payment method of `paid`.
///
/// # Errors
/// [`GatewayError::Unknown`] if the response of Stripe does not contain the payment method.
fn charged_payment_method(paid: &StripePayment) -> Result<GatewayToken, GatewayError> {
    let id = &paid.payment.id;
    let missing = || GatewayError::Unknown { reason: format!("the payment {id} does not contain its payment method") };
    paid.payment_method.clone().ok_or_else(missing)
}

/// The error for the object `id` of an event, if Stripe no longer returns this object.
fn object_not_found(id: &GatewayToken) -> GatewayError {
    GatewayError::Unknown { reason: format!("{id} no longer exists at Stripe") }
}

/// Returns the id that the receipt of `paid` will have when the payment is settled.
fn expected_receipt_id(paid: &StripePayment) -> ReceiptId {
    let payment = &paid.payment;
    ReceiptId { due_on: payment.due_on, subscription: payment.subscription, sku: paid.sku.clone() }
}
