//! Checks that are made again after a wait: gateways forget keys, shorten lists and pay declines with time.

use super::case::{Case, Outcome};
use super::{Step, Verdict};

impl Case<'_> {
    /// Waits as long as the sample says, and reports each second.
    pub async fn wait(&self) -> Outcome {
        let seconds = self.sample.wait.as_secs();
        if seconds == 0 {
            return Err(Verdict::NotChecked("the check did not wait".to_owned()));
        }
        for done in 1..=seconds {
            self.second().await;
            self.progress(Step::Waiting, done, seconds);
        }
        Ok(())
    }

    /// That what was declined, rejected or refused as another request is not paid.
    pub async fn stays_unpaid(&self) -> Outcome {
        self.decline_is_final().await?;
        self.rejection_made_nothing().await?;
        self.nothing_is_paid_unnamed().await
    }
}
