//! Checks of reading one payment by its id, which must not change the payment.

use super::payment_lists::describe_difference;
use super::running_check::{
    CheckResult, ConformanceCheck, FIRST_CHARGE_NO, MANY_CHARGE_NOS, PARTLY_REFUNDED_CHARGE_NO, REFUNDED_CHARGE_NO,
    broken_by_gateway_error, broken_promise, ensure_promise,
};
use billing::{GatewayToken, Payment, PaymentStatus};

/// Returns whether `later` is `earlier` without a change. A payment in progress may have got its outcome.
fn is_unchanged_payment(earlier: &Payment, later: &Payment) -> bool {
    let status = if earlier.status == PaymentStatus::Processing { &later.status } else { &earlier.status };
    *later == Payment { status: status.clone(), card: later.card.clone(), ..earlier.clone() }
}

impl ConformanceCheck<'_> {
    /// Reads the payment `id`. Repeats the request if the gateway refuses it because of too many requests.
    async fn read_payment(&self, id: &GatewayToken) -> CheckResult<Option<Payment>> {
        self.repeat_if_throttled(async || self.gateway.payment(id).await).await.map_err(broken_by_gateway_error)
    }

    /// Reads the payment `id`, which exists.
    async fn read_existing_payment(&self, id: &GatewayToken) -> CheckResult<Payment> {
        let read = self.read_payment(id).await?;
        read.ok_or_else(|| broken_promise(format!("the gateway does not find the payment {id}, which it has made")))
    }

    /// Checks that the gateway returns an early payment and a refunded payment by id, and no payment for an unknown id.
    pub async fn check_payment_by_id(&self) -> CheckResult {
        for no in [MANY_CHARGE_NOS.start, PARTLY_REFUNDED_CHARGE_NO] {
            let Some(made) = self.payments().get(&no).cloned() else {
                return Err(broken_promise("no payment could be made"));
            };
            let read = self.read_existing_payment(&made.id).await?;
            if let Some(how) = describe_difference(&made, std::slice::from_ref(&read)) {
                return Err(broken_promise(how));
            }
        }
        let unknown = format!("pay_{}", self.parameters.run);
        let unknown: GatewayToken =
            unknown.parse().map_err(|_| broken_promise("the id of an unknown payment is no token"))?;
        match self.gateway.payment(&unknown).await {
            Ok(None) => Ok(()),
            Ok(Some(other)) => Err(broken_promise(format!(
                "the gateway returns {} as the payment {unknown}, which does not exist",
                other.id
            ))),
            Err(error) => Err(broken_promise(format!("the payment {unknown}, which does not exist: {error}"))),
        }
    }

    /// Checks that reading payments twice by their ids changes no payment. Reads refunded, declined and processing
    /// payments too, because a gateway may confirm or expire such a payment when it is read.
    pub async fn check_reading_changes_nothing(&self) -> CheckResult {
        const SUCCEEDED: [u32; 3] = [FIRST_CHARGE_NO, PARTLY_REFUNDED_CHARGE_NO, REFUNDED_CHARGE_NO];
        let before = self.list_own_payments().await?;
        let is_read =
            |listed: &&Payment| listed.status != PaymentStatus::Succeeded || SUCCEEDED.contains(&listed.attempt_no);
        for listed in before.iter().filter(is_read) {
            for _ in 0..2 {
                let read = self.read_existing_payment(&listed.id).await?;
                ensure_promise(is_unchanged_payment(listed, &read), || {
                    format!("the payment was listed as {listed:?}, and was then read by its id as {read:?}")
                })?;
            }
        }
        let after = self.list_own_payments().await?;
        for earlier in &before {
            let later = after.iter().find(|later| later.id == earlier.id);
            ensure_promise(later.is_some_and(|later| is_unchanged_payment(earlier, later)), || {
                format!("payments were read by their ids, and then the payment {earlier:?} was listed as {later:?}")
            })?;
        }
        Ok(())
    }
}
