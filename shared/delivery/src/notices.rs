//! Notices: mails about what has become of a payment. They follow the events, so that a mail server that is away delays mails and
//! never a payment.
//!
//! An event comes at least once, in no order, and late. A worker claims a notice, sends it and marks it as sent. If it is killed before
//! the mark, the notice may be sent twice, but is never lost. A notice that is no longer true is not sent: a payment that was declined
//! and is paid by now needs no other card.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use billing::{
    Account, AccountId, DeclineNews, News, PaymentNews, Receipt, ReceivedEvent, Status, Subscription, SubscriptionId,
    SubscriptionNews, Token, UnreadableEvent,
};
use clock::Clock;
use mail::{Mail, MailError, MailFacts, Mailer, Merchant, Occasion};
use store::{Claim, NoticeClaimed, Table, TableError};

/// Logged for each notice that the mail service will never take. An alarm in `template.yaml` matches it.
pub const NOTICE_REFUSED: &str = "a notice was refused for good";
/// Logged for each message that failed and stays in the queue. An alarm in `template.yaml` matches it.
pub const NOTICE_COMES_AGAIN: &str = "a message comes again";

/// No other worker sends a notice for this long after it was claimed.
const LEASE: TimeDelta = TimeDelta::minutes(2);

/// A notice is sent so long after its event at the latest: queues keep an event no longer, and what was sent is known for longer.
const LATEST: TimeDelta = TimeDelta::days(14);

/// Stripe's word for a bank that wants its customer to confirm.
const CONFIRM: &str = "authentication_required";

/// Sends notices.
#[derive(Clone, Debug)]
pub struct Notices {
    table: Table,
    mailer: Arc<dyn Mailer>,
    merchant: Merchant,
    zone: Tz,
    clock: Arc<dyn Clock>,
}

/// The result of working on an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeOutcome {
    Sent,
    /// It was sent before.
    SentBefore,
    /// The event needs no mail, or no longer needs one.
    Nothing,
    /// The address takes no mail.
    Refused,
}

/// Why no notice was sent. The event is to come again.
#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableEvent),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Mail(#[from] MailError),
    #[error("somebody else is sending it until {until}, or was killed")]
    HeldElsewhere { until: DateTime<Utc> },
    #[error("its worker slept after the claim: another one sends it")]
    TooLate,
}

impl NoticeError {
    /// Whether the notice of the same event may be sent later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            Self::Table(error) => error.is_transient() || error.is_conflict(),
            Self::Mail(_) | Self::HeldElsewhere { .. } | Self::TooLate => true,
        }
    }
}

/// A notice: the account that it goes to, and its facts.
type Notice = (Account, MailFacts);

impl Notices {
    /// Notices of what happens in `table`, through `mailer`, in the name of `merchant`, with the dates of `zone`.
    pub fn new(table: Table, mailer: Arc<dyn Mailer>, merchant: Merchant, zone: Tz, clock: Arc<dyn Clock>) -> Self {
        Self { table, mailer, merchant, zone, clock }
    }

    /// Whether customers get a notice of events like `event`. Nothing is claimed for others.
    pub fn are_sent_for(event: &ReceivedEvent) -> bool {
        event.content().is_ok_and(|event| has_notice(&event.body))
    }

    /// Sends the customer the notice of `event`, if events of its type have one.
    ///
    /// # Errors
    /// [`NoticeError`]: the event is to come again.
    pub async fn notify(&self, event: &ReceivedEvent) -> Result<NoticeOutcome, NoticeError> {
        let event = event.content()?;
        let (token, now) = (Token(self.clock.ulid()), self.clock.now());
        // One as old as that may have been sent, and be forgotten.
        if !has_notice(&event.body) || now.signed_duration_since(event.time) > LATEST {
            return Ok(NoticeOutcome::Nothing);
        }
        let claim = Claim { token, now, leased_until: now + LEASE };
        match self.table.claim_notice(&event.id, claim).await? {
            NoticeClaimed::Held => {}
            NoticeClaimed::Done => return Ok(NoticeOutcome::SentBefore),
            NoticeClaimed::HeldElsewhere { until } => return Err(NoticeError::HeldElsewhere { until }),
        }
        let outcome = match self.notice(&event.body).await {
            Ok(Some(notice)) => self.send(&event.id, &notice, claim.leased_until).await,
            Ok(None) => Ok(NoticeOutcome::Nothing),
            Err(error) => Err(error.into()),
        };
        match outcome {
            Ok(outcome) => {
                self.table.finish_notice(&event.id, token, self.clock.now()).await?;
                Ok(outcome)
            }
            Err(error) => {
                // If this is lost, the lease lapses.
                if let Err(lost) = self.table.release_notice(&event.id, token).await {
                    tracing::warn!(error = %lost, "a notice is claimed until its lease lapses");
                }
                Err(error)
            }
        }
    }

    async fn send(
        &self,
        event: &str,
        (account, facts): &Notice,
        until: DateTime<Utc>,
    ) -> Result<NoticeOutcome, NoticeError> {
        let now = self.clock.now();
        // A process that was suspended must not wake up and send what another one has sent.
        if now >= until {
            return Err(NoticeError::TooLate);
        }
        let mail = self.compose(account, facts, now);
        if account.refuses_mail_to(&mail.to) {
            tracing::warn!(event, account = %account.id, "a notice is not sent: its address takes no mail");
            return Ok(NoticeOutcome::Refused);
        }
        match self.mailer.send(&mail).await {
            Ok(()) => Ok(NoticeOutcome::Sent),
            Err(error) if error.is_transient => Err(error.into()),
            Err(error) => {
                tracing::error!(event, %error, "{NOTICE_REFUSED}");
                Ok(NoticeOutcome::Refused)
            }
        }
    }

    /// Sends the mail of `receipt` once more.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn resend(&self, account: &Account, receipt: &Receipt) -> Result<(), MailError> {
        let facts = MailFacts {
            amount: Some(receipt.amount),
            due_on: Some(receipt.due_on),
            paid_on: Some(self.date_of(receipt.processed_at)),
            receipt: Some(receipt.number()),
            ..MailFacts::new(Occasion::Paid, receipt.product_name.clone(), receipt.email.clone())
        };
        self.mailer.send(&self.compose(account, &facts, self.clock.now())).await
    }

    fn date_of(&self, at: DateTime<Utc>) -> NaiveDate {
        at.with_timezone(&self.zone).date_naive()
    }

    fn compose(&self, account: &Account, facts: &MailFacts, now: DateTime<Utc>) -> Mail {
        let id = format!("{}-{}-{}", now.format("%Y-%m-%d"), facts.occasion, self.clock.ulid());
        Mail::compose(facts, (&self.merchant, account), id, now)
    }

    /// Returns the notice of `news`, if it needs one in the present state of the subscription.
    async fn notice(&self, news: &News) -> Result<Option<Notice>, TableError> {
        match news {
            News::PaymentSucceeded(paid) => self.paid(paid).await,
            News::PaymentDeclined(declined) => self.declined(declined).await,
            News::SubscriptionUnpaid(news) => {
                let Some((account, stored)) = self.stored(&news.account, news.subscription).await? else {
                    return Ok(None);
                };
                let is_so = stored.status == Status::Unpaid && stored.due_on == news.due_on;
                Ok(is_so.then(|| (account, open_payment(Occasion::Unpaid, stored))))
            }
            News::SubscriptionCancelled(news) => self.ended(news).await,
            _ => Ok(None),
        }
    }

    async fn paid(&self, paid: &PaymentNews) -> Result<Option<Notice>, TableError> {
        let Some(account) = self.table.get_account(&paid.account).await? else { return Ok(None) };
        let Ok(id) = paid.receipt.parse() else { return Ok(None) };
        let receipt = self.table.get_receipt(&paid.account, &id, self.clock.now()).await?;
        let facts = MailFacts {
            amount: Some(paid.amount),
            due_on: Some(paid.due_on),
            paid_on: Some(self.date_of(paid.processed_at)),
            receipt: receipt.as_ref().map(Receipt::number),
            ..MailFacts::new(Occasion::Paid, paid.product_name.clone(), receipt.and_then(|receipt| receipt.email))
        };
        Ok(Some((account, facts)))
    }

    async fn declined(&self, declined: &DeclineNews) -> Result<Option<Notice>, TableError> {
        let Some((account, stored)) = self.stored(&declined.account, declined.subscription).await? else {
            return Ok(None);
        };
        // A payment that is not tried again has a notice of its own. A decline before another card or another try is over.
        let is_last =
            stored.attempt_seq == declined.attempt_no && stored.attempt.is_none() && stored.failed_attempts > 0;
        let is_tried_again = is_last && stored.status == Status::PastDue && stored.due_on == declined.due_on;
        let occasion = if declined.code == CONFIRM { Occasion::CardNeeded } else { Occasion::Failed };
        Ok(is_tried_again.then(|| {
            let next_on = stored.next_payment_on;
            (account, MailFacts { amount: Some(declined.amount), next_on, ..open_payment(occasion, stored) })
        }))
    }

    async fn ended(&self, news: &SubscriptionNews) -> Result<Option<Notice>, TableError> {
        let Some((account, stored)) = self.stored(&news.account, news.subscription).await? else { return Ok(None) };
        Ok(Some((account, MailFacts::new(Occasion::Ended, stored.product_name, stored.email))))
    }

    async fn stored(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
    ) -> Result<Option<(Account, Subscription)>, TableError> {
        let account_and =
            (self.table.get_account(account).await?, self.table.get_subscription(account, subscription).await?);
        Ok(match account_and {
            (Some(account), Some(subscription)) => Some((account, subscription)),
            _ => None,
        })
    }
}

fn has_notice(news: &News) -> bool {
    matches!(
        news,
        News::PaymentSucceeded(_)
            | News::PaymentDeclined(_)
            | News::SubscriptionUnpaid(_)
            | News::SubscriptionCancelled(_)
    )
}

/// The facts of the open payment of `stored`.
fn open_payment(occasion: Occasion, stored: Subscription) -> MailFacts {
    MailFacts {
        amount: Some(stored.price),
        due_on: Some(stored.due_on),
        ..MailFacts::new(occasion, stored.product_name, stored.email)
    }
}
