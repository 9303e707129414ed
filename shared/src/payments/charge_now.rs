//! A charge outside of a run, while somebody waits: the first payment of who signs up. By the same protocol: claimed, charged, settled;
//! and what is not known in time stays open, and is left to the next run.

use std::sync::atomic::Ordering;

use chrono::{NaiveDate, TimeDelta};

use super::charge::Permit;
use super::{ChargeDue, ChargeError};
use crate::billing::Subscription;
use crate::sweep::Task as _;
use crate::table::{Claimed, SubscriptionKey, TableError};

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

    /// Charges `subscription`, if it is payable on `today` and nobody else is charging it. What has come of it the table says: it is paid,
    /// declined, still due, or open.
    ///
    /// # Errors
    /// [`TableError`]: what has come of it is to be read.
    pub async fn charge_now(&self, subscription: &Subscription, today: NaiveDate) -> Result<(), TableError> {
        let charged = self.claimed_and_charged(subscription, today);
        // Whatever is under way then is as after a crash.
        let came = tokio::time::timeout(ALL.to_std().unwrap_or_default(), charged).await;
        // That it is not counted yet is no reason to say that it was not made: it is counted with the next one.
        if let Err(error) = self.page_done(&self.table, subscription.shard, today).await {
            tracing::warn!(%error, "what was charged at sign-up is not counted in the day yet");
        }
        match came {
            Ok(Ok(())) => Ok(()),
            Ok(Err(ChargeError::Table(error))) => Err(error),
            Ok(Err(error)) => {
                tracing::error!(id = %subscription.id, %error, "a charge is left to be looked at");
                Ok(())
            }
            Err(_) => {
                tracing::warn!(id = %subscription.id, "a charge is left to the next run");
                Ok(())
            }
        }
    }

    async fn claimed_and_charged(&self, subscription: &Subscription, today: NaiveDate) -> Result<(), ChargeError> {
        let Some(seen) = subscription.next_payment_on.filter(|on| *on <= today) else { return Ok(()) };
        let settings = self.table.get_settings().await?;
        let Some(settings) = settings.filter(|settings| settings.charging) else { return Ok(()) };
        self.is_charging.store(true, Ordering::Relaxed);
        let table_id = *self.table_id.get_or_init(|| settings.table_id);
        if let Some(reason) = self.refuses_table(&self.table).await? {
            tracing::error!(reason, "nothing is charged at sign-up");
            return Ok(());
        }
        let claim = self.new_claim();
        let claimed = self.table.claim_payment(&SubscriptionKey::of(subscription), seen, table_id, claim).await?;
        let held = match claimed {
            Claimed::Held(held) => *held,
            // Our own claim, whose answer was lost.
            Claimed::Refused(Some(stored))
                if stored.attempt.as_ref().is_some_and(|open| open.held_by == claim.token) =>
            {
                *stored
            }
            Claimed::Refused(_) => return Ok(()),
        };
        let deadline = claim.now + ALL;
        self.charge_claimed(Permit::of(held, claim)?, today, deadline).await.map(drop)
    }
}
