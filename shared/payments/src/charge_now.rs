//! The charge at a sign-up, outside of a run: the first payment of a customer who waits for the response. This charge
//! has the same steps as a charge in a run: claim, charge, settle. If the outcome is not known in time, the attempt
//! stays open, and the next run looks up the attempt.

use chrono::{NaiveDate, TimeDelta};

use super::charge::ChargePermit;
use super::run::RowContext;
use super::{PaymentBatch, PaymentOutcome, PaymentRun, RowResult, SubscriptionWithFirstPayment};
use billing::Subscription;
use settling::SettleError;
use store::{ClaimOutcome, Settings, SubscriptionKey, TableError};
use sweep::reason_to_refuse_copied_table;

/// The timeout of a request to the gateway while a customer waits.
pub const SIGN_UP_GATEWAY_TIMEOUT: TimeDelta = TimeDelta::seconds(10);
/// The time that is reserved for the settlement while a customer waits.
const SETTLE_MARGIN: TimeDelta = TimeDelta::seconds(4);
/// The timeout of the whole charge while a customer waits. An HTTP API of API Gateway has a timeout of 30 seconds.
const SIGN_UP_TIMEOUT: TimeDelta = TimeDelta::seconds(24);

impl PaymentBatch {
    /// Returns this batch with the shorter time limits of charges at sign-up. The batch's gateway client must have the
    /// request timeout [`SIGN_UP_GATEWAY_TIMEOUT`].
    pub fn for_sign_up(self) -> Self {
        Self { time_to_charge: SIGN_UP_GATEWAY_TIMEOUT + SETTLE_MARGIN, ..self }
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
        let outcome = self.charge_before_timeout(subscription, today).await?;
        let is_processing = outcome == Some(PaymentOutcome::Processing);
        match self.table.get_subscription(&subscription.account, subscription.id).await? {
            Some(stored) => self.read_first_payment_state(stored, is_processing).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether customers may sign up in the table: the table is not a restored backup or a copy, or an operator
    /// has confirmed it. Each call sends a GetItem and a DescribeTable request, until one call has returned `true`.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn accepts_sign_ups(&self) -> Result<bool, TableError> {
        if self.accepts_sign_ups.initialized() {
            return Ok(true);
        }
        match self.table.get_settings().await? {
            Some(settings) => self.accepts_sign_ups_with(&settings).await,
            None => Ok(true),
        }
    }

    /// Like [`PaymentBatch::accepts_sign_ups`], but uses `settings` instead of reading the settings of the table.
    async fn accepts_sign_ups_with(&self, settings: &Settings) -> Result<bool, TableError> {
        if self.accepts_sign_ups.initialized() {
            return Ok(true);
        }
        if let Some(reason) = reason_to_refuse_copied_table(&self.table, settings, self.clock.now()).await? {
            tracing::error!(reason, "a sign-up cannot be charged");
            return Ok(false);
        }
        let _ = self.accepts_sign_ups.set(());
        Ok(true)
    }

    /// Charges `subscription` within [`SIGN_UP_TIMEOUT`]. Returns the outcome; `None` if the subscription was not
    /// charged or the outcome is not known yet.
    async fn charge_before_timeout(
        &self,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<PaymentOutcome>, TableError> {
        let run = PaymentRun::default();
        let charged = self.claim_and_charge(&run, subscription, today);
        // After a timeout, as after a crash, the attempt stays open until a run takes it over.
        let result = tokio::time::timeout(SIGN_UP_TIMEOUT.to_std().unwrap_or_default(), charged).await;
        run.uncounted_charges.write_or_warn(&self.table, today, subscription.shard).await;
        match result {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(SettleError::Table(error))) => Err(error),
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

    /// Claims and charges `subscription`, as the only row of `run`. Returns `None` if the charge ended with a failure, or
    /// if the subscription was not charged, for example because it is not due, because charging is switched off, or
    /// because the claim was refused.
    async fn claim_and_charge(
        &self,
        run: &PaymentRun,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<PaymentOutcome>, SettleError> {
        let Some(seen) = subscription.next_payment_on.filter(|on| *on <= today) else { return Ok(None) };
        if !self.has_time_to_charge_after_pause(self.clock.now() + SIGN_UP_TIMEOUT) {
            tracing::warn!(id = %subscription.id, "because of the gateway's rate limit, the next run charges this sign-up");
            return Ok(None);
        }
        let settings = self.table.get_settings().await?;
        let Some(settings) = settings.filter(|settings| settings.charging) else { return Ok(None) };
        if !self.accepts_sign_ups_with(&settings).await? {
            return Ok(None);
        }
        let table_id = *self.table_id.get_or_init(|| settings.table_id);
        if let Some(reason) = self.reason_to_refuse_gateway_account(&self.table, &settings).await? {
            tracing::error!(reason, "a sign-up cannot be charged now");
            return Ok(None);
        }
        let claim = self.new_claim();
        let claimed =
            self.table.claim_payment(&SubscriptionKey::from_subscription(subscription), seen, table_id, claim).await?;
        let held = match claimed {
            ClaimOutcome::Claimed(held) => *held,
            ClaimOutcome::Refused(_) => return Ok(None),
        };
        run.apply_settings(&settings);
        let context = RowContext { run, today, deadline: claim.now + SIGN_UP_TIMEOUT };
        Ok(match self.charge_claimed_attempt(context, ChargePermit::from_claim(held, claim)?).await? {
            RowResult::Counted(outcome) => Some(outcome),
            _ => None,
        })
    }
}
