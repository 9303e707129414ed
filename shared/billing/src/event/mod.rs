//! Events: what a change of one item means to those who listen.
//!
//! Every fact is an item that was written in the transaction that made it true, and DynamoDB's stream of changes shows each
//! item before and after. What follows from that is worked out here, from the two images alone: made again, an event is
//! equal, its id included. Events carry ids, dates and amounts; never an e-mail address, a token or a card.

mod cloud_event;
mod news;
mod received;
mod subscription;

use chrono::{DateTime, Utc};

use super::{
    Account, AccountId, AttemptEnd, AttemptRecord, Dispute, DisputeStatus, Receipt, Refund, RefundStatus, Subscription,
    WaivedPeriod,
};
pub use cloud_event::CloudEvent;
pub use news::{
    AccountNews, DeclineNews, DisputeNews, EventType, ExpiredNews, News, PaymentNews, RefundNews, ReversalNews,
    SubscriptionNews, WaivedNews,
};
pub use received::{ReceivedEvent, UnreadableEvent};

/// An item, as a stream shows it before or after a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Image {
    Account(Account),
    Subscription(Box<Subscription>),
    Receipt(Receipt),
    Refund(Refund),
    Dispute(Dispute),
    Attempt(AttemptRecord),
    Waived(WaivedPeriod),
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Equal whenever this event is made again, and no other event's.
    pub id: String,
    pub account: AccountId,
    pub at: DateTime<Utc>,
    pub news: News,
}

/// What it means that an item was `old`, and at `at` became `new`. Claims, leases and versions are no news.
pub fn events(old: Option<&Image>, new: Option<&Image>, at: DateTime<Utc>) -> Vec<Event> {
    match (old, new) {
        (old, Some(Image::Account(new))) => {
            let old = match old {
                Some(Image::Account(old)) => Some(old),
                _ => None,
            };
            account(old, new, at).into_iter().collect()
        }
        (Some(Image::Account(old)), None) => vec![of_account(old, News::AccountErased(AccountNews::of(old)), at)],
        (old, Some(Image::Subscription(new))) => {
            let old = match old {
                Some(Image::Subscription(old)) => Some(old.as_ref()),
                _ => None,
            };
            let told = subscription::news(old, new).into_iter();
            told.map(|news| of_subscription(new, news(SubscriptionNews::of(new)), at)).collect()
        }
        (None, Some(Image::Receipt(receipt))) => {
            vec![of_receipt(receipt, News::PaymentSucceeded(PaymentNews::of(receipt)), receipt.processed_at)]
        }
        // Only its TTL removes a receipt.
        (Some(Image::Receipt(receipt)), None) => {
            vec![of_receipt(receipt, News::ReceiptExpired(ExpiredNews::of(receipt)), at)]
        }
        (old, Some(Image::Refund(refund))) => match old {
            Some(Image::Refund(old)) if old.status == refund.status => Vec::new(),
            _ => refunded(refund, at).into_iter().collect(),
        },
        (old, Some(Image::Dispute(dispute))) => match old {
            Some(Image::Dispute(old)) => disputed(Some(old), dispute, at),
            _ => disputed(None, dispute, at),
        },
        (None, Some(Image::Attempt(record))) => attempt(record).into_iter().collect(),
        (None, Some(Image::Waived(waived))) => {
            let news = News::PeriodWaived(WaivedNews::of(waived));
            let id = format!("{}.{}.{}", waived.subscription, waived.due_on, news.event_type());
            vec![Event { id, account: waived.account.clone(), at: waived.waived_at, news }]
        }
        // Records are written once, and their expiry is no news.
        _ => Vec::new(),
    }
}

fn account(old: Option<&Account>, new: &Account, at: DateTime<Utc>) -> Option<Event> {
    let is_same = |old: &Account| {
        (&old.email, &old.name, &old.locale, old.mail_status) == (&new.email, &new.name, &new.locale, new.mail_status)
    };
    match old {
        None => Some(of_account(new, News::AccountCreated(AccountNews::of(new)), new.created_at)),
        Some(old) if is_same(old) => None,
        Some(_) => Some(of_account(new, News::AccountChanged(AccountNews::of(new)), at)),
    }
}

/// An account that was erased may be created again, from version 1 on.
fn of_account(account: &Account, news: News, at: DateTime<Utc>) -> Event {
    let begun = account.created_at.timestamp_millis();
    let id = format!("{}.{begun}.{}.{}", account.id, account.version, news.event_type());
    Event { id, account: account.id.clone(), at, news }
}

fn of_subscription(subscription: &Subscription, news: News, at: DateTime<Utc>) -> Event {
    let id = format!("{}.{}.{}", subscription.id, subscription.version, news.event_type());
    Event { id, account: subscription.account.clone(), at, news }
}

fn of_receipt(receipt: &Receipt, news: News, at: DateTime<Utc>) -> Event {
    let id = format!("{}.{}.{}", receipt.subscription, receipt.due_on, news.event_type());
    Event { id, account: receipt.account.clone(), at, news }
}

/// A refund that has succeeded may fail later, where the bank of the customer sends it back.
fn refunded(refund: &Refund, at: DateTime<Utc>) -> Option<Event> {
    let news = match refund.status {
        RefundStatus::Pending => return None,
        // Nothing was begun: the response has said so, and the same request may ask for it again.
        RefundStatus::Failed if refund.is_not_asked() => return None,
        RefundStatus::Succeeded => News::PaymentRefunded(RefundNews::of(refund)),
        RefundStatus::Failed => News::RefundFailed(RefundNews::of(refund)),
    };
    let id = format!("{}.{}", refund.id, news.event_type());
    Some(Event { id, account: refund.account.clone(), at: refund.settled_at.unwrap_or(at), news })
}

/// The events of a dispute whose status changed: opened, closed, and that the payment was taken back. All of them, if it is over
/// when we first see it. An inquiry that becomes a dispute is opened again. A bank may decide anew.
fn disputed(old: Option<&Dispute>, new: &Dispute, at: DateTime<Utc>) -> Vec<Event> {
    if old.is_some_and(|old| old.status == new.status) {
        return Vec::new();
    }
    let event = |news: News, at: DateTime<Utc>| {
        let id = format!("{}.{}.{}", new.id, new.version, news.event_type());
        Event { id, account: new.account.clone(), at, news }
    };
    let closed_at = new.closed_at.unwrap_or(at);
    // A debit that failed afterwards was never disputed.
    let is_dispute = new.status != DisputeStatus::Returned;
    let is_opened = is_dispute && (old.is_none() || !new.status.is_closed());
    let opened = is_opened.then(|| event(News::PaymentDisputed(DisputeNews::of(new)), new.opened_at));
    let is_closed = is_dispute && new.status.is_closed();
    let closed = is_closed.then(|| event(News::DisputeClosed(DisputeNews::of(new)), closed_at));
    let reversed = new.status.is_reversal().then(|| event(News::PaymentReversed(ReversalNews::of(new)), closed_at));
    opened.into_iter().chain(closed).chain(reversed).collect()
}

fn attempt(record: &AttemptRecord) -> Option<Event> {
    let news = match record.outcome {
        AttemptEnd::Declined => News::PaymentDeclined(DeclineNews::of(record)),
        AttemptEnd::Rejected => News::PaymentRejected(DeclineNews::of(record)),
        // Nothing was asked of the gateway that it knows of.
        AttemptEnd::Dropped => return None,
    };
    let id = format!("{}.{}.{}", record.subscription, record.attempt_no, news.event_type());
    Some(Event { id, account: record.account.clone(), at: record.processed_at, news })
}
