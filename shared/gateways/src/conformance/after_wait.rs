//! Checks that are repeated after a wait, because a gateway may forget idempotency keys, omit payments from a list or
//! carry out declined charges only after some time.

use std::time::Duration;

use super::running_check::{CheckResult, ConformanceCheck};
use super::{CheckStep, PromiseVerdict};

impl ConformanceCheck<'_> {
    /// Waits until the waiting time of this check is `until` in total, or is the longest time that the parameters
    /// allow. Reports the progress every second. Returns [`PromiseVerdict::NotChecked`] if the parameters allow no
    /// wait.
    pub async fn wait_until(&self, until: Duration) -> CheckResult {
        let total = self.parameters.wait.as_secs();
        if total == 0 {
            return Err(PromiseVerdict::NotChecked("the check was run without a wait".to_owned()));
        }
        while self.waited_seconds() < until.as_secs().min(total) {
            let done = self.wait_one_second().await;
            self.report_progress(CheckStep::Waiting, done, total);
        }
        Ok(())
    }

    /// Checks that no payment was made later for a request that was declined, rejected, or refused because its
    /// idempotency key was used before.
    pub async fn check_nothing_was_paid_later(&self) -> CheckResult {
        self.check_decline_is_final().await?;
        self.check_rejection_made_no_payment().await?;
        self.check_no_unexpected_payments().await
    }
}
