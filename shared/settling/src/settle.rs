//! Settles attempts with a known outcome. The payment batch, charges at sign-up, inbound webhooks and operators'
//! commands all use this code.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use billing::{
    Attempt, Finding, GatewayToken, Money, NewAction, Outcome, Payment, Period, Policy, ReceiptId, SettleDecision,
    Settlement, Subscription, settle,
};
use chrono::NaiveDate;
use clock::Clock;
use store::{RewriteOutcome, Table, TableError};

use super::UncountedCharges;

/// Settles attempts. Collects their charges, or adds them to the charge total of the day.
#[derive(Debug)]
pub struct Settling {
    pub(crate) table: Table,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    /// The entry that is written to the action log with each settlement; `None` if no person has requested the
    /// settlement.
    pub(crate) action: Option<NewAction>,
}

/// The result of settling an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettleOutcome {
    /// This call has settled the attempt.
    Settled {
        /// The stored subscription after the settlement.
        subscription: Box<Subscription>,
        /// Whether the reminder of the payment was sent before the payment, or was not required.
        was_reminded: bool,
    },
    /// Another worker had already settled the attempt with the same outcome.
    AlreadySettled,
    /// The outcome does not settle the attempt: it stays open.
    StaysOpen,
}

/// The reason why an attempt could not be settled.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum SettleError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(
        "the payment {payment} of {due_on} succeeded and has no receipt: its attempt was settled with another outcome"
    )]
    MissingReceipt { payment: GatewayToken, due_on: NaiveDate },
    #[error(
        "the gateway reports that the payment {payment} succeeded, but {reason}: settle it by hand (dueday resolve)"
    )]
    Contradicts { payment: GatewayToken, reason: String },
}

impl SettleError {
    /// Returns the name of the error, such as `MissingReceipt`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }
}

/// The reason why a settlement is not written.
enum NotSettled {
    /// Another worker has settled the attempt.
    Already,
    /// The outcome leaves the attempt open.
    StaysOpen,
}

/// The amount of the receipt in the settlement that was computed last; `None` if it has no receipt. A settlement is
/// computed again if the subscription was changed before the write, so the last one is the one that is written.
#[derive(Debug, Default)]
struct ChargedAmount(Mutex<Option<Money>>);

impl ChargedAmount {
    /// Reads the amount from `settlement`, and returns `settlement`.
    fn read(&self, settlement: Settlement) -> Settlement {
        *self.lock() = settlement.receipt.as_ref().map(|receipt| receipt.amount);
        settlement
    }

    /// Adds the amount of the written settlement to `charges`. A settlement without a receipt charges nothing.
    fn add_to(&self, charges: &UncountedCharges) {
        if let Some(amount) = *self.lock() {
            charges.add(amount);
        }
    }

    /// Locks and returns the amount.
    fn lock(&self) -> MutexGuard<'_, Option<Money>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settling {
    /// Creates the service that settles attempts of the subscriptions in `table`, with the rules of `policy`.
    pub fn new(table: Table, policy: Policy, clock: Arc<dyn Clock>) -> Self {
        Self { table, policy, clock, action: None }
    }

    /// Adds `action`, the decision of a person. An entry of `action` is written to the action log with each settlement.
    pub fn with_action(self, action: NewAction) -> Self {
        Self { action: Some(action), ..self }
    }

    /// Settles `held`, the attempt of `subscription` that this worker has leased, with `outcome` on the day `today`.
    /// The settlement is computed from the currently stored subscription, and written with a TransactWriteItems
    /// request. If the write fails, the attempt stays open, and a later run looks up and settles the attempt. Adds a
    /// charge to `charges`; the caller must write them.
    ///
    /// # Errors
    /// - [`SettleError::Contradicts`] if the successful payment does not match the attempt. It gets no receipt.
    /// - [`SettleError::MissingReceipt`] if the payment succeeded, but another worker has settled the attempt with
    ///   another outcome.
    /// - [`SettleError::Table`] if a request to the table failed.
    pub async fn settle(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: &Outcome,
        today: NaiveDate,
        charges: &UncountedCharges,
    ) -> Result<SettleOutcome, SettleError> {
        if let Outcome::Succeeded(payment) = outcome {
            self.verify_payment(&subscription, held, payment).await?;
        }
        self.settle_as_decided(subscription, held, outcome, today, charges).await
    }

    /// Settles an attempt like [`Settling::settle`], but does not verify that the payment matches the attempt, because
    /// a person has decided the outcome.
    pub(crate) async fn settle_as_decided(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: &Outcome,
        today: NaiveDate,
        charges: &UncountedCharges,
    ) -> Result<SettleOutcome, SettleError> {
        let receipt = ReceiptId { due_on: held.due_on, subscription: subscription.id, sku: subscription.sku.clone() };
        let account = subscription.account.clone();
        // If the subscription was created after the reminder date, the payment could not be reminded. Count it as
        // reminded.
        let could_be_reminded = |on| subscription.created_at.date_naive() <= on;
        let was_reminded = subscription.next_reminder_on.is_none_or(|on| on > today || !could_be_reminded(on));
        let charged = ChargedAmount::default();
        let settlement =
            |stored: &Subscription| match settle(stored, held, outcome, &self.policy, today, self.clock.now()) {
                SettleDecision::Write(settlement) => Ok(charged.read(*settlement)),
                SettleDecision::AlreadySettled => Err(NotSettled::Already),
                SettleDecision::StaysOpen => Err(NotSettled::StaysOpen),
            };
        match self.table.settle_with_action(subscription, self.action.as_ref(), settlement).await? {
            RewriteOutcome::Applied(settled) => {
                charged.add_to(charges);
                return Ok(SettleOutcome::Settled { subscription: Box::new(settled), was_reminded });
            }
            RewriteOutcome::Unchanged(NotSettled::StaysOpen) => return Ok(SettleOutcome::StaysOpen),
            RewriteOutcome::Unchanged(NotSettled::Already) | RewriteOutcome::Missing => {}
        }
        // Another worker has settled the attempt. If it settled the attempt with another outcome, this successful
        // payment has no receipt, which is an error.
        let Outcome::Succeeded(payment) = outcome else { return Ok(SettleOutcome::AlreadySettled) };
        let receipt = self.table.get_receipt(&account, &receipt, self.clock.now()).await?;
        if receipt.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(SettleOutcome::AlreadySettled);
        }
        Err(SettleError::MissingReceipt { payment: payment.id.clone(), due_on: held.due_on })
    }

    /// Settles a successful payment that has no open attempt any more, on the day `today`. `compute` returns the
    /// settlement for the stored subscription, or the reason why the payment must not be settled. Writes the charge
    /// total.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub(crate) async fn settle_late_payment<R>(
        &self,
        stored: Subscription,
        today: NaiveDate,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<RewriteOutcome<Subscription, R>, TableError> {
        let charged = ChargedAmount::default();
        let compute = |stored: &Subscription| compute(stored).map(|settlement| charged.read(settlement));
        let settled = self.table.settle(stored, compute).await?;
        if let RewriteOutcome::Applied(settled) = &settled {
            self.write_charge(&charged, today, settled.shard).await;
        }
        Ok(settled)
    }

    /// Resolves the stored finding `open` as `resolved`, on the decision of a person on the day `today`. `compute`
    /// returns the settlement for the stored subscription. Writes the charge total. Returns `None` if another person has
    /// resolved the finding, or the subscription does not exist.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub(crate) async fn settle_finding<R>(
        &self,
        stored: Subscription,
        (open, resolved): (&Finding, &Finding),
        today: NaiveDate,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Option<Result<Subscription, R>>, TableError> {
        let charged = ChargedAmount::default();
        let compute = |stored: &Subscription| compute(stored).map(|settlement| charged.read(settlement));
        let settled = self.table.resolve_finding(stored, open, resolved, self.action.as_ref(), compute).await?;
        if let Some(Ok(settled)) = &settled {
            self.write_charge(&charged, today, settled.shard).await;
        }
        Ok(settled)
    }

    /// Adds the amount of a written settlement to the stored charge total of the day `today` in `shard`.
    async fn write_charge(&self, charged: &ChargedAmount, today: NaiveDate, shard: u32) {
        let charges = UncountedCharges::default();
        charged.add_to(&charges);
        charges.write_or_warn(&self.table, today, shard).await;
    }

    /// Verifies that the successful `payment` matches the attempt `held`: the same subscription, period, amount and
    /// currency. A payment of an earlier attempt is compared with the record of that attempt.
    ///
    /// # Errors
    /// [`SettleError::Contradicts`] if the payment does not match the attempt: it must not get a receipt.
    /// [`SettleError::Table`] if the record could not be read.
    pub(crate) async fn verify_payment(
        &self,
        subscription: &Subscription,
        held: &Attempt,
        payment: &Payment,
    ) -> Result<(), SettleError> {
        let (account, id) = (&subscription.account, subscription.id);
        let contradicts = |reason: String| Err(SettleError::Contradicts { payment: payment.id.clone(), reason });
        let is_of_this_table = payment.table.is_none() || payment.table == held.table;
        if (&payment.account, payment.subscription) != (account, id) || !is_of_this_table {
            return contradicts("it belongs to another subscription".to_owned());
        }
        if Period::from_day(payment.due_on) != Period::from_day(held.due_on) {
            return contradicts(format!("its due date is {}, not {}", payment.due_on, held.due_on));
        }
        let requested = if payment.attempt_no == held.no {
            Some(held.amount)
        } else {
            let record = self.table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
            record.map(|record| record.amount)
        };
        match requested {
            Some(requested) if requested == payment.amount => Ok(()),
            Some(requested) => contradicts(format!("its amount is {}, and {requested} was requested", payment.amount)),
            None => contradicts(format!("there is no record of its attempt {}", payment.attempt_no)),
        }
    }
}
