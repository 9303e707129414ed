//! Makes refunds in the sandbox's table.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use chrono::{DateTime, Utc};
use dynamo::{ABSENT, TableError, TransactionOutcome, from_item, n, to_item, values};
use gateways::{RefundRequest, RefundResponse};
use sandbox::rules::{self, RequestDecision};

use crate::items::{PaymentItem, payment_key, refund_item, refund_key};
use crate::table::{MAX_TRIES, SandboxTable};

/// An update expression that appends a refund to its payment.
const APPEND_REFUND: &str = "SET #refunds = list_append(#refunds, :new)";
/// A condition expression that is true if no refund was added to the payment since the payment was read.
const REFUNDS_UNCHANGED: &str = "size(#refunds) = :seen";

impl SandboxTable {
    /// Makes the refund `request` at the time `now`. On a write conflict with a concurrent request that refunds the
    /// same payment or uses the same refund id, reads the items again and computes the response from them.
    pub(crate) async fn make_refund(
        &self,
        request: &RefundRequest,
        now: DateTime<Utc>,
    ) -> Result<RefundResponse, TableError> {
        for _ in 0..MAX_TRIES {
            let before = self.table.get(refund_key(request.refund)).await?;
            let before: Option<RefundRequest> = before.as_ref().map(from_item).transpose()?;
            let stored = self.get_payment(&request.payment).await?;
            let payment = stored.as_ref().map(|PaymentItem { payment, refunds }| {
                let refunded = refunds.iter().map(|before| before.amount.minor()).sum::<i64>();
                (payment, rules::payment_status_at(payment, now), refunded)
            });
            let payment = payment.as_ref().map(|(payment, status, refunded)| (*payment, status, *refunded));
            match rules::decide_refund(before.as_ref(), payment, request) {
                RequestDecision::Respond(response) => return Ok(response),
                RequestDecision::Write(made) => {
                    let seen = stored.as_ref().map_or(0, |stored| stored.refunds.len());
                    if self.write_refund(&made, seen).await? {
                        return Ok(RefundResponse::Made(rules::succeeded_refund(&made)));
                    }
                }
            }
        }
        Err(TableError::Contended { key: refund_key(request.refund) })
    }

    /// Writes the refund `made` in one transaction, if its id is unused and its payment still has `seen` refunds.
    /// Returns whether the refund was written.
    async fn write_refund(&self, made: &RefundRequest, seen: usize) -> Result<bool, TableError> {
        let new = AttributeValue::L(vec![AttributeValue::M(to_item(made))]);
        let values = values([(":new", new), (":seen", n(seen))]);
        let append = self.table.build_update(payment_key(&made.payment), APPEND_REFUND, REFUNDS_UNCHANGED, values);
        let writes = vec![
            TransactWriteItem::builder().update(append).build(),
            self.table.build_put_if(refund_item(made), ABSENT, None),
        ];
        let outcome = self.table.transact_with_retries(writes).await?;
        Ok(matches!(outcome, TransactionOutcome::Written))
    }
}
