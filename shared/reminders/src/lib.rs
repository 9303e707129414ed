//! The reminder batch. For each reminder that is due, a worker claims the reminder, sends the mail, and marks the
//! reminder as sent. If the worker crashes after sending and before marking, the reminder is sent a second time. A
//! reminder is never lost.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod totals;

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use billing::{
    ClaimToken, MailStatus, Reminder, ReminderDecision, Subscription, decide_reminder, mark_reminder_processed,
};
use clock::Clock;
use mail::{Mail, MailError, MailFacts, MailFault, MailKind, Mailer, Merchant};
use store::{
    Claim, ClaimOutcome, DueEntry, DueIndexPosition, DuePage, Lane, ReminderCounts, Table, TableError, ignore_refusal,
};
use sweep::{BatchTask, Outcome, RowResult, RunReport, time_left};

pub use totals::ReminderTotals;

/// How long a worker leases a reminder that it has claimed. During this time, no other worker sends the reminder.
pub const REMINDER_LEASE: TimeDelta = TimeDelta::minutes(20);

/// A run starts to process a reminder only if at least this much time is left until the deadline of the run. This time
/// is enough to claim the reminder, send the mail to a slow mail server, and mark the reminder as sent.
const MIN_TIME_LEFT: TimeDelta = TimeDelta::seconds(50);

/// The reminder batch: sends the reminders that are due.
#[derive(Debug)]
pub struct ReminderBatch {
    table: Table,
    mailer: Arc<dyn Mailer>,
    merchant: Merchant,
    clock: Arc<dyn Clock>,
}

/// The outcome of a row of the reminder batch. A run counts its rows by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReminderOutcome {
    /// The reminder was sent, and marked as sent.
    Sent,
    /// The reminder was not sent, because the address accepts no mail, or an earlier mail to it was reported as spam.
    Undeliverable,
    /// The recipient did not accept the reminder now, for example because the mailbox is full. It stays due.
    Delayed,
    /// The due date of the payment has passed, and the reminder was not sent before.
    Missed,
    /// Another worker has claimed the reminder, and has not marked it as sent yet.
    InProgress,
    /// The reminder was not sent, because it is not needed any more, or because the payment method of the subscription
    /// is disputed.
    Skipped,
}

impl Outcome for ReminderOutcome {
    type Counts = ReminderCounts;
    type Totals = ReminderTotals;

    fn counter_in(self, counts: &mut ReminderCounts) -> &mut u64 {
        match self {
            Self::Sent => &mut counts.sent,
            Self::Undeliverable => &mut counts.undeliverable,
            Self::Delayed => &mut counts.delayed,
            Self::Missed => &mut counts.missed,
            Self::InProgress => &mut counts.in_progress,
            Self::Skipped => &mut counts.skipped,
        }
    }

    fn is_expected(self) -> bool {
        matches!(self, Self::Sent | Self::Skipped)
    }

    fn was_workable(self) -> bool {
        !matches!(self, Self::Undeliverable | Self::Delayed | Self::Skipped)
    }
}

/// The result of claiming a reminder.
enum ReminderClaimOutcome {
    /// This run has claimed the reminder, and must send it.
    Claimed(Box<Subscription>),
    /// The reminder is due, but another worker has claimed it.
    ClaimedByOther,
    /// The reminder is not due any more.
    NotDue,
}

/// The reason why a row of the reminder batch failed.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
enum RemindError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Mail(#[from] MailError),
    #[error("the subscription's account does not exist")]
    NoAccount,
    #[error("the lease of the reminder has expired before the mail was sent: a later run or another worker sends it")]
    ClaimExpired,
}

#[async_trait]
impl BatchTask for ReminderBatch {
    type Outcome = ReminderOutcome;
    type Run = ();

    fn lease_duration(&self) -> TimeDelta {
        REMINDER_LEASE
    }

    fn start_run(&self, _: NonZeroU32) {}

    async fn read_page(
        &self,
        (): &(),
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        table.get_due_reminders_by_date(shard, on, after, limit).await
    }

    async fn work_on_row(
        &self,
        (): &(),
        _: Lane,
        due: &DueEntry,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> RowResult<ReminderOutcome> {
        if time_left(self.clock.as_ref(), deadline) < MIN_TIME_LEFT {
            return RowResult::OutOfTime;
        }
        match self.process_reminder(due, today).await {
            Ok(outcome) => RowResult::Counted(outcome),
            Err(error) => RowResult::Failed { error_type: (&error).into(), reason: error.to_string() },
        }
    }

    fn log_report(report: &RunReport<ReminderOutcome>, _: DateTime<Utc>) {
        let RunReport { batch, date, complete, oldest_due_days, .. } = report;
        let (is_done, stopped) = (report.is_done(), report.stopped.as_deref());
        let ReminderCounts { due, sent, undeliverable, delayed, missed, in_progress, skipped, failed } = report.counts;
        tracing::info!(
            %batch, %date, is_done, complete, due, sent, undeliverable, delayed, missed, in_progress, skipped, failed,
            oldest_due_days, stopped, "a run has ended"
        );
    }
}

impl ReminderBatch {
    /// Creates the batch that sends the due reminders of `table` with `mailer`, in the name of `merchant`.
    pub fn new(table: Table, mailer: Arc<dyn Mailer>, merchant: Merchant, clock: Arc<dyn Clock>) -> Self {
        Self { table, mailer, merchant, clock }
    }

    /// Claims the reminder of the index row `due`, sends the mail, and marks the reminder as sent.
    async fn process_reminder(&self, due: &DueEntry, today: NaiveDate) -> Result<ReminderOutcome, RemindError> {
        let token = ClaimToken(self.clock.ulid());
        let claimed = match self.claim_reminder(due, token, today).await? {
            ReminderClaimOutcome::Claimed(claimed) => *claimed,
            // Another worker has claimed the reminder. If this worker was killed before it sent the mail, a later run
            // sends the reminder, after the end of the worker's lease.
            ReminderClaimOutcome::ClaimedByOther => return Ok(ReminderOutcome::InProgress),
            ReminderClaimOutcome::NotDue => return Ok(ReminderOutcome::Skipped),
        };
        let (outcome, sent) = match decide_reminder(&claimed, today) {
            ReminderDecision::Send(reminder) => match self.send_reminder(&claimed, reminder).await? {
                ReminderOutcome::Sent => (ReminderOutcome::Sent, Some(reminder)),
                // The address does not accept the reminder. It stays due until the due date of the payment, because
                // the customer may correct the address or empty the mailbox.
                outcome => (outcome, None),
            },
            ReminderDecision::Missed => {
                tracing::warn!(key = %due.key.key(), "a reminder was not sent before its payment was due");
                (ReminderOutcome::Missed, None)
            }
            ReminderDecision::NotNeeded | ReminderDecision::NotDue | ReminderDecision::Held => {
                (ReminderOutcome::Skipped, None)
            }
        };
        self.finish_claim(claimed, token, sent, today).await?;
        Ok(outcome)
    }

    /// Claims the reminder of the index row `due`, if the reminder is still due on `today`.
    async fn claim_reminder(
        &self,
        due: &DueEntry,
        token: ClaimToken,
        today: NaiveDate,
    ) -> Result<ReminderClaimOutcome, TableError> {
        let mut expected = due.on;
        // Try at most twice: the date from the index may be stale, and then the second try uses the stored date.
        for _ in 0..2 {
            let now = self.clock.now();
            let claim = Claim { token, now, leased_until: now + REMINDER_LEASE };
            match self.table.claim_reminder(&due.key, expected, claim).await? {
                ClaimOutcome::Claimed(claimed) => return Ok(ReminderClaimOutcome::Claimed(claimed)),
                ClaimOutcome::Refused(stored) => match stored.and_then(|stored| stored.next_reminder_on) {
                    Some(on) if on <= today && on != expected => expected = on,
                    // The stored date is the expected date, so the claim was refused because of another worker's lease.
                    Some(on) if on <= today => return Ok(ReminderClaimOutcome::ClaimedByOther),
                    _ => return Ok(ReminderClaimOutcome::NotDue),
                },
            }
        }
        // Another worker changed the item before each of the two claims. The reminder stays due, so leave it to a later
        // run.
        Ok(ReminderClaimOutcome::ClaimedByOther)
    }

    /// Sends `reminder` to the customer of `subscription`. If the mail service says that the address accepts no mail,
    /// marks the account with this address. Returns [`ReminderOutcome::Sent`], [`ReminderOutcome::Undeliverable`] or
    /// [`ReminderOutcome::Delayed`].
    async fn send_reminder(
        &self,
        subscription: &Subscription,
        reminder: Reminder,
    ) -> Result<ReminderOutcome, RemindError> {
        let account = self.table.get_account(&subscription.account).await?.ok_or(RemindError::NoAccount)?;
        let now = self.clock.now();
        // If the process was suspended after the claim, the reminder may be out of date, or another worker may have
        // sent it.
        if subscription.reminder_claim.is_none_or(|claim| claim.leased_until <= now) {
            return Err(RemindError::ClaimExpired);
        }
        let id = format!("{}-reminder-{}", now.format("%Y-%m-%d"), self.clock.ulid());
        let (product, email) = (subscription.product_name.clone(), subscription.email.clone());
        let facts = MailFacts {
            amount: Some(reminder.amount),
            due_on: Some(reminder.due_on),
            ..MailFacts::new(MailKind::Upcoming, product, email)
        };
        // Another system of the merchant sends each reminder when it receives the event `subscription.reminded`.
        // Marking the reminder as sent publishes this event.
        if self.merchant.unsent_mails.contains(&facts.kind) {
            return Ok(ReminderOutcome::Sent);
        }
        let mail = Mail::compose(&facts, &self.merchant, &account, id, now);
        if account.refuses_mail_to(&mail.to) {
            return Ok(ReminderOutcome::Undeliverable);
        }
        let Err(error) = self.mailer.send(&mail).await else { return Ok(ReminderOutcome::Sent) };
        match error.fault {
            MailFault::RecipientPermanent => {
                tracing::warn!(
                    account = %account.id, %error, error_type = "Mail",
                    "a reminder is not sent: the address accepts no mail, and is marked if it is that of the account"
                );
                self.table.set_mail_status_of_address(&account.id, &mail.to, MailStatus::Bounced).await?;
                Ok(ReminderOutcome::Undeliverable)
            }
            MailFault::RecipientTransient => {
                tracing::warn!(
                    account = %account.id, %error, error_type = "Mail",
                    "a reminder is delayed: its recipient does not accept it now"
                );
                Ok(ReminderOutcome::Delayed)
            }
            MailFault::ServiceTransient | MailFault::Settings => Err(error.into()),
        }
    }

    /// Removes the claim with the token `token`, and marks the reminder `sent` as sent. `sent` is `None` if no reminder
    /// was sent. Writes nothing if another worker has claimed the reminder in the meantime.
    async fn finish_claim(
        &self,
        claimed: Subscription,
        token: ClaimToken,
        sent: Option<Reminder>,
        today: NaiveDate,
    ) -> Result<(), TableError> {
        let marked = |stored: &Subscription| match stored.reminder_claim {
            Some(claim) if claim.claim_token == token => {
                Ok(mark_reminder_processed(stored, sent, today, self.clock.now()))
            }
            other => Err(other),
        };
        ignore_refusal(self.table.rewrite_subscription(claimed, marked).await)
    }
}
