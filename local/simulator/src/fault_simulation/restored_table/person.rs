//! The acts of the people after a restore, as `docs/trouble.md` describes them: they compare each day since the backup
//! with the gateway, decide about findings, accept the other differences, and confirm the table.

use std::convert::Infallible;

use billing::{
    AcceptedDifference, ActionKind, Actor, DayReconciliation, Finding, Label, NewAction, Period, Subscription,
    SubscriptionStatus, WaivedReason,
};
use charging::{FindingDecision, FindingError};
use chrono::NaiveDate;
use clock::Clock as _;
use rand::Rng as _;
use reconciling::{CorrectionMode, DaysToCompare, ReconcileError, Reconciler, latest_comparable_day};
use store::{NotRewritten, Settings, ignore_refusal};

use super::RestoredTable;
use super::gateway_truth::PaymentTruth;
use crate::SimulationError;

/// How often the days since the backup are compared before people give up. The first comparison finds the differences,
/// and the second comparison confirms that they are solved.
const MAX_COMPARISONS: u32 = 3;

impl RestoredTable<'_> {
    /// Confirms the table if a run has noticed that it is older, and the days since the backup can be compared.
    pub(super) async fn confirm_if_possible(&mut self) -> Result<(), SimulationError> {
        let table = self.deployment.table.clone();
        let settings = table.get_settings().await?;
        let Some((settings, noticed_at)) =
            settings.and_then(|settings| Some((settings.clone(), settings.copy_noticed_at?)))
        else {
            return Ok(());
        };
        let days = DaysToCompare::of_table(&settings, noticed_at);
        if latest_comparable_day(self.world.clock.now()) < days.last {
            return Ok(());
        }
        self.counts.noticed += 1;
        let mut problem = None;
        for _ in 0..MAX_COMPARISONS {
            for on in days.first.iter_days().take_while(|on| *on <= days.last) {
                let compared = self.compare_day(&settings, on).await?;
                self.counts.receipts += compared.counts.settled;
                self.accept_differences(&compared).await?;
            }
            self.decide_about_findings().await?;
            problem = days.find_problem(&table, false).await?;
            if problem.is_none() {
                break;
            }
        }
        if let Some(problem) = problem {
            self.violations.push(format!("the table cannot be confirmed: {problem}"));
            return Ok(());
        }
        self.repeat_lost_cancellations().await?;
        let (Some(before), Some(id)) = (settings.dynamodb_id, table.dynamodb_id().await?) else {
            self.violations.push("the table or its settings have no id".to_owned());
            return Ok(());
        };
        if !table.confirm_copy(&before, &id, None).await? {
            self.violations.push("the table was not confirmed".to_owned());
        }
        table.set_charging(true, None).await?;
        self.is_confirmed = true;
        Ok(())
    }

    /// Compares the latest day that can be compared, as the daily comparison does.
    pub(super) async fn compare_latest_day(&mut self) -> Result<(), SimulationError> {
        let Some(settings) = self.deployment.table.get_settings().await? else { return Ok(()) };
        let on = latest_comparable_day(self.world.clock.now());
        self.compare_day(&settings, on).await?;
        Ok(())
    }

    /// Compares the day `on` with the gateway.
    async fn compare_day(&self, settings: &Settings, on: NaiveDate) -> Result<DayReconciliation, SimulationError> {
        let mut reconciler = Reconciler::new(
            self.deployment.table.clone(),
            settings.table_id,
            self.gateway.clone(),
            CorrectionMode::of_table(settings),
            self.deployment.clock.clone(),
            self.world.day_of(self.world.clock.now()),
        );
        reconciler.reconcile(on, None).await.map_err(|error| match error {
            ReconcileError::Table(error) => error.into(),
            error => SimulationError::Comparison { on, reason: error.to_string() },
        })
    }

    /// Accepts each difference of `compared` that is no open finding, such as a payment of a subscription that the
    /// backup does not contain.
    async fn accept_differences(&self, compared: &DayReconciliation) -> Result<(), SimulationError> {
        let (table, at) = (&self.deployment.table, self.world.clock.now());
        let open = table.get_open_findings().await?;
        for difference in &compared.first_differences {
            if open.iter().any(|finding| finding.payment.as_str() == difference.id) {
                continue;
            }
            let reason: Label = "its subscription was created after the backup".parse().expect("a reason");
            let (actor, kind) = (Actor::Operator(None), ActionKind::AcceptDifference);
            let action = NewAction { at, actor, kind, reason: Some(reason.clone()) };
            let (on, kind, id) = (compared.on, difference.kind, difference.id.clone());
            let accepted = AcceptedDifference { on, kind, id, reason, at };
            table.accept_difference(&accepted, &action).await?;
        }
        Ok(())
    }

    /// Decides about each open finding whose payment has an outcome. Some people first try to close a finding although
    /// the merchant keeps money of the payment: this must be refused.
    pub(super) async fn decide_about_findings(&mut self) -> Result<(), SimulationError> {
        for finding in self.deployment.table.get_open_findings().await? {
            match self.truth.true_payment_state(finding.payment.as_str()) {
                PaymentTruth::Processing => continue,
                PaymentTruth::Failed => self.decide_about_finding(&finding, FindingDecision::Close).await?,
                PaymentTruth::Kept { amount, is_duplicate } => {
                    if self.rng.random() {
                        self.refund_in_dashboard(&finding, 1);
                        self.try_to_close(&finding).await?;
                    } else if self.rng.random() {
                        self.try_to_close(&finding).await?;
                    }
                    if is_duplicate
                        || !(self.waive_earlier_months(&finding).await? && self.try_to_write_receipt(&finding).await?)
                    {
                        self.refund_in_dashboard(&finding, amount);
                        self.decide_about_finding(&finding, FindingDecision::Close).await?;
                    }
                }
            }
            self.counts.decisions += 1;
        }
        Ok(())
    }

    /// Waives the months before that of `finding`, which the backup still owes: in the original table, they were waived
    /// before the later month was charged. Returns whether the month of the finding is due now.
    async fn waive_earlier_months(&self, finding: &Finding) -> Result<bool, SimulationError> {
        let table = &self.deployment.table;
        let now = self.world.clock.now();
        let wanted = Period::from_day(finding.due_on);
        let (lead, today) = (self.deployment.table.policy().lead, self.world.day_of(now));
        loop {
            let Some(stored) = table.get_subscription(&finding.account, finding.subscription).await? else {
                return Ok(false);
            };
            let due = stored.due_period();
            if due >= wanted {
                return Ok(due == wanted);
            }
            let later = table.count_findings_after(&finding.account, finding.subscription, due).await?;
            let waive =
                |stored: &Subscription| stored.waive_month(due, WaivedReason::Merchant, later, lead, today, now);
            match table.write_settlement(stored, waive).await {
                Ok(_) => {}
                Err(NotRewritten::Table(error)) => return Err(error.into()),
                Err(_) => return Ok(false),
            }
        }
    }

    /// Refunds `amount` of the payment of `finding` in Stripe's dashboard, or as much of it as the merchant keeps.
    fn refund_in_dashboard(&mut self, finding: &Finding, amount: i64) {
        let (payment, left) = (finding.payment.as_str(), self.truth.kept_amount(finding.payment.as_str()));
        let amount = amount.min(left);
        if amount > 0 {
            self.server.refund_in_the_dashboard(payment, amount, "succeeded");
            self.truth.record_refund(payment, amount);
        }
    }

    /// Tries to close `finding` although the merchant keeps money of its payment.
    async fn try_to_close(&mut self, finding: &Finding) -> Result<(), SimulationError> {
        match self.send_finding_decision(finding, FindingDecision::Close).await {
            Err(FindingError::StillPaid { .. }) if self.truth.kept_amount(finding.payment.as_str()) > 0 => {
                self.counts.refused_decisions += 1;
            }
            Err(FindingError::Table(error)) => return Err(error.into()),
            // A payment of one minor unit may be refunded completely by then.
            Ok(()) if self.truth.kept_amount(finding.payment.as_str()) == 0 => {}
            result => self.violations.push(format!("closing the kept payment {}: {result:?}", finding.payment)),
        }
        Ok(())
    }

    /// Writes the receipt of the payment of `finding`. Returns `false` if this is refused because another period is due.
    async fn try_to_write_receipt(&mut self, finding: &Finding) -> Result<bool, SimulationError> {
        match self.send_finding_decision(finding, FindingDecision::Receipt).await {
            Ok(()) => Ok(true),
            Err(FindingError::NoReceipt { .. }) => Ok(false),
            Err(FindingError::Table(error)) => Err(error.into()),
            Err(error) => {
                self.violations.push(format!("the receipt of {}: {error}", finding.payment));
                Ok(true)
            }
        }
    }

    /// Makes the `decision` about `finding`, which must not be refused.
    async fn decide_about_finding(
        &mut self,
        finding: &Finding,
        decision: FindingDecision,
    ) -> Result<(), SimulationError> {
        match self.send_finding_decision(finding, decision).await {
            // An earlier decision about the same finding may have closed it.
            Ok(()) | Err(FindingError::Missing { .. }) => Ok(()),
            Err(FindingError::Table(error)) => Err(error.into()),
            Err(error) => {
                self.violations.push(format!("the decision {decision:?} about {}: {error}", finding.payment));
                Ok(())
            }
        }
    }

    async fn send_finding_decision(&self, finding: &Finding, decision: FindingDecision) -> Result<(), FindingError> {
        let Self { deployment, world, gateway, .. } = self;
        let Finding { account, payment, .. } = finding;
        let today = world.day_of(world.clock.now());
        let engine = deployment.charging_engine();
        let because = "looked up at Stripe";
        engine.resolve_finding(gateway.as_ref(), account, payment, decision, because, today).await.map(drop)
    }

    /// Cancels the subscriptions again that customers have cancelled after the backup.
    async fn repeat_lost_cancellations(&self) -> Result<(), SimulationError> {
        let (table, now) = (&self.deployment.table, self.world.clock.now());
        for (account, id) in &self.cancelled {
            let (Ok(account), Ok(id)) = (account.parse(), id.parse()) else { continue };
            let Some(stored) = table.get_subscription(&account, id).await? else { continue };
            if stored.status != SubscriptionStatus::Cancelled {
                let today = self.world.day_of(now);
                let cancelled =
                    table.write_settlement(stored, |stored| Ok::<_, Infallible>(stored.cancel(today, now))).await;
                ignore_refusal(cancelled)?;
            }
        }
        Ok(())
    }
}
