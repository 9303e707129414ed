//! The sender of notices, which claims a notice before it sends it.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use crate::notice_content::{Notice, is_type_with_notice, shipment_notice, subscription_notice};
use billing::{
    Account, AccountId, ChangedField, ClaimToken, DeclineEventData, EventData, EventType, Label, MailStatus, Money,
    PaymentEventData, PaymentReason, PlannedPayment, Receipt, ReceivedEvent, Refund, RefundEventData, RefundStatus,
    Subscription, SubscriptionId, SubscriptionOutlook, SubscriptionStatus, UnreadableEvent,
};
use clock::Clock;
use mail::{Mail, MailError, MailFacts, MailFault, MailKind, Mailer, Merchant};
use store::{CardLink, Claim, NoticeClaimOutcome, Paging, Table, TableError};

/// The log message for a queue message that stays in the queue because its recipient does not accept mail now. Other
/// notices are sent, so no alarm matches this text.
pub const NOTICE_DELAYED: &str = "a notice is delayed: its recipient does not accept it now";
/// The log message for a queue message that failed and stays in the queue. An alarm in `template.yaml` matches this
/// text.
pub const NOTICE_MESSAGE_FAILED: &str = "a message failed and stays in the queue";

/// How long a worker's claim prevents other workers from sending the same notice.
const NOTICE_CLAIM_LEASE: TimeDelta = TimeDelta::minutes(2);

/// The maximum age of an event for which a notice is sent. Queues store messages for at most 14 days. The table
/// remembers a sent notice for a longer time. So when it has forgotten a notice, the event is too old for another notice.
const MAX_EVENT_AGE: TimeDelta = TimeDelta::days(14);

/// Stripe's decline code if the bank requires the customer to confirm the payment.
const AUTHENTICATION_REQUIRED: &str = "authentication_required";

/// Sends notices to customers by mail.
#[derive(Clone, Debug)]
pub struct CustomerNotifier {
    table: Table,
    mailer: Arc<dyn Mailer>,
    merchant: Merchant,
    /// The base URL of the API for card links; `None` if mails contain no card links.
    api_url: Option<String>,
    clock: Arc<dyn Clock>,
}

/// The outcome of processing one event, about which a notice may be necessary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeOutcome {
    Sent,
    /// The notice was sent earlier.
    AlreadySent,
    /// The event needs no notice, or no longer needs one.
    NotNeeded,
    /// The address does not accept mail. The account is marked if the address is that of the account.
    Undeliverable,
}

/// Why a notice could not be sent. The event must stay in the queue.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum NoticeError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableEvent),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Mail(#[from] MailError),
    #[error("another worker claimed the notice until {until}")]
    ClaimedByOther { until: DateTime<Utc> },
    #[error("the claim expired before the notice was sent; another worker may send it")]
    ClaimExpired,
}

impl NoticeError {
    /// Returns the name of the error, such as `Mail`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }

    /// Returns whether only the notices to this recipient fail, so that the other notices can be sent.
    pub fn concerns_only_recipient(&self) -> bool {
        matches!(self, Self::Mail(error) if error.fault.concerns_only_recipient())
    }

    /// Returns whether a later try with the same event may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            Self::Table(error) => error.is_transient() || error.is_conflict(),
            Self::Mail(_) | Self::ClaimedByOther { .. } | Self::ClaimExpired => true,
        }
    }
}

impl CustomerNotifier {
    /// Creates a sender of notices about the accounts in `table`. The mails are sent with `mailer`, in the name of
    /// `merchant`; their dates are those of the table's billing time zone.
    pub fn new(table: Table, mailer: Arc<dyn Mailer>, merchant: Merchant, clock: Arc<dyn Clock>) -> Self {
        Self { table, mailer, merchant, api_url: None, clock }
    }

    /// Adds card links to mails about owed payments: links to a web page of the API at `api_url`, on which the customer
    /// can enter a card.
    pub fn with_card_links(self, api_url: Option<String>) -> Self {
        Self { api_url: api_url.map(|url| url.trim_end_matches('/').to_owned()), ..self }
    }

    /// Returns whether a notice may be sent about `event`. For other events, [`CustomerNotifier::notify`] writes
    /// nothing to the table.
    pub fn has_notice_for(event: &ReceivedEvent) -> bool {
        event.content().is_ok_and(|event| is_type_with_notice(&event.body))
    }

    /// Sends the customer the notice about `event`, if there is a notice for events of this type and its content is
    /// still true.
    ///
    /// # Errors
    /// After an error, the event must stay in the queue.
    /// - [`NoticeError::Unreadable`] if the event cannot be read.
    /// - [`NoticeError::Table`] if a request to the table fails.
    /// - [`NoticeError::Mail`] if the mail service fails, or its recipient does not accept the mail now.
    /// - [`NoticeError::ClaimedByOther`] if another worker has claimed the notice.
    /// - [`NoticeError::ClaimExpired`] if the claim of this worker expired before the mail was sent.
    pub async fn notify(&self, event: &ReceivedEvent) -> Result<NoticeOutcome, NoticeError> {
        let event = event.content()?;
        let (token, now) = (ClaimToken(self.clock.ulid()), self.clock.now());
        // Send no notice about an event older than `MAX_EVENT_AGE`: the notice may have been sent before, and the mark
        // that it was sent may have expired.
        if !is_type_with_notice(&event.body) || now.signed_duration_since(event.time) > MAX_EVENT_AGE {
            return Ok(NoticeOutcome::NotNeeded);
        }
        // If the merchant has switched off the only kind of mail about this event, return before any request to the
        // table.
        if mail_kind_of_event_type(&event.body).is_some_and(|kind| self.merchant.unsent_mails.contains(&kind)) {
            return Ok(NoticeOutcome::NotNeeded);
        }
        // An imported subscription needs no notice. An import creates many subscriptions, so return before the write of
        // the claim.
        if let EventData::SubscriptionCreated(data) = &event.body
            && let Some((_, stored)) = self.get_account_and_subscription(&data.account, data.subscription).await?
            && stored.external_id.is_some()
        {
            return Ok(NoticeOutcome::NotNeeded);
        }
        self.table.refresh_policy(now).await?;
        let claim = Claim { token, now, leased_until: now + NOTICE_CLAIM_LEASE };
        let id = self.notice_id(&event.id, &event.body).await?;
        match self.table.claim_notice(&id, claim).await? {
            NoticeClaimOutcome::Claimed => {}
            NoticeClaimOutcome::AlreadyFinished => return Ok(NoticeOutcome::AlreadySent),
            NoticeClaimOutcome::ClaimedByOther { until } => return Err(NoticeError::ClaimedByOther { until }),
        }
        let outcome = match self.find_needed_notice(&event.body, event.time).await {
            Ok(Some(notice)) if self.merchant.unsent_mails.contains(&notice.facts.kind) => Ok(NoticeOutcome::NotNeeded),
            Ok(Some(notice)) => self.send_claimed(&event.id, notice, claim.leased_until).await,
            Ok(None) => Ok(NoticeOutcome::NotNeeded),
            Err(error) => Err(error.into()),
        };
        match outcome {
            Ok(outcome) => {
                self.table.finish_notice(&id, token, self.clock.now()).await?;
                Ok(outcome)
            }
            Err(error) => {
                // If the release fails, the claim of the notice expires with its lease.
                if let Err(release_error) = self.table.release_notice(&id, token).await {
                    tracing::warn!(
                        error = %release_error,
                        error_type = "Table",
                        "the claim of a notice could not be released; it ends when its lease expires"
                    );
                }
                Err(error)
            }
        }
    }

    /// Sends the claimed notice about the event with the id `event`, unless the claim has expired. `leased_until` is
    /// the end of the claim.
    async fn send_claimed(
        &self,
        event: &str,
        Notice { account, mut facts, owed }: Notice,
        leased_until: DateTime<Utc>,
    ) -> Result<NoticeOutcome, NoticeError> {
        if account.refuses_mail_to(facts.email.as_ref().unwrap_or(&account.email)) {
            tracing::warn!(event, account = %account.id, "a notice is not sent: the address does not accept mail");
            return Ok(NoticeOutcome::Undeliverable);
        }
        facts.card_url = self.create_card_link(owed).await?;
        let now = self.clock.now();
        // If this process was suspended after the claim, the lease may have expired, and another worker may have sent
        // the notice.
        if now >= leased_until {
            return Err(NoticeError::ClaimExpired);
        }
        let mail = self.compose_mail(&account, &facts, now);
        match self.mailer.send(&mail).await {
            Ok(()) => Ok(NoticeOutcome::Sent),
            Err(error) if error.fault == MailFault::RecipientPermanent => {
                tracing::warn!(
                    event, account = %account.id, %error, error_type = "Mail",
                    "a notice is not sent: the address accepts no mail, and is marked if it is that of the account"
                );
                self.table.set_mail_status_of_address(&account.id, &mail.to, MailStatus::Bounced).await?;
                Ok(NoticeOutcome::Undeliverable)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends the mail about the payment of `receipt` to the customer again: a copy of the receipt, or of the notice of the
    /// refund if the whole amount was refunded.
    ///
    /// # Errors
    /// [`NoticeError::Table`] or [`NoticeError::Mail`] if the table or the mail service fails.
    pub async fn resend(&self, account: &Account, receipt: &Receipt) -> Result<(), NoticeError> {
        let facts = MailFacts { is_copy: true, ..self.receipt_facts(receipt).await? };
        Ok(self.mailer.send(&self.compose_mail(account, &facts, self.clock.now())).await?)
    }

    /// Returns the facts of the mail about the payment of `receipt`: the receipt, or the notice of the refund if the
    /// whole amount was refunded. Pending refunds are left out, because they may fail.
    async fn receipt_facts(&self, receipt: &Receipt) -> Result<MailFacts, TableError> {
        let refunded = self.table.get_succeeded_refunds(receipt).await?.map(|refunds| refunds.amount);
        // The customer may have changed the address since the payment.
        let stored = self.table.get_subscription(&receipt.account, receipt.subscription).await?;
        let email = stored.map_or_else(|| receipt.email.clone(), |subscription| subscription.email);
        let is_fully_refunded = refunded.is_some_and(|refunded| refunded.minor() >= receipt.amount.minor());
        let kind = if is_fully_refunded { MailKind::Refunded } else { MailKind::Paid };
        Ok(MailFacts {
            amount: Some(receipt.amount),
            due_on: Some(receipt.due_on),
            paid_on: Some(self.local_date(receipt.processed_at)),
            refunded,
            reversed: receipt.reversal.map(|reversal| reversal.amount),
            receipt: Some(receipt.number().to_string()),
            card: receipt.card.clone(),
            ..MailFacts::new(kind, receipt.product_name.clone(), email)
        })
    }

    /// Returns the date of the instant `at` in the time zone of the mails.
    fn local_date(&self, at: DateTime<Utc>) -> NaiveDate {
        self.table.policy().date_at(at)
    }

    /// Composes the mail with `facts` to the customer of `account`.
    fn compose_mail(&self, account: &Account, facts: &MailFacts, now: DateTime<Utc>) -> Mail {
        let id = format!("{}-{}-{}", now.format("%Y-%m-%d"), facts.kind, self.clock.ulid());
        Mail::compose(facts, &self.merchant, account, id, now)
    }

    /// Stores a new card link for the payment `owed`. Returns the URL of the card link; `None` if `owed` is `None`, or
    /// if mails contain no card links.
    async fn create_card_link(&self, owed: Option<CardLink>) -> Result<Option<String>, TableError> {
        let (Some(owed), Some(api_url)) = (owed, &self.api_url) else { return Ok(None) };
        let id = self.clock.ulid();
        self.table.put_card_link(id, &owed, self.clock.now()).await?;
        Ok(Some(format!("{api_url}/card-links/{id}")))
    }

    /// Returns the id of the notice about the event with the id `event`. Notices with the same id are sent once. A
    /// customer who gives a new card for several subscriptions gets one notice, so the id is the account and the time
    /// of the new card. An order has at most one notice about its shipment, so the id is the id of the order.
    async fn notice_id(&self, event: &str, data: &EventData) -> Result<String, TableError> {
        if let EventData::SubscriptionChanged(data) | EventData::SubscriptionRevived(data) = data
            && data.changes.contains(&ChangedField::PaymentMethod)
            && let Some((_, stored)) = self.get_account_and_subscription(&data.account, data.subscription).await?
            && let Some(at) = stored.payment_method_at
        {
            return Ok(format!("card-saved.{}.{}", data.account, at.timestamp_millis()));
        }
        Ok(match data {
            EventData::OrderShipped(order) => format!("shipped.{}", order.order),
            _ => event.to_owned(),
        })
    }

    /// Returns the notice about `event`, which happened at `at`; `None` if the current state of the subscription makes
    /// the notice unnecessary.
    async fn find_needed_notice(&self, event: &EventData, at: DateTime<Utc>) -> Result<Option<Notice>, TableError> {
        match event {
            EventData::PaymentSucceeded(payment) => self.paid_notice(payment).await,
            EventData::PaymentRefunded(refund) => self.refunded_notice(refund).await,
            EventData::PaymentDeclined(decline) | EventData::PaymentRejected(decline) => {
                self.failed_notice(event.event_type(), decline).await
            }
            EventData::SubscriptionCreated(data)
            | EventData::SubscriptionChanged(data)
            | EventData::SubscriptionPaused(data)
            | EventData::SubscriptionResumed(data)
            | EventData::SubscriptionEnding(data)
            | EventData::SubscriptionUnpaid(data)
            | EventData::SubscriptionRevived(data)
            | EventData::SubscriptionCancelled(data) => {
                let Some((account, stored)) =
                    self.get_account_and_subscription(&data.account, data.subscription).await?
                else {
                    return Ok(None);
                };
                let outlook = stored.outlook(&self.table.policy(), self.local_date(self.clock.now()));
                let on = self.local_date(at);
                let mut notice = subscription_notice(event.event_type(), data, account, &stored, outlook, on);
                if let Some(notice) = notice.as_mut().filter(|notice| notice.facts.kind == MailKind::EndedUnpaid)
                    && let Some(amount) = self.last_attempted_amount(&stored).await?
                {
                    notice.facts.amount = Some(amount);
                }
                if let Some(notice) = notice.as_mut().filter(|notice| notice.facts.kind == MailKind::CardSaved) {
                    notice.facts.others = self.other_subscriptions_with_new_card(&stored).await?;
                }
                Ok(notice)
            }
            // Use the content of the event: the payments table does not contain orders, so the current state of the
            // order cannot be read.
            EventData::OrderShipped(order) => {
                let stored = self.get_account_and_subscription(&order.account, order.subscription).await?;
                let shipped_on = self.local_date(order.shipped_at.unwrap_or(at));
                Ok(stored.map(|(account, stored)| shipment_notice(order, account, &stored, shipped_on)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the other subscriptions of the account that got the payment method of `stored` at the same time, each with its
    /// product and what happens next.
    async fn other_subscriptions_with_new_card(
        &self,
        stored: &Subscription,
    ) -> Result<Vec<(Label, SubscriptionOutlook)>, TableError> {
        let page = self.table.get_subscriptions_by_account(&stored.account, &Paging::all()).await?;
        let (policy, today) = (self.table.policy(), self.local_date(self.clock.now()));
        let has_same_card = |other: &Subscription| {
            other.id != stored.id
                && other.payment_method_at == stored.payment_method_at
                && other.status != SubscriptionStatus::Cancelled
        };
        let others = page.items.into_iter().filter(has_same_card);
        Ok(others.map(|other| (other.product_name.clone(), other.outlook(&policy, today))).collect())
    }

    /// Returns the amount of the last failed attempt of `subscription`; `None` if no attempt is stored.
    async fn last_attempted_amount(&self, subscription: &Subscription) -> Result<Option<Money>, TableError> {
        let now = self.clock.now();
        let records = self.table.get_payment_records(&subscription.account, subscription.id, now).await?;
        Ok(records.attempts.iter().max_by_key(|attempt| attempt.attempt_no).map(|attempt| attempt.amount))
    }

    /// Returns the notice with the receipt of `payment`. Returns `None` if the whole amount was refunded since: the
    /// customer then gets the notice of the refund.
    async fn paid_notice(&self, payment: &PaymentEventData) -> Result<Option<Notice>, TableError> {
        let Some(account) = self.table.get_account(&payment.account).await? else { return Ok(None) };
        Ok(match self.get_receipt(&payment.account, &payment.receipt).await? {
            Some(receipt) => {
                let facts = self.receipt_facts(&receipt).await?;
                (facts.kind == MailKind::Paid).then(|| Notice::new(account, facts))
            }
            // The stored receipt has expired, so take the facts from the event.
            None => {
                let facts = MailFacts {
                    amount: Some(payment.amount),
                    due_on: Some(payment.due_on),
                    paid_on: Some(self.local_date(payment.processed_at)),
                    ..MailFacts::new(MailKind::Paid, payment.product_name.clone(), None)
                };
                Some(Notice::new(account, facts))
            }
        })
    }

    /// Returns the notice of a refund; `None` if the refund has failed since, so that the customer does not get the
    /// money.
    async fn refunded_notice(&self, data: &RefundEventData) -> Result<Option<Notice>, TableError> {
        let Some(account) = self.table.get_account(&data.account).await? else { return Ok(None) };
        let Some(receipt) = self.get_receipt(&data.account, &data.receipt).await? else { return Ok(None) };
        let refunds = self.table.get_refunds_by_receipt(&data.account, &receipt.id()).await?;
        let is_made =
            |refund: &Refund| refund.id.to_string() == data.refund && refund.status == RefundStatus::Succeeded;
        if !refunds.iter().any(is_made) {
            return Ok(None);
        }
        let (kind, refunded) = (MailKind::Refunded, Some(data.amount));
        let facts = MailFacts { kind, refunded, ..self.receipt_facts(&receipt).await? };
        Ok(Some(Notice::new(account, facts)))
    }

    /// Returns the stored receipt with the `id` that an event contains; `None` if the receipt has expired.
    async fn get_receipt(&self, account: &AccountId, id: &str) -> Result<Option<Receipt>, TableError> {
        let Ok(id) = id.parse() else { return Ok(None) };
        self.table.get_receipt(account, &id, self.clock.now()).await
    }

    /// Returns the notice about a declined or rejected payment attempt; `None` if the customer need not know about it.
    async fn failed_notice(&self, event: EventType, decline: &DeclineEventData) -> Result<Option<Notice>, TableError> {
        let Some((account, stored)) = self.get_account_and_subscription(&decline.account, decline.subscription).await?
        else {
            return Ok(None);
        };
        // Send this notice only if the declined payment will be retried: otherwise the customer gets the notice about
        // the unpaid subscription. Do not send it if the customer has changed the card since, or if there was a later
        // attempt.
        let is_latest_attempt = stored.attempt_seq == decline.attempt_no && stored.failed_attempts > 0;
        let outlook = stored.outlook(&self.table.policy(), self.local_date(self.clock.now()));
        let is_retry = |payment: &&PlannedPayment| {
            payment.reason == PaymentReason::Retry && payment.due_on == decline.due_on && is_latest_attempt
        };
        let Some(retry) = outlook.payments.first().filter(is_retry) else { return Ok(None) };
        // Do not send a mail about the first rejections of a request: the gateway may accept the request on the next
        // day. After several rejections of the payment method, the customer must enter another card. Rejections of the
        // amount or of the merchant's account are not the customer's to solve.
        let is_counted = event == EventType::PaymentDeclined || stored.is_rejection_counted_as_decline(&decline.code);
        let kind = if decline.code == AUTHENTICATION_REQUIRED { MailKind::CardNeeded } else { MailKind::Failed };
        Ok(is_counted.then(|| {
            let mut notice = Notice::of_owed_payment(kind, account, &stored, decline.amount);
            notice.facts.next_on = Some(retry.payment_on);
            notice
        }))
    }

    /// Returns the stored account and subscription; `None` if the account or the subscription no longer exists.
    async fn get_account_and_subscription(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
    ) -> Result<Option<(Account, Subscription)>, TableError> {
        let account_and_subscription =
            (self.table.get_account(account).await?, self.table.get_subscription(account, subscription).await?);
        Ok(match account_and_subscription {
            (Some(account), Some(subscription)) => Some((account, subscription)),
            _ => None,
        })
    }
}

/// Returns the kind of the mail about `event`, if the type of the event alone determines the kind; `None` if the kind
/// also depends on items in the table.
fn mail_kind_of_event_type(event: &EventData) -> Option<MailKind> {
    match event {
        EventData::PaymentSucceeded(_) => Some(MailKind::Paid),
        EventData::PaymentRefunded(_) => Some(MailKind::Refunded),
        EventData::OrderShipped(_) => Some(MailKind::Shipped),
        _ => None,
    }
}
