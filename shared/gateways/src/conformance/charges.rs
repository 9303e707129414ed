//! Checks of single charges: successes, declines, rejections, amounts, and payments in progress.

use super::Verdict;
use super::case::{
    Case, DECLINED, FIRST, NO_DECIMALS, Outcome, PROCESSING, REJECTED, THREE_DECIMALS, broken, ensure, unexpected,
};
use crate::{ChargeAnswer, ChargeRequest, GatewayError};
use billing::{Decline, PaymentStatus};

impl Case<'_> {
    pub async fn account(&self) -> Outcome {
        let failed = |error: GatewayError| broken(error.to_string());
        let first = self.gateway.account().await.map_err(failed)?;
        let second = self.gateway.account().await.map_err(failed)?;
        ensure(first == second, || format!("it was {first}, and then {second}"))?;
        ensure(!first.kind.is_empty() && !first.account.is_empty(), || format!("{first:?} has no name"))
    }

    pub async fn succeeds(&self) -> Outcome {
        self.paid(FIRST).await.map(drop)
    }

    fn declining(&self) -> ChargeRequest {
        self.charge_to(DECLINED, &self.sample.declines)
    }

    /// Sends the request that is declined.
    pub async fn decline(&self) -> Outcome<Decline> {
        match self.send(&self.declining()).await {
            ChargeAnswer::Declined(decline) => Ok(decline),
            other => Err(unexpected("a decline", other)),
        }
    }

    /// Checks that the declined request made at most one payment, which cannot be paid any more.
    pub async fn decline_is_final(&self) -> Outcome {
        let listed = self.listed_of(DECLINED).await?;
        let is_final = listed.iter().all(|payment| matches!(&payment.status, PaymentStatus::Declined(_)));
        ensure(is_final, || format!("it can still be paid, or was: {listed:?}"))?;
        ensure(listed.len() <= 1, || format!("the same request made {} payments", listed.len()))
    }

    pub async fn declines(&self) -> Outcome {
        let (first, again) = (self.decline().await?, self.decline().await?);
        ensure(first == again, || format!("it was {first:?}, and then {again:?}"))?;
        self.decline_is_final().await
    }

    pub async fn rejects(&self) -> Outcome {
        let none = format!("pm_{}", self.sample.run).parse().map_err(|_| broken("no such token can be written"))?;
        let response = self.send(&self.charge_to(REJECTED, &none)).await;
        ensure(matches!(response, ChargeAnswer::Rejected { .. }), || {
            format!("a rejection was expected, and the response was {response:?}")
        })?;
        self.rejection_made_nothing().await
    }

    pub async fn rejection_made_nothing(&self) -> Outcome {
        let listed = self.listed_of(REJECTED).await?;
        ensure(listed.is_empty(), || format!("the request that was rejected made {listed:?}"))
    }

    pub async fn decimals(&self) -> Outcome {
        let mut rejected = Vec::new();
        for no in [NO_DECIMALS, THREE_DECIMALS] {
            let request = self.charge(no);
            match self.send(&request).await {
                // An account need not take every currency.
                ChargeAnswer::Rejected { .. } => rejected.push(request.amount.currency().to_string()),
                _ => drop(self.paid(no).await?),
            }
        }
        match rejected.as_slice() {
            [_, _] => Err(Verdict::NotChecked(format!("the gateway takes neither {}", rejected.join(" nor ")))),
            _ => Ok(()),
        }
    }

    pub async fn processes(&self) -> Outcome {
        let Some(method) = &self.sample.processes else {
            return Err(Verdict::NotChecked("no payment method was given whose charges stay in progress".to_owned()));
        };
        let request = self.charge_to(PROCESSING, method);
        for _ in 0..2 {
            let response = self.send(&request).await;
            if response != ChargeAnswer::Processing {
                return Err(unexpected("processing", response));
            }
        }
        let listed = self.listed_of(PROCESSING).await?;
        ensure(listed.len() == 1, || format!("the list has {} payments of it", listed.len()))?;
        ensure(listed.iter().all(|payment| payment.amount == request.amount), || {
            format!("{} was requested, and the list has {listed:?}", request.amount)
        })
    }
}
