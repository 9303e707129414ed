//! The charge at a sign-up, outside of a run: the first payment of a customer who waits for the response. This charge
//! has the same steps as a charge in a run: claim, charge, settle. If the outcome is not known in time, the attempt
//! stays open, and the next run looks up the attempt.

use std::sync::Arc;
use std::time::Duration;

use billing::Subscription;
use chrono::NaiveDate;
use clock::Clock;
use gateways::PaymentGateway;
use store::{Settings, SubscriptionKey, Table, TableError};
use tokio::sync::OnceCell;

use crate::{
    ApplyError, ApplyResult, ChargeConfig, ChargeContext, ChargeRun, Charger, ChargingEngine, NotClaimed,
    OlderTableCheck, OpenReason, SubscriptionWithFirstPayment,
};

/// The timeout of a request to the gateway while a customer waits.
pub const SIGN_UP_GATEWAY_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that is reserved for the settlement while a customer waits.
const SETTLE_MARGIN: Duration = Duration::from_secs(4);
/// The timeout of the whole charge while a customer waits. An HTTP API of API Gateway has a timeout of 30 seconds.
const SIGN_UP_TIMEOUT: Duration = Duration::from_secs(24);

/// Charges first payments while their customers wait. The gateway client must have the request timeout
/// [`SIGN_UP_GATEWAY_TIMEOUT`].
#[derive(Debug)]
pub struct SignUpCharges {
    pub(crate) charger: Charger,
    /// Compares the table with the gateway's latest payments; `None` if DynamoDB shows whether a table was restored.
    older_table_check: Option<Arc<OlderTableCheck>>,
    /// Set when a sign-up has found that the table accepts sign-ups: the table is not an unconfirmed copy. The check is
    /// not repeated, because a table does not become a copy later.
    accepts_sign_ups: OnceCell<()>,
}

impl SignUpCharges {
    /// Creates the charges at sign-ups in `table` through `gateway`.
    pub fn new(table: Table, gateway: Arc<dyn PaymentGateway>, config: &ChargeConfig, clock: Arc<dyn Clock>) -> Self {
        let charger = Charger::new(table, gateway, config, clock);
        let charger = Charger { time_to_charge: SIGN_UP_GATEWAY_TIMEOUT + SETTLE_MARGIN, ..charger };
        Self { charger, older_table_check: None, accepts_sign_ups: OnceCell::new() }
    }

    /// Adds `check`, the check of this process that the table is not older than the gateway's latest payments.
    pub fn with_older_table_check(self, check: Option<Arc<OlderTableCheck>>) -> Self {
        Self { older_table_check: check, ..self }
    }

    /// Returns the engine, which reads the state of first payments.
    pub fn engine(&self) -> &ChargingEngine {
        &self.charger.engine
    }

    /// Charges the first payment of `subscription`, if it can be claimed on the day `today`. Returns the stored
    /// subscription with the state of its first payment; `None` if the subscription was erased during the charge.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed. The outcome of the charge is then unknown; the caller can read
    /// it with a later request.
    pub async fn charge_now(
        &self,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<SubscriptionWithFirstPayment>, TableError> {
        let applied = self.charge_before_timeout(subscription, today).await?;
        let is_processing = applied == Some(ApplyResult::Open(OpenReason::Processing));
        match self.charger.engine.table.get_subscription(&subscription.account, subscription.id).await? {
            Some(stored) => self.engine().read_first_payment_state(stored, is_processing).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether customers may sign up in the table: the table is not a restored backup or a copy and not older
    /// than the gateway's payments, or an operator has confirmed it. Each call sends a GetItem and a DescribeTable
    /// request, until one call has returned `true`.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn accepts_sign_ups(&self) -> Result<bool, TableError> {
        if self.accepts_sign_ups.initialized() {
            return Ok(true);
        }
        match self.charger.engine.table.get_settings().await? {
            Some(settings) => self.accepts_sign_ups_with(&settings).await,
            None => Ok(true),
        }
    }

    /// Like [`SignUpCharges::accepts_sign_ups`], but uses `settings` instead of reading the settings of the table.
    async fn accepts_sign_ups_with(&self, settings: &Settings) -> Result<bool, TableError> {
        if self.accepts_sign_ups.initialized() {
            return Ok(true);
        }
        let (table, now) = (&self.charger.engine.table, self.charger.engine.clock.now());
        let copied = table.reason_to_refuse_copy(settings, now).await?;
        let refused = match (copied, &self.older_table_check) {
            (Some(reason), _) => Some(reason),
            (None, Some(check)) => check.reason_to_refuse(table, settings, now).await?,
            (None, None) => None,
        };
        if let Some(reason) = refused {
            tracing::error!(reason, "a sign-up cannot be charged");
            return Ok(false);
        }
        let _ = self.accepts_sign_ups.set(());
        Ok(true)
    }

    /// Charges `subscription` within [`SIGN_UP_TIMEOUT`]. Returns what the charge has done; `None` if the subscription
    /// was not charged or the outcome is not known yet.
    async fn charge_before_timeout(
        &self,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<ApplyResult>, TableError> {
        let run = ChargeRun::default();
        let charged = self.claim_and_charge(&run, subscription, today);
        // After a timeout, as after a crash, the attempt stays open until a run takes it over.
        let result = tokio::time::timeout(SIGN_UP_TIMEOUT, charged).await;
        run.uncounted_charges.write_or_warn(&self.charger.engine.table, today, subscription.shard).await;
        match result {
            Ok(Ok(applied)) => Ok(applied),
            Ok(Err(ApplyError::Table(error))) => Err(error),
            Ok(Err(error)) => {
                tracing::error!(id = %subscription.id, %error, error_type = error.error_type(), "a charge at sign-up could not be settled: an operator must resolve it");
                Ok(None)
            }
            Err(_) => {
                tracing::warn!(id = %subscription.id, "the charge at a sign-up timed out: the next run settles it");
                Ok(None)
            }
        }
    }

    /// Claims and charges `subscription`, as the only payment of `run`. Returns `None` if the subscription was not
    /// charged, for example because it is not due, because charging is switched off, or because the claim was refused.
    async fn claim_and_charge(
        &self,
        run: &ChargeRun,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<ApplyResult>, ApplyError> {
        let Some(seen_on) = subscription.next_payment_on.filter(|on| *on <= today) else { return Ok(None) };
        let (table, clock) = (&self.charger.engine.table, &self.charger.engine.clock);
        if !self.charger.has_time_to_charge_after_pause(clock.now() + SIGN_UP_TIMEOUT) {
            tracing::warn!(id = %subscription.id, "because of the gateway's rate limit, the next run charges this sign-up");
            return Ok(None);
        }
        let Some(settings) = table.get_settings().await? else { return Ok(None) };
        run.apply_settings(&settings);
        let Some(table_id) = run.table_to_charge() else { return Ok(None) };
        if !self.accepts_sign_ups_with(&settings).await? {
            return Ok(None);
        }
        if let Some(reason) = self.charger.reason_to_refuse_gateway_account(table, &settings).await? {
            tracing::error!(reason, "a sign-up cannot be charged now");
            return Ok(None);
        }
        self.charger.wait_for_turn().await;
        let key = SubscriptionKey::from_subscription(subscription);
        let permit = match self.charger.claim_payment(&key, table_id, seen_on, today).await {
            Ok(permit) => permit,
            Err(NotClaimed::Table(error)) => return Err(error.into()),
            Err(NotClaimed::Refused { .. } | NotClaimed::Missing) => return Ok(None),
        };
        let context = ChargeContext { run, today, deadline: permit.claimed_at + SIGN_UP_TIMEOUT };
        self.charger.charge_claimed(context, permit).await.map(Some)
    }
}
