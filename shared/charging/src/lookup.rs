//! Looks one attempt up in the gateway's list of the customer's payments.

use billing::{
    Attempt, InDoubtResolution, Payment, Subscription, describe_double_payment, is_decline_of_month,
    resolve_attempt_in_doubt, successful_payments,
};
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use gateways::{GatewayError, PaymentGateway};
use store::TableError;

use crate::ChargingEngine;

/// The margin before the due date or the claim of an attempt (whichever is earlier), from which a look-up of the
/// attempt lists payments. The margin is necessary because time zones and clocks differ.
const LIST_START_MARGIN: TimeDelta = TimeDelta::days(1);

/// What the gateway reports about an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LookedUp {
    /// The payments of the attempt's customer at the gateway.
    pub listed: Vec<Payment>,
    /// The next step for the attempt.
    pub resolution: InDoubtResolution,
    /// A message for the operator if the month was paid more than once; otherwise `None`.
    pub paid_twice: Option<String>,
    /// Whether the list contains a payment of a later attempt than the table. Then the table was restored from a backup,
    /// and the look-up has switched charging off. The resolution is right nevertheless.
    pub is_table_older: bool,
}

/// A request of a look-up, or of the application of a reported payment, failed.
#[derive(Debug, thiserror::Error)]
pub enum LookUpError {
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    #[error(transparent)]
    Table(#[from] TableError),
}

impl ChargingEngine {
    /// Looks `attempt` of `subscription` up at `gateway`: lists the payments of its customer since the day before the
    /// attempt's due date or claim, whichever is earlier. Each declined payment of the attempt's month is read once more:
    /// only the status of that response counts, because a gateway can list a payment as declined (Stripe: `canceled`)
    /// although its money moved. If the list already contains a successful payment of the month, nothing is charged
    /// again, so nothing is read. If the list proves that the table was restored from a backup, switches charging off
    /// until an operator has confirmed the table.
    ///
    /// # Errors
    /// [`LookUpError::Gateway`] if the list could not be read completely, or a decline was not confirmed;
    /// [`LookUpError::Table`] if charging could not be switched off.
    pub(crate) async fn look_up(
        &self,
        gateway: &dyn PaymentGateway,
        subscription: &Subscription,
        attempt: &Attempt,
    ) -> Result<LookedUp, LookUpError> {
        let mut listed =
            gateway.payments_of_customer(&attempt.payment_method.customer, earliest_payment_time(attempt)).await?;
        if successful_payments(subscription, attempt, &listed).is_empty() {
            for declined in listed.iter_mut().filter(|payment| is_decline_of_month(payment, subscription, attempt)) {
                *declined = read_declined_payment(gateway, declined).await?;
            }
        }
        let now = self.clock.now();
        let is_table_older = self.notice_older_table(subscription, attempt, &listed, now).await?;
        let resolution = resolve_attempt_in_doubt(subscription, attempt, &listed, now);
        let paid_twice = describe_double_payment(subscription, attempt, &listed);
        Ok(LookedUp { listed, resolution, paid_twice, is_table_older })
    }

    /// If `listed`, the gateway's payments of the customer of `attempt`, contains a payment of a later attempt than the
    /// stored `subscription`, the table was restored from a backup: switches charging off until an operator has
    /// confirmed the table. Returns whether this is so.
    async fn notice_older_table(
        &self,
        subscription: &Subscription,
        attempt: &Attempt,
        listed: &[Payment],
        now: DateTime<Utc>,
    ) -> Result<bool, TableError> {
        let Some(id) = attempt.table else { return Ok(false) };
        let mut later = subscription.payments_of_later_attempts(id, listed, now).collect::<Vec<_>>();
        later.sort_by_key(|payment| payment.created_at);
        let Some(later) = later.first() else { return Ok(false) };
        // An attempt that was open in the backup was claimed before the backup.
        self.table.record_backup_time(later.created_at.min(attempt.claimed_at)).await?;
        self.table.record_copy(now).await?;
        let Subscription { account, id, .. } = subscription;
        tracing::error!(%account, %id, payment = %later.id, "a later attempt than in the table was paid: the table was restored from a backup, and charging is switched off");
        Ok(true)
    }
}

/// Returns the time from which a look-up of `attempt` must list payments. All payments of the period of `attempt`, also
/// those of earlier attempts, were made after this time.
fn earliest_payment_time(attempt: &Attempt) -> DateTime<Utc> {
    attempt.due_on.and_time(NaiveTime::MIN).and_utc().min(attempt.claimed_at) - LIST_START_MARGIN
}

/// Returns the current state of `listed`, a payment in the list of `gateway`.
///
/// # Errors
/// [`GatewayError::Unreadable`] if `gateway` returns no such payment, or other data than that in its list. Any other
/// [`GatewayError`] if there is no usable response.
async fn read_declined_payment(gateway: &dyn PaymentGateway, listed: &Payment) -> Result<Payment, GatewayError> {
    let compared = |payment: &Payment| {
        let Payment { id, table, account, subscription, due_on, attempt_no, amount, .. } = payment.clone();
        (id, table, account, subscription, due_on, attempt_no, amount)
    };
    match gateway.payment(&listed.id).await? {
        Some(current) if compared(&current) == compared(listed) => Ok(current),
        current => Err(GatewayError::Unreadable {
            reason: format!("the list contains {listed:?}, and the payment itself is {current:?}"),
        }),
    }
}
