//! Checks of refunds.

use futures::future::join;

use super::case::{Case, MAX_TRIES, Outcome, REFUNDED, REFUNDED_AT_ONCE, REFUNDED_IN_PART, broken, ensure, unexpected};
use crate::{RefundAnswer, RefundMade, RefundRequest, RefundState};
use billing::{GatewayToken, Money, Payment};

/// Whether `refund` gives money back, now or later.
fn gives_back(refund: &RefundMade) -> bool {
    matches!(refund.state, RefundState::Succeeded | RefundState::Pending)
}

impl Case<'_> {
    /// The refund `no` of this check, of `payment`.
    fn refund_of(&self, no: u128, payment: &Payment, amount: i64) -> RefundRequest {
        let amount = Money::new(amount, payment.amount.currency());
        RefundRequest { refund: self.another_id(no), payment: payment.id.clone(), amount }
    }

    /// Sends `request`, and again under the same name if its outcome is unknown.
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let mut response = self.gateway.refund(request).await;
        for _ in 1..MAX_TRIES {
            let RefundAnswer::NotKnown(error) = &response else { break };
            self.wait_to_retry(error).await;
            response = self.gateway.refund(request).await;
        }
        if let RefundAnswer::Made(made) = &response {
            self.refunded(&made.id);
        }
        response
    }

    /// Makes the refund, which the gateway must accept.
    async fn give_back(&self, request: &RefundRequest) -> Outcome<RefundMade> {
        match self.refund(request).await {
            RefundAnswer::Made(made) if made.amount == request.amount && gives_back(&made) => Ok(made),
            other => Err(unexpected("a refund of that amount", other)),
        }
    }

    async fn refunds_listed(&self, payment: &GatewayToken) -> Outcome<Vec<RefundMade>> {
        let listed = self.gateway.refunds_of(payment).await.map_err(|error| broken(error.to_string()))?;
        listed.iter().for_each(|refund| self.refunded(&refund.id));
        Ok(listed)
    }

    pub async fn refunds(&self) -> Outcome {
        let paid = self.paid(REFUNDED_IN_PART).await?;
        let request = self.refund_of(1, &paid, 502);
        let (first, again) = (self.give_back(&request).await?, self.give_back(&request).await?);
        ensure(first.id == again.id, || format!("the same request made {} and {}", first.id, again.id))?;
        // The same name with another amount may be refused in any way, but gives nothing back.
        let other = self.refund(&self.refund_of(1, &paid, 503)).await;
        let listed = self.refunds_listed(&paid.id).await?;
        let is_one =
            listed.len() == 1 && listed[0].refund == Some(request.refund) && listed[0].amount == request.amount;
        ensure(is_one, || {
            format!(
                "the same name with another amount: {other:?}; one refund of {} was expected, and the list has {listed:?}",
                request.amount
            )
        })
    }

    pub async fn refunds_too_much(&self) -> Outcome {
        let paid = self.paid(REFUNDED_IN_PART).await?;
        let response = self.refund(&self.refund_of(2, &paid, paid.amount.minor())).await;
        if !matches!(response, RefundAnswer::Rejected { .. }) {
            return Err(unexpected("a rejection", response));
        }
        let paid = self.paid(REFUNDED).await?;
        self.give_back(&self.refund_of(3, &paid, paid.amount.minor())).await?;
        let response = self.refund(&self.refund_of(4, &paid, 1)).await;
        if !matches!(response, RefundAnswer::Rejected { .. }) {
            return Err(unexpected("a rejection", response));
        }
        self.refunds_at_once().await
    }

    /// Checks that at most one of two refunds of the whole payment is made, if both are sent at the same time.
    async fn refunds_at_once(&self) -> Outcome {
        let paid = self.paid(REFUNDED_AT_ONCE).await?;
        let requests = [5, 6].map(|no| self.refund_of(no, &paid, paid.amount.minor()));
        let (first, second) = join(self.refund(&requests[0]), self.refund(&requests[1])).await;
        let is_made = |response: &RefundAnswer| matches!(response, RefundAnswer::Made(made) if gives_back(made));
        let listed = self.refunds_listed(&paid.id).await?;
        let given: i64 = listed.iter().filter(|refund| gives_back(refund)).map(|refund| refund.amount.minor()).sum();
        ensure(!(is_made(&first) && is_made(&second)) && given <= paid.amount.minor(), || {
            format!("two refunds of all of {}, sent at the same time, were {first:?} and {second:?}", paid.amount)
        })
    }
}
