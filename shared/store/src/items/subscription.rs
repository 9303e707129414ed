use std::num::NonZeroU32;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::keys::SubscriptionKey;
use crate::table::payments_table::PaymentsSchema;
use billing::{
    Attempt, ClaimToken, Currency, EmailAddress, ExternalId, GatewayToken, Label, Money, MoneyError, PaymentDay,
    PaymentMethod, Period, ReminderClaim, Sku, Subscription, SubscriptionStatus, SubscriptionTerms,
};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};

/// The attributes of a subscription. The attempt and the reminder claim are separate attributes and not maps, because
/// one update expression cannot set a map and a member of the same map.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SubscriptionItem {
    #[serde(rename = "SKU")]
    sku: Sku,
    external_id: Option<ExternalId>,
    pub(super) product_name: Label,
    email: Option<EmailAddress>,
    pub(super) payment_day: PaymentDay,
    pub(super) payment_amount: i64,
    pub(super) currency: Currency,
    /// Terms that take effect in a later month; absent if there are none.
    pub(super) waiting_terms: Option<Vec<TermsItem>>,
    payment_details: PaymentMethod,
    payment_details_date: Option<Instant>,
    disputed_date: Option<Instant>,
    charged_though_disputed_date: Option<Instant>,
    /// The number of open findings that block charges; absent if it is zero.
    open_findings: Option<NonZeroU32>,
    pub(super) status: SubscriptionStatus,
    first_due_date: NaiveDate,
    pub(super) due_date: NaiveDate,
    /// The month after the last paid month; absent until a month is paid.
    chargeable_from: Option<Period>,
    next_payment_date: Option<NaiveDate>,
    last_payment_date: Option<Instant>,
    next_reminder_date: Option<NaiveDate>,
    last_reminder_date: Option<Instant>,
    reminded_for: Option<NaiveDate>,
    failed_attempts: u32,
    first_declined_date: Option<NaiveDate>,
    /// The number of consecutive rejected attempts; absent if it is zero.
    rejections: Option<NonZeroU32>,
    /// The gateway's id of the customer of an earlier attempt to charge the due date. Present only if that attempt was
    /// rejected or dropped, or was declined after it had been in doubt.
    rejected_customer: Option<GatewayToken>,
    attempt_seq: u32,
    pub(super) cancel_period: Option<Period>,
    pub(super) unpaid_since: Option<NaiveDate>,
    attempt_no: Option<u32>,
    attempt_table: Option<Ulid>,
    attempt_due: Option<NaiveDate>,
    attempt_amount: Option<i64>,
    attempt_currency: Option<Currency>,
    attempt_payment: Option<PaymentMethod>,
    attempt_at: Option<Instant>,
    attempt_lease: Option<Instant>,
    attempt_by: Option<ClaimToken>,
    reminder_by: Option<ClaimToken>,
    reminder_lease: Option<Instant>,
    shard: u32,
    created_date: Instant,
    version: u64,
}

/// A payment day and a price that apply from a later month. The price is in the currency of the subscription.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TermsItem {
    from: Period,
    payment_day: PaymentDay,
    payment_amount: i64,
}

impl TermsItem {
    /// Converts the attributes to the terms of a subscription whose currency is `currency`. Fails if the amount is not
    /// a valid price.
    pub fn read(self, currency: Currency) -> Result<SubscriptionTerms, MoneyError> {
        Ok(SubscriptionTerms {
            from: self.from,
            payment_day: self.payment_day,
            price: currency.price(self.payment_amount)?,
        })
    }
}

impl From<&SubscriptionTerms> for TermsItem {
    fn from(terms: &SubscriptionTerms) -> Self {
        let SubscriptionTerms { from, payment_day, price } = *terms;
        Self { from, payment_day, payment_amount: price.minor() }
    }
}

impl SubscriptionItem {
    /// Returns the open attempt as `Some(Some(_))`. Returns `Some(None)` if no attempt is open, and `None` if some of
    /// the attempt's attributes are missing.
    fn read_attempt(&self) -> Option<Option<Attempt>> {
        let Some(no) = self.attempt_no else { return self.attempt_by.is_none().then_some(None) };
        Some(Some(Attempt {
            no,
            table: self.attempt_table,
            due_on: self.attempt_due?,
            amount: Money::new(self.attempt_amount?, self.attempt_currency?),
            payment_method: self.attempt_payment.clone()?,
            claimed_at: self.attempt_at?.0,
            leased_until: self.attempt_lease?.0,
            claim_token: self.attempt_by?,
        }))
    }
}

impl Entity<PaymentsSchema> for Subscription {
    type Attributes = SubscriptionItem;

    fn key(&self) -> Key {
        SubscriptionKey::from_subscription(self).key()
    }

    fn attributes(&self) -> SubscriptionItem {
        let attempt = self.attempt.as_ref();
        SubscriptionItem {
            sku: self.sku.clone(),
            external_id: self.external_id.clone(),
            product_name: self.product_name.clone(),
            email: self.email.clone(),
            payment_day: self.payment_day,
            payment_amount: self.price.minor(),
            currency: self.price.currency(),
            waiting_terms: Some(self.waiting_terms.iter().map(TermsItem::from).collect())
                .filter(|all: &Vec<_>| !all.is_empty()),
            payment_details: self.payment_method.clone(),
            payment_details_date: self.payment_method_at.map(Instant),
            disputed_date: self.disputed_at.map(Instant),
            charged_though_disputed_date: self.charged_though_disputed_at.map(Instant),
            open_findings: NonZeroU32::new(self.open_findings),
            status: self.status,
            first_due_date: self.first_due_on,
            due_date: self.due_on,
            chargeable_from: self.chargeable_from,
            next_payment_date: self.next_payment_on,
            last_payment_date: self.last_payment_at.map(Instant),
            next_reminder_date: self.next_reminder_on,
            last_reminder_date: self.last_reminder_at.map(Instant),
            reminded_for: self.reminded_for,
            failed_attempts: self.failed_attempts,
            first_declined_date: self.first_declined_on,
            rejections: NonZeroU32::new(self.rejections),
            rejected_customer: self.rejected_customer.clone(),
            attempt_seq: self.attempt_seq,
            cancel_period: self.cancel_from,
            unpaid_since: self.unpaid_since,
            attempt_no: attempt.map(|a| a.no),
            attempt_table: attempt.and_then(|a| a.table),
            attempt_due: attempt.map(|a| a.due_on),
            attempt_amount: attempt.map(|a| a.amount.minor()),
            attempt_currency: attempt.map(|a| a.amount.currency()),
            attempt_payment: attempt.map(|a| a.payment_method.clone()),
            attempt_at: attempt.map(|a| Instant(a.claimed_at)),
            attempt_lease: attempt.map(|a| Instant(a.leased_until)),
            attempt_by: attempt.map(|a| a.claim_token),
            reminder_by: self.reminder_claim.map(|c| c.claim_token),
            reminder_lease: self.reminder_claim.map(|c| Instant(c.leased_until)),
            shard: self.shard,
            created_date: Instant(self.created_at),
            version: self.version,
        }
    }

    fn read(key: Key, item: SubscriptionItem) -> Result<Self, TableError> {
        let unreadable = |reason: &str| TableError::unreadable(key.clone(), reason);
        let subscription_key = SubscriptionKey::parse(&key);
        let subscription_key =
            subscription_key.ok_or_else(|| unreadable("its key is not the key of a subscription"))?;
        let attempt = item.read_attempt().ok_or_else(|| unreadable("its attempt is incomplete"))?;
        let price =
            item.currency.price(item.payment_amount).map_err(|error| unreadable(&format!("PaymentAmount {error}")))?;
        let terms = |terms: TermsItem| terms.read(item.currency);
        let waiting_terms = item.waiting_terms.into_iter().flatten().map(terms).collect::<Result<_, _>>();
        let waiting_terms = waiting_terms.map_err(|error| unreadable(&format!("WaitingTerms {error}")))?;
        let reminder_claim = item.reminder_by.zip(item.reminder_lease);
        Ok(Self {
            account: subscription_key.account,
            id: subscription_key.subscription,
            external_id: item.external_id,
            sku: subscription_key.sku,
            product_name: item.product_name,
            email: item.email,
            payment_day: item.payment_day,
            price,
            waiting_terms,
            payment_method: item.payment_details,
            payment_method_at: item.payment_details_date.map(|at| at.0),
            disputed_at: item.disputed_date.map(|at| at.0),
            charged_though_disputed_at: item.charged_though_disputed_date.map(|at| at.0),
            open_findings: item.open_findings.map_or(0, NonZeroU32::get),
            status: item.status,
            first_due_on: item.first_due_date,
            due_on: item.due_date,
            chargeable_from: item.chargeable_from,
            next_payment_on: item.next_payment_date,
            last_payment_at: item.last_payment_date.map(|i| i.0),
            next_reminder_on: item.next_reminder_date,
            last_reminder_at: item.last_reminder_date.map(|i| i.0),
            reminded_for: item.reminded_for,
            failed_attempts: item.failed_attempts,
            first_declined_on: item.first_declined_date,
            rejections: item.rejections.map_or(0, NonZeroU32::get),
            rejected_customer: item.rejected_customer,
            attempt_seq: item.attempt_seq,
            cancel_from: item.cancel_period,
            unpaid_since: item.unpaid_since,
            attempt,
            reminder_claim: reminder_claim
                .map(|(claim_token, lease)| ReminderClaim { claim_token, leased_until: lease.0 }),
            shard: item.shard,
            created_at: item.created_date.0,
            version: item.version,
        })
    }
}

/// The names of the attributes that expressions, leases and indexes use.
pub mod names {
    use super::SubscriptionItem;

    dynamo::attributes!(SubscriptionItem {
        PRODUCT_NAME = product_name,
        PAYMENT_DAY = payment_day,
        PAYMENT_AMOUNT = payment_amount,
        CURRENCY = currency,
        WAITING_TERMS = waiting_terms,
        PAYMENT_DETAILS = payment_details,
        DISPUTED_DATE = disputed_date,
        OPEN_FINDINGS = open_findings,
        STATUS = status,
        DUE_DATE = due_date,
        CHARGEABLE_FROM = chargeable_from,
        NEXT_PAYMENT_DATE = next_payment_date,
        NEXT_REMINDER_DATE = next_reminder_date,
        FAILED_ATTEMPTS = failed_attempts,
        CANCEL_PERIOD = cancel_period,
        UNPAID_SINCE = unpaid_since,
        ATTEMPT_SEQ = attempt_seq,
        ATTEMPT_NO = attempt_no,
        ATTEMPT_TABLE = attempt_table,
        ATTEMPT_DUE = attempt_due,
        ATTEMPT_AMOUNT = attempt_amount,
        ATTEMPT_CURRENCY = attempt_currency,
        ATTEMPT_PAYMENT = attempt_payment,
        ATTEMPT_AT = attempt_at,
        ATTEMPT_LEASE = attempt_lease,
        ATTEMPT_BY = attempt_by,
        REMINDER_BY = reminder_by,
        REMINDER_LEASE = reminder_lease,
        SHARD = shard,
        VERSION = version,
    });
}
