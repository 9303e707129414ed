//! Settles attempts with a known outcome. The payment batch, charges at sign-up, inbound webhooks and operators'
//! commands all use this code.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use billing::{
    Attempt, ChargeTotal, Finding, GatewayToken, Money, NewAction, Outcome, Payment, Period, Policy, ReceiptId,
    SettleDecision, Settlement, Subscription, settle,
};
use chrono::NaiveDate;
use clock::Clock;
use store::{RewriteOutcome, Table, TableError};

/// Settles attempts, and adds the charged amounts to the charge total of the day.
///
/// The charged amounts are held in memory until [`Settling::write_charge_total`] writes them. The payment batch calls
/// that function once for each list page of rows. All other callers call it immediately after a settlement.
#[derive(Debug)]
pub struct Settling {
    pub(crate) table: Table,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    /// The charged amounts that are not yet in the stored charge total of the day.
    uncounted: Mutex<ChargeTotal>,
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

    /// Locks and returns the amount.
    fn lock(&self) -> MutexGuard<'_, Option<Money>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settling {
    /// Creates the service that settles attempts of the subscriptions in `table`, with the rules of `policy`.
    pub fn new(table: Table, policy: Policy, clock: Arc<dyn Clock>) -> Self {
        Self { table, policy, clock, uncounted: Mutex::default(), action: None }
    }

    /// Adds `action`, the decision of a person. An entry of `action` is written to the action log with each settlement.
    pub fn with_action(self, action: NewAction) -> Self {
        Self { action: Some(action), ..self }
    }

    /// Settles `held`, the attempt of `subscription` that this worker has leased, with `outcome` on the day `today`.
    /// The settlement is computed from the currently stored subscription, and written with a TransactWriteItems
    /// request. If the write fails, the attempt stays open, and a later run looks up and settles the attempt.
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
    ) -> Result<SettleOutcome, SettleError> {
        if let Outcome::Succeeded(payment) = outcome {
            self.verify_payment(&subscription, held, payment).await?;
        }
        self.settle_as_decided(subscription, held, outcome, today).await
    }

    /// Settles an attempt like [`Settling::settle`], but does not verify that the payment matches the attempt, because
    /// a person has decided the outcome.
    pub(crate) async fn settle_as_decided(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: &Outcome,
        today: NaiveDate,
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
                self.add_uncounted_charge(&charged);
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

    /// Settles a successful payment that has no open attempt any more. `compute` returns the settlement for the stored
    /// subscription, or the reason why the payment must not be settled.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub(crate) async fn settle_late_payment<R>(
        &self,
        stored: Subscription,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<RewriteOutcome<Subscription, R>, TableError> {
        let charged = ChargedAmount::default();
        let compute = |stored: &Subscription| compute(stored).map(|settlement| charged.read(settlement));
        let settled = self.table.settle(stored, compute).await?;
        if matches!(settled, RewriteOutcome::Applied(_)) {
            self.add_uncounted_charge(&charged);
        }
        Ok(settled)
    }

    /// Resolves the stored finding `open` as `resolved`, on the decision of a person. `compute` returns the settlement
    /// for the stored subscription. Returns `None` if another person has resolved the finding, or the subscription does
    /// not exist.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub(crate) async fn settle_finding<R>(
        &self,
        stored: Subscription,
        (open, resolved): (&Finding, &Finding),
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Option<Result<Subscription, R>>, TableError> {
        let charged = ChargedAmount::default();
        let compute = |stored: &Subscription| compute(stored).map(|settlement| charged.read(settlement));
        let settled = self.table.resolve_finding(stored, open, resolved, self.action.as_ref(), compute).await?;
        if let Some(Ok(_)) = &settled {
            self.add_uncounted_charge(&charged);
        }
        Ok(settled)
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

    /// Adds the charged amount of a written settlement to the amounts that the next call of
    /// [`Settling::write_charge_total`] writes. A settlement without a receipt charges nothing.
    fn add_uncounted_charge(&self, charged: &ChargedAmount) {
        if let Some(amount) = *charged.lock() {
            self.lock_uncounted_total().add(amount);
        }
    }

    /// Adds the amounts that were charged since the last call of this function to the stored charge total of the day
    /// `today` in `shard`. Sends one UpdateItem request, or no request if nothing was charged.
    ///
    /// # Errors
    /// [`TableError`] if the request failed: the next call adds these amounts too.
    pub async fn write_charge_total(&self, today: NaiveDate, shard: u32) -> Result<(), TableError> {
        let charged = std::mem::take(&mut *self.lock_uncounted_total());
        if charged.charges() == 0 {
            return Ok(());
        }
        let written = self.table.add_to_charge_total(today, shard, &charged).await;
        if written.is_err() {
            self.lock_uncounted_total().add_all(&charged);
        }
        written
    }

    /// Calls [`Settling::write_charge_total`]. Logs an error instead of returning it, because the charge itself is
    /// already settled.
    pub async fn write_charge_total_or_warn(&self, today: NaiveDate, shard: u32) {
        if let Err(error) = self.write_charge_total(today, shard).await {
            tracing::warn!(%error, error_type = "Table", "the charge total of the day could not be updated: the next update includes these charges");
        }
    }

    /// Locks and returns the charged amounts that are not yet in the stored charge total.
    fn lock_uncounted_total(&self) -> MutexGuard<'_, ChargeTotal> {
        self.uncounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
