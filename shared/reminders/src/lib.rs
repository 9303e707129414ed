//! The reminder batch: claim, send, mark. A crash between send and mark may send one more, never none.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use billing::{Reminder, Reminding, Subscription, Token, mark_reminded, remind};
use clock::Clock;
use mail::{Mail, MailError, MailFacts, Mailer, Merchant, Occasion};
use store::{Claim, Claimed, Due, DuePage, Lane, Position, ReminderCounts, Table, TableError};
use sweep::{Done, Outcome, Report, Task, time_left};

/// No other worker sends a reminder for this long after it was claimed.
pub const REMINDER_LEASE: TimeDelta = TimeDelta::minutes(20);

/// A reminder is begun only while this is left: a claim, a mail server that is slow to answer, and a mark.
const TIME_FOR_A_REMINDER: TimeDelta = TimeDelta::seconds(50);

/// Sends the reminders that are due.
#[derive(Debug)]
pub struct RemindDue {
    table: Table,
    mailer: Arc<dyn Mailer>,
    merchant: Merchant,
    clock: Arc<dyn Clock>,
}

/// The outcome of a due reminder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReminderOutcome {
    /// It was sent, and marked as sent.
    Sent,
    /// The account's address takes no mail.
    Undeliverable,
    /// It could not be sent before its payment was due.
    Missed,
    /// Another worker has claimed it and has not marked it as sent.
    InProgress,
    /// There was nothing to send.
    Skipped,
}

impl Outcome for ReminderOutcome {
    type Counts = ReminderCounts;

    fn count(self, counts: &mut ReminderCounts) -> &mut u64 {
        match self {
            Self::Sent => &mut counts.sent,
            Self::Undeliverable => &mut counts.undeliverable,
            Self::Missed => &mut counts.missed,
            Self::InProgress => &mut counts.in_progress,
            Self::Skipped => &mut counts.skipped,
        }
    }

    fn log(report: &Report<ReminderCounts>) {
        let Report { batch, date, complete, .. } = report;
        let (is_done, stopped) = (report.is_done(), report.stopped.as_deref());
        let ReminderCounts { due, sent, undeliverable, missed, in_progress, skipped, failed } = report.counts;
        tracing::info!(
            %batch, %date, is_done, complete, due, sent, undeliverable, missed, in_progress, skipped, failed, stopped,
            "a run has ended"
        );
    }
}

/// The result of claiming a reminder.
enum ReminderClaim {
    /// This run sends it.
    Ours(Box<Subscription>),
    /// It is due, and another worker holds it.
    HeldElsewhere,
    /// It is not due any more.
    NotDue,
}

#[derive(Debug, thiserror::Error)]
enum RemindError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Mail(#[from] MailError),
    #[error("its account does not exist")]
    NoAccount,
    #[error("its worker slept after the claim: another one sends it")]
    TooLate,
}

#[async_trait]
impl Task for RemindDue {
    type Outcome = ReminderOutcome;
    type Run = ();

    fn lease(&self) -> TimeDelta {
        REMINDER_LEASE
    }

    fn begin(&self, _: NonZeroU32) {}

    async fn page(
        &self,
        (): &(),
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        table.get_due_reminders_by_date(shard, on, after, limit).await
    }

    async fn work(
        &self,
        (): &(),
        _: Lane,
        due: &Due,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> Done<ReminderOutcome> {
        if time_left(self.clock.as_ref(), deadline) < TIME_FOR_A_REMINDER {
            return Done::OutOfTime;
        }
        match self.remind(due, today).await {
            Ok(outcome) => Done::Counted(outcome),
            Err(error) => Done::Failed { reason: error.to_string() },
        }
    }
}

impl RemindDue {
    /// Reminds of what is due in `table` through `mailer`, in the name of `merchant`.
    pub fn new(table: Table, mailer: Arc<dyn Mailer>, merchant: Merchant, clock: Arc<dyn Clock>) -> Self {
        Self { table, mailer, merchant, clock }
    }

    async fn remind(&self, due: &Due, today: NaiveDate) -> Result<ReminderOutcome, RemindError> {
        let token = Token(self.clock.ulid());
        let held = match self.claim(due, token, today).await? {
            ReminderClaim::Ours(held) => *held,
            // Its worker may have been killed before it sent the mail: only a later walk can tell.
            ReminderClaim::HeldElsewhere => return Ok(ReminderOutcome::InProgress),
            ReminderClaim::NotDue => return Ok(ReminderOutcome::Skipped),
        };
        let (outcome, sent) = match remind(&held, today) {
            // It is not charged. Should the dispute be won in time, it is reminded of.
            Reminding::Send(_) if held.disputed_at.is_some() => (ReminderOutcome::Skipped, None),
            Reminding::Send(reminder) if self.send(&held, reminder).await? => (ReminderOutcome::Sent, Some(reminder)),
            // It stays due until its payment is: the address may be mended.
            Reminding::Send(_) => (ReminderOutcome::Undeliverable, None),
            Reminding::Missed => {
                tracing::warn!(key = %due.key.key(), "a reminder could not be sent before its payment was due");
                (ReminderOutcome::Missed, None)
            }
            Reminding::Drop | Reminding::NotDue => (ReminderOutcome::Skipped, None),
        };
        self.mark(held, token, sent, today).await?;
        Ok(outcome)
    }

    /// Claims the reminder of `due`.
    async fn claim(&self, due: &Due, token: Token, today: NaiveDate) -> Result<ReminderClaim, TableError> {
        let mut seen = due.on;
        // Twice at most: the index may show a date that is no longer the item's.
        for _ in 0..2 {
            let now = self.clock.now();
            let claim = Claim { token, now, leased_until: now + REMINDER_LEASE };
            match self.table.claim_reminder(&due.key, seen, claim).await? {
                Claimed::Held(held) => return Ok(ReminderClaim::Ours(held)),
                Claimed::Refused(stored) => match stored.and_then(|stored| stored.next_reminder_on) {
                    Some(on) if on <= today && on != seen => seen = on,
                    // It is due on the date that was asked for, so the lease is what refused the claim.
                    Some(on) if on <= today => return Ok(ReminderClaim::HeldElsewhere),
                    _ => return Ok(ReminderClaim::NotDue),
                },
            }
        }
        // Another worker writes the item at this moment, and it is due.
        Ok(ReminderClaim::HeldElsewhere)
    }

    /// Whether it was sent, and not given up because the address takes no mail.
    async fn send(&self, subscription: &Subscription, reminder: Reminder) -> Result<bool, RemindError> {
        let account = self.table.get_account(&subscription.account).await?.ok_or(RemindError::NoAccount)?;
        let now = self.clock.now();
        // A process that was suspended must not wake up and send what was true an hour ago.
        if subscription.reminder_claim.is_none_or(|claim| claim.leased_until <= now) {
            return Err(RemindError::TooLate);
        }
        let id = format!("{}-reminder-{}", now.format("%Y-%m-%d"), self.clock.ulid());
        let (product, email) = (subscription.product_name.clone(), subscription.email.clone());
        let facts = MailFacts {
            amount: Some(reminder.amount),
            due_on: Some(reminder.due_on),
            ..MailFacts::new(Occasion::Upcoming, product, email)
        };
        let mail = Mail::compose(&facts, (&self.merchant, &account), id, now);
        if account.refuses_mail_to(&mail.to) {
            return Ok(false);
        }
        self.mailer.send(&mail).await?;
        Ok(true)
    }

    /// Marks what was sent on whatever is stored by now, unless somebody else has taken the reminder over.
    async fn mark(
        &self,
        held: Subscription,
        token: Token,
        sent: Option<Reminder>,
        today: NaiveDate,
    ) -> Result<(), TableError> {
        let marked = |stored: &Subscription| match stored.reminder_claim {
            Some(claim) if claim.held_by == token => Ok(mark_reminded(stored, sent, today, self.clock.now())),
            other => Err(other),
        };
        self.table.rewrite_subscription(held, marked).await.map(drop)
    }
}
