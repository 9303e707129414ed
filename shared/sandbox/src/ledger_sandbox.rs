//! The sandbox on one machine. It stores all payments, refunds and checkout pages in its own ledger, which is a file or
//! is only in memory.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, GatewayDispute,
    GatewayError, GatewayRefund, ListPage, PaymentGateway, RefundRequest, RefundResponse, Refunds, TimeRange,
};

use crate::ledger::{Ledger, LedgerEntry, LedgerError};
use crate::records::{LedgerPayment, OpenedCheckoutPage};
use crate::rules::{self, RequestDecision};
use crate::store::{SandboxStore, StoreError};
use billing::{GatewayAccount, GatewayToken, Payment, PaymentStatus};
use clock::Clock;

/// A gateway that moves no money, for tests and demonstrations.
#[derive(Debug)]
pub struct Sandbox {
    clock: Arc<dyn Clock>,
    ledger: Mutex<Ledger>,
    /// The base URL of the sandbox's checkout pages. The URL is set only if the sandbox is served over HTTP.
    url: OnceLock<String>,
}

impl Sandbox {
    /// Creates a sandbox that stores its payments in `ledger` and reads the time from `clock`.
    pub fn new(ledger: Ledger, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ledger: Mutex::new(ledger), url: OnceLock::new() }
    }

    /// Creates a sandbox in memory with the payments of this sandbox, which reads the time from `clock`.
    #[must_use]
    pub fn copy_in_memory(&self, clock: Arc<dyn Clock>) -> Self {
        Self::new(self.ledger().copy_in_memory(), clock)
    }

    /// Locks the ledger and returns it.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all ledger entries about payments, in the order in which they were written.
    pub fn entries(&self) -> Vec<LedgerEntry> {
        self.ledger().entries().to_vec()
    }

    /// Makes a charge at the time `now`.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written: the outcome of the charge is unknown.
    pub fn charge_at(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeResponse, LedgerError> {
        let mut ledger = self.ledger();
        let before = ledger.payment_by_key(&request.idempotency_key);
        match rules::decide_charge(before, request, now, || self.clock.ulid()) {
            RequestDecision::Respond(response) => Ok(response),
            RequestDecision::Write(made) => {
                let response = rules::first_charge_response(&made);
                ledger.append(LedgerEntry::Payment(made))?;
                Ok(response)
            }
        }
    }

    /// Lists all payments of `customer` that were made at or after `since`, with their status at the time `now`.
    ///
    /// # Errors
    /// [`LedgerError`] if the final status of a payment could not be written to the ledger.
    pub fn payments_at(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, LedgerError> {
        let made: Vec<LedgerPayment> =
            self.ledger().payments_by_customer(customer).filter(|made| made.created_at >= since).cloned().collect();
        self.with_status_at(made, now)
    }

    /// Returns the payment `id` with its status at the time `now`; `None` if there is no such payment.
    ///
    /// # Errors
    /// [`LedgerError`] if the final status of the payment could not be written to the ledger.
    pub fn payment_at(&self, id: &GatewayToken, now: DateTime<Utc>) -> Result<Option<Payment>, LedgerError> {
        let made = self.ledger().payment_by_id(id).cloned();
        Ok(self.with_status_at(made.into_iter().collect(), now)?.pop())
    }

    /// Returns the payments `made` with their status at the time `now`. First stores the final status of each bank
    /// debit whose processing time is over.
    fn with_status_at(&self, made: Vec<LedgerPayment>, now: DateTime<Utc>) -> Result<Vec<Payment>, LedgerError> {
        let mut ledger = self.ledger();
        let mut payments = Vec::with_capacity(made.len());
        for made in made {
            if ledger.status_of_payment(&made) == PaymentStatus::Processing
                && let Some((status, at)) = rules::final_payment_status(&made, now)
            {
                ledger.append(LedgerEntry::Resolved { id: made.id.clone(), status, at })?;
            }
            payments.push(made.payment(ledger.status_of_payment(&made)));
        }
        Ok(payments)
    }

    /// Sets the base URL at which this sandbox and its checkout pages are served. Only the first call has an effect.
    pub fn set_url(&self, url: &str) {
        let _ = self.url.set(url.trim_end_matches('/').to_owned());
    }

    /// Opens a checkout page at the time `now`, or returns the checkout page that was opened before for the same
    /// payment method setup.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written.
    pub fn open_page_at(
        &self,
        request: &CheckoutPageRequest,
        now: DateTime<Utc>,
    ) -> Result<OpenedCheckoutPage, LedgerError> {
        let opened = rules::new_checkout_page(request, now);
        let mut ledger = self.ledger();
        if let Some((before, _)) = ledger.find_page(&opened.id) {
            return Ok(before.clone());
        }
        ledger.append(LedgerEntry::PageOpened(opened.clone()))?;
        Ok(opened)
    }

    /// Returns the checkout page `id` and its state at the time `now`; `None` if there is no such page.
    pub fn page_at(&self, id: &GatewayToken, now: DateTime<Utc>) -> Option<(OpenedCheckoutPage, CheckoutPageState)> {
        let ledger = self.ledger();
        let (opened, entered) = ledger.find_page(id)?;
        Some((opened.clone(), rules::checkout_page_state(opened, entered.as_ref(), now)))
    }

    /// Enters `payment_method` on the checkout page `id` at the time `now`. Returns `false` if the checkout page is not
    /// open or there is no such test payment method.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written.
    pub fn complete_page_at(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, LedgerError> {
        let mut ledger = self.ledger();
        let state =
            ledger.find_page(id).map(|(opened, entered)| rules::checkout_page_state(opened, entered.as_ref(), now));
        if !state.is_some_and(|state| rules::can_payment_method_be_entered(payment_method, &state)) {
            return Ok(false);
        }
        let payment_method = payment_method.clone();
        ledger.append(LedgerEntry::PageCompleted { id: id.clone(), payment_method, at: now })?;
        Ok(true)
    }

    /// Makes a refund at the time `now`.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger could not be written: the outcome of the refund is unknown.
    pub fn refund_at(&self, request: &RefundRequest, now: DateTime<Utc>) -> Result<RefundResponse, LedgerError> {
        let mut ledger = self.ledger();
        let before = ledger.refunds().iter().find(|(before, _)| before.refund == request.refund);
        let payment = ledger.payment_by_id(&request.payment).map(|made| {
            let refunds = ledger.refunds().iter().filter(|(before, _)| before.payment == request.payment);
            (made, ledger.status_of_payment(made), refunds.map(|(before, _)| before.amount.minor()).sum::<i64>())
        });
        let payment = payment.as_ref().map(|(made, status, refunded)| (*made, status, *refunded));
        match rules::decide_refund(before.map(|(before, _)| before), payment, request) {
            RequestDecision::Respond(response) => Ok(response),
            RequestDecision::Write(request) => {
                let refund = rules::succeeded_refund(&request);
                ledger.append(LedgerEntry::Refunded { request, id: refund.id.clone(), at: now })?;
                Ok(RefundResponse::Made(refund))
            }
        }
    }

    /// Returns a list page of the payments that were made in `range`, with their status at the time `now`. `after` is
    /// the field `next` of the previous list page; `None` for the first list page.
    ///
    /// # Errors
    /// [`LedgerError`] if the final status of a payment could not be written to the ledger.
    pub fn payments_in_at(
        &self,
        range: &TimeRange,
        after: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<ListPage<Payment>, LedgerError> {
        let page = select_list_page(self.ledger().entries(), after, |entry| match entry {
            LedgerEntry::Payment(made) if range.contains(made.created_at) => Some(made.clone()),
            _ => None,
        });
        Ok(ListPage::new(self.with_status_at(page.items, now)?, page.next))
    }

    /// Returns a list page of the refunds that were requested in `range`, each with the id of its payment. `after` is
    /// the same as in [`Sandbox::payments_in_at`].
    pub fn refunds_with_payment_ids_in(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> ListPage<(GatewayToken, GatewayRefund)> {
        select_list_page(self.ledger().refunds(), after, |(request, _)| {
            let is_in_range = range.contains(rules::refund_request_time(request));
            is_in_range.then(|| (request.payment.clone(), rules::succeeded_refund(request)))
        })
    }

    /// Lists the refunds of `payment`.
    pub fn refunds_made(&self, payment: &GatewayToken) -> Vec<GatewayRefund> {
        let ledger = self.ledger();
        let of_payment = ledger.refunds().iter().filter(|(request, _)| request.payment == *payment);
        of_payment.map(|(request, _)| rules::succeeded_refund(request)).collect()
    }
}

/// Returns a list page with the results of `select` for the entries in `all`. The position `after` is the number of
/// entries before the list page. This number stays correct, because entries are only appended.
fn select_list_page<E, T>(all: &[E], after: Option<&str>, select: impl Fn(&E) -> Option<T>) -> ListPage<T> {
    let before = after.and_then(|after| after.parse().ok()).unwrap_or(0);
    let (mut items, mut read) = (Vec::new(), before);
    for entry in all.iter().skip(before) {
        if items.len() == rules::LIST_PAGE_SIZE {
            return ListPage::new(items, Some(read.to_string()));
        }
        items.extend(select(entry));
        read += 1;
    }
    ListPage::last(items)
}

#[async_trait]
impl PaymentGateway for Sandbox {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        Ok(rules::sandbox_account(self.ledger().account()))
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        self.charge_at(request, self.clock.now())
            .unwrap_or_else(|error| ChargeResponse::Unknown { reason: error.to_string() })
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.payments_at(customer, since, self.clock.now())
            .map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.payment_at(id, self.clock.now()).map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }
}

#[async_trait]
impl CheckoutPages for Sandbox {
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        let unknown = |reason: String| GatewayError::Unknown { reason };
        let url = self.url.get().ok_or_else(|| unknown("the sandbox serves no checkout pages".to_owned()))?;
        let opened = self.open_page_at(request, self.clock.now()).map_err(|error| unknown(error.to_string()))?;
        Ok(opened.into_checkout_page(url))
    }

    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        let found = self.page_at(id, self.clock.now());
        found
            .map(|(_, state)| state)
            .ok_or_else(|| GatewayError::Unknown { reason: "there is no such checkout page".to_owned() })
    }
}

#[async_trait]
impl Refunds for Sandbox {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let unknown = |error: LedgerError| RefundResponse::Unknown(GatewayError::Unknown { reason: error.to_string() });
        self.refund_at(request, self.clock.now()).unwrap_or_else(unknown)
    }

    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        Ok(self.refunds_made(payment))
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        let page = self.payments_in_at(range, after, self.clock.now());
        page.map(Some).map_err(|error| GatewayError::Unknown { reason: error.to_string() })
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(Some(self.refunds_with_payment_ids_in(range, after)))
    }

    async fn disputes_in_range(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        Ok(Some(ListPage::last(Vec::new())))
    }
}

#[async_trait]
impl SandboxStore for Sandbox {
    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    async fn account(&self) -> Result<GatewayAccount, StoreError> {
        Ok(rules::sandbox_account(self.ledger().account()))
    }

    async fn charge(&self, request: &ChargeRequest, now: DateTime<Utc>) -> Result<ChargeResponse, StoreError> {
        Ok(self.charge_at(request, now)?)
    }

    async fn payments(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, StoreError> {
        Ok(self.payments_at(customer, since, now)?)
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<ListPage<Payment>, StoreError> {
        Ok(self.payments_in_at(range, after, now)?)
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<ListPage<(GatewayToken, GatewayRefund)>, StoreError> {
        Ok(self.refunds_with_payment_ids_in(range, after))
    }

    async fn payment(&self, id: &GatewayToken, now: DateTime<Utc>) -> Result<Option<Payment>, StoreError> {
        Ok(self.payment_at(id, now)?)
    }

    async fn refund(&self, request: &RefundRequest, now: DateTime<Utc>) -> Result<RefundResponse, StoreError> {
        Ok(self.refund_at(request, now)?)
    }

    async fn refunds(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, StoreError> {
        Ok(self.refunds_made(payment))
    }

    async fn open_page(
        &self,
        request: &CheckoutPageRequest,
        now: DateTime<Utc>,
    ) -> Result<OpenedCheckoutPage, StoreError> {
        Ok(self.open_page_at(request, now)?)
    }

    async fn checkout_page_with_state(
        &self,
        id: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<Option<(OpenedCheckoutPage, CheckoutPageState)>, StoreError> {
        Ok(self.page_at(id, now))
    }

    async fn complete_page(
        &self,
        id: &GatewayToken,
        payment_method: &GatewayToken,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        Ok(self.complete_page_at(id, payment_method, now)?)
    }
}

#[cfg(test)]
mod tests {
    use billing::{MAX_PRICE_MINOR, Money};
    use clock::SimulatedClock;
    use serde_json::json;

    use super::*;

    /// Returns a request for a charge of `minor` minor units. Each amount has another idempotency key.
    fn charge_request(minor: i64) -> ChargeRequest {
        let request = json!({
            "idempotency_key": format!("key of {minor}"), "account": "acme",
            "subscription": "01JZXCVBNM0123456789ABCDEG", "sku": "gold", "due_on": "2027-01-31", "attempt_no": 1,
            "amount": minor, "currency": "EUR", "customer": "cus_acme", "payment_method": "pm_card_visa",
        });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn charges_and_refunds_of_amounts_below_one_or_above_the_maximum_are_rejected_and_not_stored() {
        let now = "2027-01-31T06:00:00Z".parse().unwrap();
        let sandbox = Sandbox::new(Ledger::in_memory(), Arc::new(SimulatedClock::new(now, 1)));
        let Ok(ChargeResponse::Succeeded(paid)) = sandbox.charge_at(&charge_request(1299), now) else { panic!() };
        for (minor, code) in [
            (0, "amount_too_small"),
            (-1, "amount_too_small"),
            (i64::MIN, "amount_too_small"),
            (MAX_PRICE_MINOR + 1, "amount_too_large"),
            (i64::MAX, "amount_too_large"),
        ] {
            let charged = sandbox.charge_at(&charge_request(minor), now).unwrap();
            assert_eq!(charged, ChargeResponse::Rejected { code: code.to_owned() }, "charge of {minor}");
            let amount = Money::new(minor, paid.amount.currency());
            let request = RefundRequest { refund: sandbox.clock.ulid(), payment: paid.id.clone(), amount };
            let refunded = sandbox.refund_at(&request, now).unwrap();
            assert_eq!(refunded, RefundResponse::Rejected { code: code.to_owned() }, "refund of {minor}");
        }
        assert_eq!((sandbox.entries().len(), sandbox.refunds_made(&paid.id)), (1, vec![]));
        let largest = sandbox.charge_at(&charge_request(MAX_PRICE_MINOR), now).unwrap();
        assert!(matches!(largest, ChargeResponse::Succeeded(_)), "{largest:?}");
    }
}
