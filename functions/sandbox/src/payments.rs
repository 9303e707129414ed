//! Makes charges and lists payments in the sandbox's table.

use chrono::{DateTime, Utc};
use dynamo::{ABSENT, Paging, PrefixQuery, Scan, TableError, TransactionOutcome, from_item, s, values};
use gateways::{ChargeRequest, ChargeResponse, ListPage};
use sandbox::LedgerPayment;
use sandbox::rules::{self, LIST_PAGE_SIZE, RequestDecision};

use crate::items::{
    IdempotencyKeyItem, LISTED_PAYMENT_PREFIX, PAYMENT_SORT_KEY, PaymentItem, customer_partition, idempotency_key,
    listed_payment_item, payment_key,
};
use crate::table::{MAX_TRIES, SandboxTable};
use billing::{GatewayToken, Payment};

/// A condition expression that is true if the item of the idempotency key still contains the payment that was read.
const KEY_UNCHANGED: &str = "#payment = :before";

impl SandboxTable {
    /// Makes the charge `request` at the time `now`. If several requests use one idempotency key at the same time, one
    /// of them makes the payment. The others find this payment, and their responses are computed from it.
    pub(crate) async fn make_charge(
        &self,
        request: &ChargeRequest,
        now: DateTime<Utc>,
    ) -> Result<ChargeResponse, TableError> {
        for _ in 0..MAX_TRIES {
            let before = self.last_payment_under_key(request).await?;
            match rules::decide_charge(before.as_ref(), request, now, || self.clock.ulid()) {
                RequestDecision::Respond(response) => return Ok(response),
                RequestDecision::Write(made) => {
                    if self.write_payment(&made, before.as_ref()).await? {
                        return Ok(rules::first_charge_response(&made));
                    }
                }
            }
        }
        Err(TableError::Contended { key: idempotency_key(request) })
    }

    /// Returns the payment that was made last under the idempotency key of `request`; `None` if there is none.
    async fn last_payment_under_key(&self, request: &ChargeRequest) -> Result<Option<LedgerPayment>, TableError> {
        let Some(item) = self.table.get(idempotency_key(request)).await? else { return Ok(None) };
        let id = from_item::<IdempotencyKeyItem>(&item)?.payment;
        let stored = self.get_payment(&id).await?.ok_or_else(|| TableError::Missing { key: payment_key(&id) })?;
        Ok(Some(stored.payment))
    }

    /// Writes the new payment `made` in one transaction, if its idempotency key is unused (`before` is `None`), or if
    /// the payment `before` is still the latest payment under this key. Returns whether the payment was written.
    async fn write_payment(&self, made: &LedgerPayment, before: Option<&LedgerPayment>) -> Result<bool, TableError> {
        let (condition, values) = match before {
            None => (ABSENT, None),
            Some(before) => (KEY_UNCHANGED, Some(values([(":before", s(&before.id))]))),
        };
        let stored = PaymentItem { payment: made.clone(), refunds: Vec::new() };
        let writes = vec![
            self.table.build_put_if(IdempotencyKeyItem::item_of_charge(made), condition, values),
            self.table.build_put(stored.to_item()),
            self.table.build_put(listed_payment_item(made)),
        ];
        let outcome = self.table.transact_with_retries(writes).await?;
        Ok(matches!(outcome, TransactionOutcome::Written))
    }

    /// Returns the payment `id` with its refunds; `None` if there is no such payment.
    pub(crate) async fn get_payment(&self, id: &GatewayToken) -> Result<Option<PaymentItem>, TableError> {
        self.table.get(payment_key(id)).await?.as_ref().map(from_item).transpose()
    }

    /// Lists all payments of `customer` that were made at or after `since`, with their status at the time `now`.
    pub(crate) async fn list_payments(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Payment>, TableError> {
        let list = PrefixQuery::new(customer_partition(customer), LISTED_PAYMENT_PREFIX);
        let listed = self.table.list_items(&list, &Paging::all()).await?.read(|item| from_item::<LedgerPayment>(&item));
        let made = listed.into_items()?.into_iter().filter(|made| made.created_at >= since);
        Ok(made.map(|made| made.payment(rules::payment_status_at(&made, now))).collect())
    }

    /// Returns a list page with the results of `select` for the payments in the table. The list page begins after the
    /// payment with the id `after`; with `None`, at the first payment. The table has no index by time, so this method
    /// scans the table. That is acceptable because the sandbox has few payments.
    pub(crate) async fn scan_payments<T>(
        &self,
        after: Option<&str>,
        select: impl Fn(PaymentItem) -> Vec<T>,
    ) -> Result<ListPage<T>, TableError> {
        let after = after.and_then(|id| id.parse().ok()).map(|id: GatewayToken| payment_key(&id));
        let mut stored = self.table.scan(Scan::beginning_with(PAYMENT_SORT_KEY).after(after));
        let mut items = Vec::new();
        while let Some(item) = stored.next().await? {
            let payment: PaymentItem = from_item(&item)?;
            let id = payment.payment.id.to_string();
            items.extend(select(payment));
            if items.len() >= LIST_PAGE_SIZE {
                return Ok(ListPage::new(items, Some(id)));
            }
        }
        Ok(ListPage::last(items))
    }
}
