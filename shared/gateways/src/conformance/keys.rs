//! Checks of idempotency keys: one payment for each, whenever and however often a request is sent.

use std::collections::BTreeSet;

use chrono::Days;
use futures::future::join_all;

use super::case::{Case, DIFFERENT_AT_ONCE, FIRST, MANY, Outcome, REUSED, SAME_AT_ONCE, SIMILAR_KEYS, broken, ensure};
use crate::{ChargeAnswer, ChargeRequest};
use billing::{Currency, GatewayToken, Money, SubscriptionId};

/// How often the same request is sent at the same time.
const TIMES: usize = 6;

/// Whether `response` denies the payment, although another request for it may succeed at the same time.
fn denies(response: &ChargeAnswer) -> bool {
    match response {
        ChargeAnswer::Succeeded(_)
        | ChargeAnswer::Processing
        | ChargeAnswer::Unknown { .. }
        | ChargeAnswer::Unproven { .. }
        | ChargeAnswer::Throttled { .. } => false,
        ChargeAnswer::Declined(_)
        | ChargeAnswer::Rejected { .. }
        | ChargeAnswer::KeyReused
        | ChargeAnswer::Unusable { .. } => true,
    }
}

impl Case<'_> {
    /// Makes the charge `no`, and checks that the list has one payment of it.
    async fn is_made_once(&self, no: u32) -> Outcome {
        self.paid(no).await?;
        let listed = self.listed_of(no).await?;
        ensure(listed.len() == 1, || format!("the list has {} payments of it", listed.len()))
    }

    pub async fn again(&self) -> Outcome {
        self.paid(FIRST).await?;
        self.is_made_once(FIRST).await
    }

    pub async fn similar_keys(&self) -> Outcome {
        for no in SIMILAR_KEYS {
            self.is_made_once(no).await?;
        }
        Ok(())
    }

    pub async fn same_at_once(&self) -> Outcome {
        let request = self.charge(SAME_AT_ONCE);
        let responses = join_all((0..TIMES).map(|_| self.gateway.charge(&request))).await;
        let denied = responses.iter().find(|response| denies(response));
        ensure(denied.is_none(), || format!("the payment was made or is being made, and one response was {denied:?}"))?;
        let ids: BTreeSet<_> = responses.iter().filter_map(made).collect();
        ensure(ids.len() <= 1, || format!("the responses name {} payments", ids.len()))?;
        self.is_made_once(SAME_AT_ONCE).await
    }

    pub async fn different_at_once(&self) -> Outcome {
        let requests: Vec<ChargeRequest> = DIFFERENT_AT_ONCE.map(|no| self.charge(no)).collect();
        let responses = join_all(requests.iter().map(|request| self.gateway.charge(request))).await;
        let denied = responses.iter().find(|response| denies(response));
        ensure(denied.is_none(), || format!("each can be carried out, and one response was {denied:?}"))?;
        for no in DIFFERENT_AT_ONCE {
            self.is_made_once(no).await?;
        }
        Ok(())
    }

    pub async fn key_reused(&self) -> Outcome {
        let first = self.charge(FIRST);
        self.paid(FIRST).await?;
        let before = self.all_ids().await?;
        let mut taken = Vec::new();
        for (field, request) in self.others(&first) {
            let response = self.send(&request).await;
            if response != ChargeAnswer::KeyReused {
                taken.push(format!("with another {field} the response was {response:?}"));
            }
        }
        let made = self.all_ids().await?.difference(&before).count();
        ensure(made == 0, || format!("{made} payments were made under a used key; {}", taken.join("; ")))?;
        ensure(taken.is_empty(), || format!("key_reused was expected: {}", taken.join("; ")))
    }

    async fn all_ids(&self) -> Outcome<BTreeSet<GatewayToken>> {
        let listed = self.listed().await?.into_iter().chain(self.listed_of_other().await?);
        Ok(listed.map(|payment| payment.id).collect())
    }

    /// Returns requests under the key of `first`, each with another value of one field.
    fn others(&self, first: &ChargeRequest) -> Vec<(&'static str, ChargeRequest)> {
        let minor = first.amount.minor();
        let with = |change: &dyn Fn(&mut ChargeRequest)| {
            let mut other = first.clone();
            change(&mut other);
            other
        };
        let is_in_dollars = "USD".parse::<Currency>().is_ok_and(|dollar| dollar == first.amount.currency());
        let currency = if is_in_dollars { "EUR" } else { "USD" };
        let mut others = vec![
            ("amount", with(&|other| other.amount = Money::new(minor + 100, first.amount.currency()))),
            ("customer", with(&|other| other.payment_method.customer = self.sample.other_customer.clone())),
            ("payment method", with(&|other| other.payment_method.payment_method = self.sample.declines.clone())),
            ("subscription", with(&|other| other.subscription = SubscriptionId::new(self.another_id(1)))),
            ("due date", with(&|other| other.due_on = first.due_on + Days::new(31))),
            ("attempt number", with(&|other| other.attempt_no = REUSED)),
            ("table", with(&|other| other.table = Some(self.another_id(2)))),
        ];
        if let Ok(currency) = currency.parse::<Currency>() {
            others.push(("currency", with(&|other| other.amount = Money::new(minor, currency))));
        }
        if let Ok(account) = "conformance-2".parse() {
            others.push(("account", ChargeRequest { account, ..first.clone() }));
        }
        if let Ok(sku) = "check-2".parse() {
            others.push(("SKU", ChargeRequest { sku, ..first.clone() }));
        }
        others
    }

    /// Checks that the first requests and the last still return the payments that they made.
    pub async fn keys_are_known(&self) -> Outcome {
        for no in [FIRST, SAME_AT_ONCE, MANY.start, MANY.end - 1] {
            self.is_made_once(no).await.map_err(|verdict| in_charge(no, verdict))?;
        }
        self.decline().await?;
        self.decline_is_final().await
    }
}

fn in_charge(no: u32, verdict: super::Verdict) -> super::Verdict {
    match verdict {
        super::Verdict::Broken(how) => broken(format!("the request of attempt {no}, sent again: {how}")),
        other => other,
    }
}

fn made(response: &ChargeAnswer) -> Option<GatewayToken> {
    match response {
        ChargeAnswer::Succeeded(payment) => Some(payment.id.clone()),
        _ => None,
    }
}
