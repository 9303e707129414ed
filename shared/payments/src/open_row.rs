//! Processes the rows of the second lane: open attempts.

use billing::{Attempt, Subscription, attempt_contradiction};
use charging::{ApplyError, ApplyResult, OpenReason};
use store::DueEntry;

use super::due_row::is_subscription_payable;
use super::run::RowContext;
use super::{PaymentBatch, PaymentOutcome, PaymentRun, RowResult};

impl PaymentBatch {
    /// Takes over the open attempt of the row `due` if the attempt is in doubt. If no attempt is open, but the
    /// subscription is payable (since the first lane skipped the row), charges the subscription.
    pub(super) async fn process_open_row(
        &self,
        context: RowContext<'_>,
        due: &DueEntry,
    ) -> Result<RowResult, ApplyError> {
        let RowContext { run, today, .. } = context;
        let Some(stored) = self.table.get_subscription(&due.key.account, due.key.subscription).await? else {
            return Ok(RowResult::LeftToOtherLane);
        };
        let Some(open) = &stored.attempt else {
            return match run.charges.is_charging_enabled() && is_subscription_payable(&stored, today) {
                true => self.process_due_row(context, due).await,
                false => Ok(RowResult::LeftToOtherLane),
            };
        };
        if !open.is_in_doubt(self.clock.now()) {
            add_leased_attempt(run, &stored, open);
            return Ok(RowResult::Counted(PaymentOutcome::InDoubt));
        }
        let applied = match self.charger.take_over_attempt(context.charge_context(), &due.key, open).await {
            Ok(ApplyResult::Missing | ApplyResult::NothingOpen) => return Ok(RowResult::LeftToOtherLane),
            Ok(applied) => applied,
            Err(error) => {
                run.add_in_doubt(open.claimed_at);
                return Err(error);
            }
        };
        // Another worker has already taken over and leased the attempt.
        if matches!(applied, ApplyResult::Open(OpenReason::Leased { .. })) {
            add_leased_attempt(run, &stored, open);
        }
        Ok(self.row_result(context, &due.key, open.claimed_at, applied))
    }
}

/// Adds the attempt `open` of `stored`, which another worker has leased, to the attempts in doubt of `run`. Does not
/// add the attempt if the run would not charge it again: such an attempt can stay open although the gateway has
/// responded to its look-up.
fn add_leased_attempt(run: &PaymentRun, stored: &Subscription, open: &Attempt) {
    let may_charge_again = run.charges.is_charging_enabled()
        && stored.disputed_at.is_none()
        && stored.open_findings == 0
        && attempt_contradiction(stored, open).is_none();
    if may_charge_again {
        run.add_in_doubt(open.claimed_at);
    }
}
