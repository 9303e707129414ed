//! Stripe's events: verified, looked at again, and done with once.

use std::sync::Arc;

use billing::{Dispute, DisputeStatus, GatewayToken, PaymentStatus, Period, ReceiptId};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use clock::Clock;
use config::BillingConfig;
use gateways::{About, GatewayError, SigningSecrets, Stripe, StripeDispute, StripePayment, WebhookError};
use settling::{
    Disputes, FindingError, Findings, Known, Late, RefundError, Refunds, Resolved, Resolving, Settling, SetupError,
    Setups,
};
use store::{Table, TableError};
use ulid::Ulid;

/// Works on Stripe's events.
#[derive(Debug)]
pub struct StripeEvents {
    table: Table,
    stripe: Arc<Stripe>,
    secrets: SigningSecrets,
    setups: Setups,
    refunds: Refunds,
    disputes: Disputes,
    settling: Settling,
    zone: Tz,
    lease: TimeDelta,
    clock: Arc<dyn Clock>,
}

/// What an event came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// It was worked on.
    Done,
    /// It was worked on before.
    Before,
    /// It is about nothing that is kept here.
    NotOurs,
}

/// Why an event was not worked on. It is to be sent again, unless it is none of Stripe's.
#[derive(Debug, thiserror::Error)]
pub enum ToldError {
    #[error(transparent)]
    NotTaken(#[from] WebhookError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Refund(#[from] RefundError),
    #[error("a worker holds the attempt of {due_on} until {until}")]
    Held { due_on: NaiveDate, until: DateTime<Utc> },
    #[error("the attempt of {due_on} is not settled: {reason}")]
    NotSettled { due_on: NaiveDate, reason: String },
    #[error(transparent)]
    Finding(#[from] FindingError),
}

impl ToldError {
    /// Whether the same event may be worked on later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Table(error) => error.is_transient() || error.is_conflict(),
            Self::Gateway(_) | Self::Held { .. } | Self::NotSettled { .. } => true,
            Self::Setup(error) => matches!(error, SetupError::Table(_) | SetupError::Gateway(_)),
            Self::Refund(error) => {
                matches!(error, RefundError::Table(_) | RefundError::Gateway(_) | RefundError::InProgress)
            }
            Self::Finding(error) => matches!(error, FindingError::Table(_) | FindingError::Gateway(_)),
            Self::NotTaken(_) => false,
        }
    }
}

impl StripeEvents {
    /// Events about what is kept in `table`, signed with one of `secrets`, and looked up with `stripe`.
    pub fn new(
        table: Table,
        stripe: Arc<Stripe>,
        secrets: SigningSecrets,
        (billing, lease): (&BillingConfig, TimeDelta),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let lead = billing.policy.lead;
        Self {
            setups: Setups::new(table.clone(), stripe.clone(), lead, clock.clone()),
            refunds: Refunds::new(table.clone(), stripe.clone(), clock.clone()),
            disputes: Disputes::new(table.clone(), billing, clock.clone()),
            settling: Settling::new(table.clone(), billing.policy.clone(), clock.clone()),
            table,
            stripe,
            secrets,
            zone: billing.zone,
            lease,
            clock,
        }
    }

    /// Works on the event that `body` is, if `signature`, its header `Stripe-Signature`, says that it is Stripe's.
    ///
    /// # Errors
    /// [`ToldError`].
    pub async fn take(&self, signature: &str, body: &[u8]) -> Result<Told, ToldError> {
        let event = self.secrets.verify(signature, body, self.clock.now())?;
        let Some(about) = &event.about else { return Ok(Told::NotOurs) };
        let name = format!("stripe:{}", event.id);
        if self.table.was_told(&name).await? {
            return Ok(Told::Before);
        }
        let told = match about {
            About::Payment(id) => match self.ours(id).await? {
                Some(paid) => self.payment(&paid).await?,
                None => Told::NotOurs,
            },
            About::Page(id) => match self.stripe.setup_of(id).await? {
                Some(setup) => self.setup(setup).await?,
                None => Told::NotOurs,
            },
            About::Refund(id) => match self.stripe.payment_of_refund(id).await? {
                Some(payment) => self.refunds(&payment).await?,
                None => Told::NotOurs,
            },
            About::ChargeOf(payment) => self.refunds(payment).await?,
            About::Dispute(id) => match self.stripe.dispute(id).await? {
                Some(dispute) => self.dispute(dispute).await?,
                None => Told::NotOurs,
            },
        };
        // Killed before that, it is worked on again, and comes to the same.
        self.table.note_told(&name, self.clock.now()).await?;
        tracing::info!(event = event.id, kind = event.kind, ?told, "an event of the gateway was worked on");
        Ok(told)
    }

    /// The payment `id`, if this table has asked for it: another deployment may have the same account at Stripe.
    async fn ours(&self, id: &GatewayToken) -> Result<Option<StripePayment>, ToldError> {
        let Some(paid) = self.stripe.intent(id).await? else { return Ok(None) };
        let settings = self.table.get_settings().await?;
        let is_ours = paid.payment.table.is_none() || paid.payment.table == settings.map(|settings| settings.table_id);
        Ok(is_ours.then_some(paid))
    }

    /// Settles the attempt that `paid` is of, if it is open and nobody works on it.
    async fn payment(&self, paid: &StripePayment) -> Result<Told, ToldError> {
        let (payment, due_on) = (&paid.payment, paid.payment.due_on);
        if matches!(payment.status, PaymentStatus::Declined(_))
            && let Some(receipt) = self.receipt(paid).await?
        {
            return self.returned(paid, receipt).await;
        }
        // What of another month or attempt is open is none of this event's business.
        let is_settled = match payment.status {
            PaymentStatus::Processing => true,
            PaymentStatus::Succeeded => self.receipt(paid).await?.is_some(),
            PaymentStatus::Declined(_) => !self.is_open(paid).await?,
        };
        if is_settled {
            return Ok(Told::Done);
        }
        let resolving = Resolving { settling: &self.settling, gateway: Some(self.stripe.as_ref()), lease: self.lease };
        let of = (&payment.account, payment.subscription);
        // An attempt of another period has nothing to do with this payment.
        if payment.status == PaymentStatus::Succeeded && !self.is_period_open(paid).await? {
            return self.late(paid).await;
        }
        match resolving.resolve(of, &Known::ToTheGateway, self.today()).await? {
            Resolved::Settled(_) | Resolved::NothingOpen => self.late(paid).await,
            Resolved::Held(until) => Err(ToldError::Held { due_on, until }),
            Resolved::Contradicted(reason) => Err(ToldError::NotSettled { due_on, reason }),
            Resolved::Missing => Ok(Told::NotOurs),
        }
    }

    /// Whether the attempt that `paid` was made for is the one that is open.
    async fn is_open(&self, paid: &StripePayment) -> Result<bool, ToldError> {
        let StripePayment { payment, .. } = paid;
        let stored = self.table.get_subscription(&payment.account, payment.subscription).await?;
        Ok(stored.and_then(|stored| stored.attempt).is_some_and(|open| open.no == payment.attempt_no))
    }

    /// Whether an attempt of the period of `paid` is open.
    async fn is_period_open(&self, paid: &StripePayment) -> Result<bool, ToldError> {
        let StripePayment { payment, .. } = paid;
        let stored = self.table.get_subscription(&payment.account, payment.subscription).await?;
        let open = stored.and_then(|stored| stored.attempt);
        Ok(open.is_some_and(|open| Period::of(open.due_on) == Period::of(payment.due_on)))
    }

    /// A success without a receipt and without an open attempt is settled, or becomes a finding.
    async fn late(&self, paid: &StripePayment) -> Result<Told, ToldError> {
        let payment = &paid.payment;
        if payment.status != PaymentStatus::Succeeded {
            return Ok(Told::Done);
        }
        let findings = Findings { settling: &self.settling, gateway: self.stripe.as_ref() };
        match findings.take(payment, &paid.sku, self.today()).await? {
            Late::Settled(_) | Late::Found(_) => Ok(Told::Done),
            Late::Elsewhere if self.receipt(paid).await?.is_some() => Ok(Told::Done),
            Late::Elsewhere => {
                let reason = "a payment of its period was begun meanwhile".to_owned();
                Err(ToldError::NotSettled { due_on: payment.due_on, reason })
            }
            Late::Missing => Ok(Told::NotOurs),
        }
    }

    /// The receipt of `paid`: the payment day may have been changed since it was asked for.
    async fn receipt(&self, paid: &StripePayment) -> Result<Option<ReceiptId>, ToldError> {
        let payment = &paid.payment;
        let (month, now) = (Period::of(payment.due_on), self.clock.now());
        let receipt = self.table.get_receipt_of_month(&payment.account, payment.subscription, month, now).await?;
        Ok(receipt.filter(|receipt| receipt.payment == payment.id).map(|receipt| receipt.id()))
    }

    /// Stores that the bank took `paid` back: it had succeeded, for it has a receipt, and has failed since.
    async fn returned(&self, paid: &StripePayment, receipt: ReceiptId) -> Result<Told, ToldError> {
        let (account, id) = (&paid.payment.account, &paid.payment.id);
        let stored = self.table.get_disputes_by_account(account).await?;
        let is_known = |dispute: &Dispute| dispute.payment == *id && dispute.status == DisputeStatus::Lost;
        if stored.iter().any(is_known) {
            return Ok(Told::Done);
        }
        let payment_method = charged_to(paid)?;
        let read = async {
            let now = self.clock.now();
            let StripePayment { payment, .. } = self.stripe.intent(id).await?.ok_or_else(|| gone(id))?;
            let PaymentStatus::Declined(decline) = payment.status else {
                return Err(GatewayError::Unknown { reason: format!("{id} has succeeded after all") }.into());
            };
            Ok::<_, ToldError>(Dispute {
                id: payment.id.clone(),
                account: payment.account,
                receipt,
                payment: payment.id,
                payment_method,
                amount: payment.amount,
                reason: decline.code,
                status: DisputeStatus::Returned,
                opened_at: now,
                closed_at: Some(now),
                version: 1,
            })
        };
        let kept = self.disputes.keep(account, id.as_str(), read).await?;
        tracing::warn!(payment = %kept.payment, %account, reason = kept.reason, "a payment failed after it had succeeded");
        Ok(Told::Done)
    }

    async fn setup(&self, id: Ulid) -> Result<Told, ToldError> {
        let Some(setup) = self.table.get_setup(id).await? else { return Ok(Told::NotOurs) };
        self.setups.complete(setup, self.today()).await?;
        Ok(Told::Done)
    }

    async fn refunds(&self, payment: &GatewayToken) -> Result<Told, ToldError> {
        let Some(paid) = self.ours(payment).await? else { return Ok(Told::NotOurs) };
        // Without a receipt there is nothing that could show them: it has expired, or the payment is an error of its own.
        if let Some(receipt) = self.receipt(&paid).await? {
            if matches!(paid.payment.status, PaymentStatus::Declined(_)) {
                return self.returned(&paid, receipt).await;
            }
            self.refunds.look_at(&paid.payment.account, &receipt, payment).await?;
        }
        Ok(Told::Done)
    }

    async fn dispute(&self, told: StripeDispute) -> Result<Told, ToldError> {
        let Some(payment) = &told.payment else { return Ok(Told::NotOurs) };
        let Some(paid) = self.ours(payment).await? else { return Ok(Told::NotOurs) };
        let payment_method = charged_to(&paid)?;
        let receipt = self.receipt(&paid).await?;
        let is_unsettled = receipt.is_none();
        let receipt = receipt.unwrap_or_else(|| receipt_of(&paid));
        let (account, id) = (paid.payment.account.clone(), told.id);
        let read = async {
            let told = self.stripe.dispute(&id).await?.ok_or_else(|| gone(&id))?;
            Ok::<_, ToldError>(Dispute {
                receipt,
                account: account.clone(),
                payment: paid.payment.id.clone(),
                payment_method,
                closed_at: told.status.is_closed().then(|| self.clock.now()),
                id: told.id,
                amount: told.amount,
                reason: told.reason,
                status: told.status,
                opened_at: told.opened_at,
                version: 1,
            })
        };
        let kept = self.disputes.keep(&account, id.as_str(), read).await?;
        tracing::warn!(dispute = %kept.id, %account, status = %kept.status, "a payment is disputed");
        // A debit may be disputed before its success is settled: its receipt is written now, and gets its mark.
        if is_unsettled {
            if self.is_open(&paid).await? {
                self.payment(&paid).await?;
            }
            if let Some(receipt) = self.receipt(&paid).await? {
                self.disputes.mark(&account, &receipt).await?;
            }
        }
        Ok(Told::Done)
    }

    fn today(&self) -> NaiveDate {
        self.clock.now().with_timezone(&self.zone).date_naive()
    }
}

/// The payment method of `paid`.
///
/// # Errors
/// [`GatewayError::Unknown`] if Stripe does not name it.
fn charged_to(paid: &StripePayment) -> Result<GatewayToken, GatewayError> {
    let id = &paid.payment.id;
    let unnamed = || GatewayError::Unknown { reason: format!("{id} does not name its payment method") };
    paid.payment_method.clone().ok_or_else(unnamed)
}

fn gone(id: &GatewayToken) -> GatewayError {
    GatewayError::Unknown { reason: format!("{id} is not there any more") }
}

/// The receipt that `paid` had.
fn receipt_of(paid: &StripePayment) -> ReceiptId {
    let payment = &paid.payment;
    ReceiptId { due_on: payment.due_on, subscription: payment.subscription, sku: paid.sku.clone() }
}
