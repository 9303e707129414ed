//! Notices: mails about what has become of a payment. They follow the events, so that a mail server that is away delays mails and
//! never a payment.
//!
//! An event comes at least once, in no order, and late. Each is told once: claimed, sent, marked. A kill between sending and marking
//! may send one more, never none. What no longer holds when its turn comes is not told: a payment that was declined and is paid by
//! now needs no other card.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use billing::CloudEvent;
use billing::{
    Account, AccountId, DeclineNews, EmailAddress, Label, Money, News, PaymentNews, Receipt, Status, Subscription,
    SubscriptionId, SubscriptionNews, Token,
};
use clock::Clock;
use mail::{Mail, MailError, Mailer, Matter, Merchant, Occasion};
use store::{Claim, NoticeClaimed, Table, TableError};

/// Logged for each notice that the mail service will never take. An alarm in `template.yaml` matches it.
pub const NOTICE_REFUSED: &str = "a notice was refused for good";
/// Logged for each message that failed and stays in the queue. An alarm in `template.yaml` matches it.
pub const NOTICE_COMES_AGAIN: &str = "a message comes again";

/// Nobody else sends a notice for this long after it was claimed.
const LEASE: TimeDelta = TimeDelta::minutes(2);

/// A notice is sent so long after its event at the latest: queues keep an event no longer, and what was sent is known for longer.
const LATEST: TimeDelta = TimeDelta::days(14);

/// Stripe's word for a bank that wants its customer to confirm.
const CONFIRM: &str = "authentication_required";

/// Writes notices.
#[derive(Clone, Debug)]
pub struct Notices {
    table: Table,
    mailer: Arc<dyn Mailer>,
    merchant: Merchant,
    zone: Tz,
    clock: Arc<dyn Clock>,
}

/// What was made of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noticed {
    Sent,
    /// It was sent before.
    SentBefore,
    /// Nothing is to be said of it, or no longer.
    Nothing,
    /// The address takes no mail.
    Refused,
}

/// Why an event was not told. It is to come again.
#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
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
    /// Whether the same event may be told later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Table(error) => error.is_transient() || error.is_conflict(),
            Self::Mail(_) | Self::HeldElsewhere { .. } | Self::TooLate => true,
        }
    }
}

/// What is to be said, with all that it needs.
struct Saying {
    occasion: Occasion,
    account: Account,
    product: Label,
    email: Option<EmailAddress>,
    amount: Option<Money>,
    dates: Dates,
    receipt: Option<String>,
}

#[derive(Default)]
struct Dates {
    due_on: Option<NaiveDate>,
    next_on: Option<NaiveDate>,
    paid_on: Option<NaiveDate>,
}

impl Notices {
    /// Notices of what happens in `table`, through `mailer`, in the name of `merchant`, with the dates of `zone`.
    pub fn new(table: Table, mailer: Arc<dyn Mailer>, merchant: Merchant, zone: Tz, clock: Arc<dyn Clock>) -> Self {
        Self { table, mailer, merchant, zone, clock }
    }

    /// Whether customers are told of such an event: nothing is claimed for all else.
    pub fn tells(event: &CloudEvent) -> bool {
        is_told(&event.body)
    }

    /// Tells the customer what `event` says, if it is something that a customer is told.
    ///
    /// # Errors
    /// [`NoticeError`]: the event is to come again.
    pub async fn tell(&self, event: &CloudEvent) -> Result<Noticed, NoticeError> {
        let (token, now) = (Token(self.clock.ulid()), self.clock.now());
        // One as old as that may have been sent, and be forgotten.
        if !is_told(&event.body) || now.signed_duration_since(event.time) > LATEST {
            return Ok(Noticed::Nothing);
        }
        let claim = Claim { token, now, leased_until: now + LEASE };
        match self.table.claim_notice(&event.id, claim).await? {
            NoticeClaimed::Held => {}
            NoticeClaimed::Done => return Ok(Noticed::SentBefore),
            NoticeClaimed::HeldElsewhere { until } => return Err(NoticeError::HeldElsewhere { until }),
        }
        let told = match self.saying(&event.body).await {
            Ok(Some(saying)) => self.say(&event.id, &saying, claim.leased_until).await,
            Ok(None) => Ok(Noticed::Nothing),
            Err(error) => Err(error.into()),
        };
        match told {
            Ok(told) => {
                self.table.finish_notice(&event.id, token, self.clock.now()).await?;
                Ok(told)
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

    async fn say(&self, event: &str, saying: &Saying, until: DateTime<Utc>) -> Result<Noticed, NoticeError> {
        let now = self.clock.now();
        // A process that was suspended must not wake up and send what another one has sent.
        if now >= until {
            return Err(NoticeError::TooLate);
        }
        let mail = self.compose(saying, now);
        if saying.account.refuses_mail_to(&mail.to) {
            tracing::warn!(event, account = %saying.account.id, "a notice is not sent: its address takes no mail");
            return Ok(Noticed::Refused);
        }
        match self.mailer.send(&mail).await {
            Ok(()) => Ok(Noticed::Sent),
            Err(error) if error.is_transient => Err(error.into()),
            Err(error) => {
                tracing::error!(event, %error, "{NOTICE_REFUSED}");
                Ok(Noticed::Refused)
            }
        }
    }

    /// Sends the mail of `receipt` once more.
    ///
    /// # Errors
    /// [`MailError`].
    pub async fn resend(&self, account: &Account, receipt: &Receipt) -> Result<(), MailError> {
        let saying = Saying {
            occasion: Occasion::Paid,
            account: account.clone(),
            product: receipt.product_name.clone(),
            email: receipt.email.clone(),
            amount: Some(receipt.amount),
            dates: self.dates_paid(receipt.due_on, receipt.processed_at),
            receipt: Some(receipt.number()),
        };
        self.mailer.send(&self.compose(&saying, self.clock.now())).await
    }

    fn dates_paid(&self, due_on: NaiveDate, paid_at: DateTime<Utc>) -> Dates {
        let paid_on = paid_at.with_timezone(&self.zone).date_naive();
        Dates { due_on: Some(due_on), paid_on: Some(paid_on), next_on: None }
    }

    fn compose(&self, saying: &Saying, now: DateTime<Utc>) -> Mail {
        let matter = Matter {
            amount: saying.amount,
            due_on: saying.dates.due_on,
            next_on: saying.dates.next_on,
            paid_on: saying.dates.paid_on,
            receipt: saying.receipt.clone(),
            ..Matter::of(&saying.product, saying.email.as_ref())
        };
        let id = format!("{}-{}-{}", now.format("%Y-%m-%d"), saying.occasion, self.clock.ulid());
        Mail::compose(saying.occasion, &matter, (&self.merchant, &saying.account), id, now)
    }

    /// What is to be said of `news`, as things are now.
    async fn saying(&self, news: &News) -> Result<Option<Saying>, TableError> {
        match news {
            News::PaymentSucceeded(paid) => self.paid(paid).await,
            News::PaymentDeclined(declined) => self.declined(declined).await,
            News::SubscriptionUnpaid(news) => {
                let Some((account, stored)) = self.stored(&news.account, news.subscription).await? else {
                    return Ok(None);
                };
                let is_so = stored.status == Status::Unpaid && stored.due_on == news.due_on;
                Ok(is_so.then(|| Saying::open(Occasion::Unpaid, account, stored)))
            }
            News::SubscriptionCancelled(news) => self.ended(news).await,
            _ => Ok(None),
        }
    }

    async fn paid(&self, paid: &PaymentNews) -> Result<Option<Saying>, TableError> {
        let Some(account) = self.table.get_account(&paid.account).await? else { return Ok(None) };
        let Ok(id) = paid.receipt.parse() else { return Ok(None) };
        let receipt = self.table.get_receipt(&paid.account, &id, self.clock.now()).await?;
        let dates = self.dates_paid(paid.due_on, paid.processed_at);
        Ok(Some(Saying {
            occasion: Occasion::Paid,
            account,
            product: paid.product_name.clone(),
            amount: Some(paid.amount),
            dates,
            receipt: receipt.as_ref().map(Receipt::number),
            email: receipt.and_then(|receipt| receipt.email),
        }))
    }

    async fn declined(&self, declined: &DeclineNews) -> Result<Option<Saying>, TableError> {
        let Some((account, stored)) = self.stored(&declined.account, declined.subscription).await? else {
            return Ok(None);
        };
        // What is not tried again is told as that; what was declined before another card was given, or another try was made, is over.
        let is_last =
            stored.attempt_seq == declined.attempt_no && stored.attempt.is_none() && stored.failed_attempts > 0;
        let is_tried_again = is_last && stored.status == Status::PastDue && stored.due_on == declined.due_on;
        let occasion = if declined.code == CONFIRM { Occasion::CardNeeded } else { Occasion::Failed };
        Ok(is_tried_again.then(|| {
            let open = Saying::open(occasion, account, stored);
            Saying { amount: Some(declined.amount), ..open }
        }))
    }

    async fn ended(&self, news: &SubscriptionNews) -> Result<Option<Saying>, TableError> {
        let Some((account, stored)) = self.stored(&news.account, news.subscription).await? else { return Ok(None) };
        let ended = Saying::open(Occasion::Ended, account, stored);
        Ok(Some(Saying { amount: None, dates: Dates::default(), ..ended }))
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

fn is_told(news: &News) -> bool {
    matches!(
        news,
        News::PaymentSucceeded(_)
            | News::PaymentDeclined(_)
            | News::SubscriptionUnpaid(_)
            | News::SubscriptionCancelled(_)
    )
}

impl Saying {
    /// About what is open of `stored`.
    fn open(occasion: Occasion, account: Account, stored: Subscription) -> Self {
        let is_tried = matches!(occasion, Occasion::Failed | Occasion::CardNeeded);
        let dates =
            Dates { due_on: Some(stored.due_on), next_on: stored.next_payment_on.filter(|_| is_tried), paid_on: None };
        Self {
            occasion,
            account,
            amount: Some(stored.price),
            product: stored.product_name,
            email: stored.email,
            dates,
            receipt: None,
        }
    }
}
