//! The attempts in a table that was restored from a backup, if the gateway has a payment of a later attempt than the
//! backup. The original table had closed each earlier attempt before it began the later attempt.

use billing::{FindingReason, Payment, PaymentStatus, Subscription};
use charging::{ApplyResult, OpenReason, StatedOutcome};
use gateways::PaymentGateway;
use store::ignore_refusal;

use crate::reconciler::{ReconcileError, Reconciler};

impl Reconciler {
    /// If the attempt of `payment` is later than the latest attempt of its subscription in the backup, closes the open
    /// attempt of the subscription, and stores the number of the later attempt. Without this, a later attempt would get
    /// the number of an attempt that the backup does not contain, and each look-up would notice the restored table
    /// again. Changes nothing while the open attempt cannot be closed: its payment is then reported as a difference.
    ///
    /// # Errors
    /// [`ReconcileError`] if a request to the table or to the gateway failed.
    pub(crate) async fn continue_after_attempt_of(&self, payment: &Payment) -> Result<(), ReconcileError> {
        let stored = self.table.get_subscription(&payment.account, payment.subscription).await?;
        let Some(stored) = stored.filter(|stored| stored.attempt_seq < payment.attempt_no) else { return Ok(()) };
        let stored = match stored.attempt {
            None => stored,
            Some(_) => {
                self.close_open_attempt(&stored, payment).await?;
                let closed = self.table.get_subscription(&payment.account, payment.subscription).await?;
                let Some(closed) = closed.filter(|closed| closed.attempt.is_none()) else { return Ok(()) };
                closed
            }
        };
        let raise = |stored: &Subscription| match stored.attempt_seq < payment.attempt_no && stored.attempt.is_none() {
            true => Ok(Subscription { attempt_seq: payment.attempt_no, ..stored.clone() }),
            false => Err(()),
        };
        Ok(ignore_refusal(self.table.rewrite_subscription(stored, raise).await)?)
    }

    /// Closes the open attempt of `stored` with the outcome that the gateway reports; without such an outcome, as not
    /// charged. If `payment`, which a later attempt has made, pays or may pay the month of the open attempt, first stores
    /// a finding about it, which blocks further charges.
    async fn close_open_attempt(&self, stored: &Subscription, payment: &Payment) -> Result<(), ReconcileError> {
        match self.settle_open_attempt(payment).await? {
            ApplyResult::Open(OpenReason::NoResponse(error)) => return Err(error.into()),
            ApplyResult::Open(OpenReason::Leased { .. }) => return Ok(()),
            ApplyResult::Open(_) => {}
            ApplyResult::Settled(_)
            | ApplyResult::AlreadySettled(_)
            | ApplyResult::NothingOpen
            | ApplyResult::FindingStored(_)
            | ApplyResult::Missing => return Ok(()),
        }
        let is_of_month = stored.has_open_attempt_of(payment.period());
        let pays_month = is_of_month && !matches!(payment.status, PaymentStatus::Declined(_));
        if pays_month {
            self.engine.store_finding(stored.clone(), payment, FindingReason::NoAttempt).await?;
        }
        // With a gateway, the engine closes no attempt whose month another payment pays or may pay.
        let gateway: Option<&dyn PaymentGateway> = (!pays_month).then_some(self.gateway.as_ref());
        let Subscription { account, id, .. } = stored;
        match self.engine.resolve_attempt(gateway, account, *id, &StatedOutcome::NotCharged, self.today).await? {
            ApplyResult::Open(OpenReason::NoResponse(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }
}
