//! Checks that are made again after a wait: gateways forget keys, shorten lists and pay declines with time.

use std::time::Duration;

use super::case::{Case, Outcome};
use super::{Step, Verdict};

impl Case<'_> {
    /// Waits until the check has waited for `until`, or for as long as the sample allows if that is shorter. Reports each second.
    pub async fn wait(&self, until: Duration) -> Outcome {
        let all = self.sample.wait.as_secs();
        if all == 0 {
            return Err(Verdict::NotChecked("the check did not wait".to_owned()));
        }
        while self.waited() < until.as_secs().min(all) {
            let done = self.wait_a_second().await;
            self.progress(Step::Waiting, done, all);
        }
        Ok(())
    }

    /// Checks that no request is paid that was declined, rejected, or refused because its key was used.
    pub async fn stays_unpaid(&self) -> Outcome {
        self.decline_is_final().await?;
        self.rejection_made_nothing().await?;
        self.nothing_is_paid_unnamed().await
    }
}
