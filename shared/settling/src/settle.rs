//! Settling an attempt whose outcome is known: the one way, for the batch, a sign-up, an inbound webhook and an operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use billing::{
    Attempt, Day, GatewayToken, Money, Outcome, Payment, Period, Policy, ReceiptId, Settled, Settlement, Subscription,
    settle,
};
use chrono::NaiveDate;
use clock::Clock;
use store::{Rewritten, Table, TableError};

/// Settles attempts, and adds what was charged to the total of the day.
///
/// What was charged is kept in memory until [`Settling::count`] writes it: a batch does so once for a page of rows, all others at once.
#[derive(Debug)]
pub struct Settling {
    pub(crate) table: Table,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    /// What was charged that the total of the day does not count yet.
    uncounted: Mutex<Day>,
}

/// The result of settling an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettledAs {
    /// It was settled now.
    Now {
        /// The subscription as it is stored now.
        subscription: Box<Subscription>,
        /// Whether the reminder of the payment had been sent, or was not due.
        was_reminded: bool,
    },
    /// Another worker had settled it, to the same.
    Before,
    /// It stays open.
    StaysOpen,
}

/// Why an attempt was not settled.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(
        "payment {payment} of {due_on} was made, and there is no receipt of it: its attempt was settled as something else"
    )]
    Unreceipted { payment: GatewayToken, due_on: NaiveDate },
    #[error("the gateway says that payment {payment} was made, and {reason}: settle it by hand (dueday resolve)")]
    Contradicts { payment: GatewayToken, reason: String },
}

/// Why a settlement is not written.
enum NotSettled {
    /// Another worker has settled it.
    Already,
    /// It stays open.
    StaysOpen,
}

impl Settling {
    /// Settles attempts of the subscriptions in `table` by `policy`.
    pub fn new(table: Table, policy: Policy, clock: Arc<dyn Clock>) -> Self {
        Self { table, policy, clock, uncounted: Mutex::default() }
    }

    /// Settles the attempt `held` of `subscription` as `outcome`, on the day `today`, on whatever is stored by now. If that cannot be
    /// written, the attempt stays open: a later run looks it up and settles it then. TransactWriteItems.
    ///
    /// # Errors
    /// [`SettleError`]: a success that is not the attempt's is never receipted.
    pub async fn settle(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: &Outcome,
        today: NaiveDate,
    ) -> Result<SettledAs, SettleError> {
        if let Outcome::Succeeded(payment) = outcome {
            self.verify(&subscription, held, payment).await?;
        }
        self.settle_as_decided(subscription, held, outcome, today).await
    }

    /// As [`Settling::settle`], where a person has decided what the outcome is.
    pub(crate) async fn settle_as_decided(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: &Outcome,
        today: NaiveDate,
    ) -> Result<SettledAs, SettleError> {
        let receipt = ReceiptId { due_on: held.due_on, subscription: subscription.id, sku: subscription.sku.clone() };
        let account = subscription.account.clone();
        let was_reminded = subscription.next_reminder_on.is_none_or(|on| on > today);
        let settlement =
            |stored: &Subscription| match settle(stored, held, outcome, &self.policy, today, self.clock.now()) {
                Settled::Write(settlement) => Ok(*settlement),
                Settled::Already => Err(NotSettled::Already),
                Settled::StaysOpen => Err(NotSettled::StaysOpen),
            };
        match self.table.settle(subscription, settlement).await? {
            Rewritten::Applied(settled) => {
                if let Outcome::Succeeded(payment) = outcome {
                    self.charged(payment.amount);
                }
                return Ok(SettledAs::Now { subscription: Box::new(settled), was_reminded });
            }
            Rewritten::Left(NotSettled::StaysOpen) => return Ok(SettledAs::StaysOpen),
            Rewritten::Left(NotSettled::Already) | Rewritten::Gone => {}
        }
        // Another worker has settled it. That must have come to the same, for a payment without its receipt is nothing to
        // pass over.
        let Outcome::Succeeded(payment) = outcome else { return Ok(SettledAs::Before) };
        let receipt = self.table.get_receipt(&account, &receipt, self.clock.now()).await?;
        if receipt.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(SettledAs::Before);
        }
        Err(SettleError::Unreceipted { payment: payment.id.clone(), due_on: held.due_on })
    }

    /// Settles a success without an open attempt, by what `compute` makes of the stored subscription.
    ///
    /// # Errors
    /// [`TableError`].
    pub(crate) async fn settle_late<R>(
        &self,
        stored: Subscription,
        amount: Money,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Rewritten<Subscription, R>, TableError> {
        let settled = self.table.settle(stored, compute).await?;
        if matches!(settled, Rewritten::Applied(_)) {
            self.charged(amount);
        }
        Ok(settled)
    }

    /// A success is believed only if it is the attempt's: its subscription, period, amount and currency. That of an earlier
    /// attempt is compared with that attempt's record. What contradicts is never receipted.
    ///
    /// # Errors
    /// [`SettleError::Contradicts`], or [`SettleError::Table`].
    pub(crate) async fn verify(
        &self,
        subscription: &Subscription,
        held: &Attempt,
        payment: &Payment,
    ) -> Result<(), SettleError> {
        let (account, id) = (&subscription.account, subscription.id);
        let contradicts = |reason: String| Err(SettleError::Contradicts { payment: payment.id.clone(), reason });
        let is_tables = payment.table.is_none() || payment.table == held.table;
        if (&payment.account, payment.subscription) != (account, id) || !is_tables {
            return contradicts("it is another subscription's".to_owned());
        }
        if Period::of(payment.due_on) != Period::of(held.due_on) {
            return contradicts(format!("it is of {}, not of {}", payment.due_on, held.due_on));
        }
        let asked = if payment.attempt_no == held.no {
            Some(held.amount)
        } else {
            let record = self.table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
            record.map(|record| record.amount)
        };
        match asked {
            Some(asked) if asked == payment.amount => Ok(()),
            Some(asked) => contradicts(format!("it is of {}, and {asked} was asked for", payment.amount)),
            None => contradicts(format!("there is no record of its attempt {}", payment.attempt_no)),
        }
    }

    /// A payment was charged: the next [`Settling::count`] counts it.
    pub(crate) fn charged(&self, amount: Money) {
        self.uncounted().add(amount);
    }

    /// Adds what was charged since the last time to the total of `today`, in `shard`. UpdateItem, if there is something.
    ///
    /// # Errors
    /// [`TableError`]: it is counted with the next.
    pub async fn count(&self, today: NaiveDate, shard: u32) -> Result<(), TableError> {
        let charged = std::mem::take(&mut *self.uncounted());
        if charged.charges() == 0 {
            return Ok(());
        }
        let counted = self.table.add_charged(today, shard, &charged).await;
        if counted.is_err() {
            self.uncounted().add_all(&charged);
        }
        counted
    }

    /// As [`Settling::count`], after what was settled for who waits: that it is not counted yet does not undo it.
    pub async fn count_or_warn(&self, today: NaiveDate, shard: u32) {
        if let Err(error) = self.count(today, shard).await {
            tracing::warn!(%error, "what was charged is not counted in the total of the day yet");
        }
    }

    fn uncounted(&self) -> MutexGuard<'_, Day> {
        self.uncounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
