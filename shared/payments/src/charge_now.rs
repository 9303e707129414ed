//! A charge outside of a run, while somebody waits: the first payment of who signs up. By the same protocol: claimed, charged, settled;
//! and what is not known in time stays open, and is left to the next run.

use chrono::{NaiveDate, TimeDelta};

use super::charge::Permit;
use super::run::Work;
use super::{ChargeDue, Done, PaymentOutcome, PaymentRun, SignUp};
use billing::Subscription;
use settling::SettleError;
use store::{Claimed, SubscriptionKey, TableError};
use sweep::Task as _;

/// The gateway is given this long to answer while somebody waits.
pub const TIME_TO_WAIT: TimeDelta = TimeDelta::seconds(10);
/// A settlement is given this long then.
const MARGIN: TimeDelta = TimeDelta::seconds(4);
/// And all of it: an HTTP API gives up after 30 seconds.
const ALL: TimeDelta = TimeDelta::seconds(24);

impl ChargeDue {
    /// For charges while somebody waits, by a gateway that answers within [`TIME_TO_WAIT`] or not at all.
    pub fn while_waiting(self) -> Self {
        Self { time_to_charge: TIME_TO_WAIT + MARGIN, ..self }
    }

    /// Charges `subscription`, if it is payable on `today` and no other worker is charging it. Returns what is known of its first payment
    /// then; `None` if the subscription was erased meanwhile.
    ///
    /// # Errors
    /// [`TableError`]: the outcome is unknown; a later request reads it.
    pub async fn charge_now(
        &self,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<SignUp>, TableError> {
        let outcome = self.charge_in_time(subscription, today).await?;
        let is_processing = outcome == Some(PaymentOutcome::Processing);
        match self.table.get_subscription(&subscription.account, subscription.id).await? {
            Some(stored) => self.first_payment(stored, is_processing).await.map(Some),
            None => Ok(None),
        }
    }

    /// Charges `subscription` within the time that a customer waits. Returns the outcome if the charge came to one.
    async fn charge_in_time(
        &self,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<PaymentOutcome>, TableError> {
        let charged = self.claimed_and_charged(subscription, today);
        // Whatever is under way then is as after a crash.
        let came = tokio::time::timeout(ALL.to_std().unwrap_or_default(), charged).await;
        // That it is not counted yet is no reason to say that it was not made: it is counted with the next one.
        self.settling.count_or_warn(today, subscription.shard).await;
        match came {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(SettleError::Table(error))) => Err(error),
            Ok(Err(error)) => {
                tracing::error!(id = %subscription.id, %error, "a charge is left to be looked at");
                Ok(None)
            }
            Err(_) => {
                tracing::warn!(id = %subscription.id, "a charge is left to the next run");
                Ok(None)
            }
        }
    }

    async fn claimed_and_charged(
        &self,
        subscription: &Subscription,
        today: NaiveDate,
    ) -> Result<Option<PaymentOutcome>, SettleError> {
        let Some(seen) = subscription.next_payment_on.filter(|on| *on <= today) else { return Ok(None) };
        if !self.may_wait(self.clock.now() + ALL) {
            tracing::warn!(id = %subscription.id, "the gateway wants no requests now: a charge is left to the next run");
            return Ok(None);
        }
        let settings = self.table.get_settings().await?;
        let Some(settings) = settings.filter(|settings| settings.charging) else { return Ok(None) };
        let table_id = *self.table_id.get_or_init(|| settings.table_id);
        if let Some(reason) = self.refuses_table(&self.table).await? {
            tracing::error!(reason, "nothing is charged at sign-up");
            return Ok(None);
        }
        let claim = self.new_claim();
        let claimed = self.table.claim_payment(&SubscriptionKey::of(subscription), seen, table_id, claim).await?;
        let held = match claimed {
            Claimed::Held(held) => *held,
            Claimed::Refused(_) => return Ok(None),
        };
        let run = PaymentRun::new(true, self.max_failures);
        let work = Work { run: &run, today, deadline: claim.now + ALL };
        Ok(match self.charge_claimed(work, Permit::of(held, claim)?).await? {
            Done::Counted(outcome) => Some(outcome),
            _ => None,
        })
    }
}
