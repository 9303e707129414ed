//! What each answer of a gateway promises, held against a gateway: for whoever writes another adapter. It charges, so only what moves
//! no money is to be checked.

use std::collections::BTreeSet;
use std::fmt::Debug;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::future::join_all;
use ulid::Ulid;

use super::{
    ChargeAnswer, ChargeRequest, GatewayError, PageRequest, PageState, Processor, RefundAnswer, RefundRequest,
    RefundState,
};
use crate::billing::{Currency, GatewayToken, Money, Payment, PaymentMethod, PaymentStatus, SubscriptionId};

/// What a gateway in test mode has for checks.
#[derive(Clone, Debug)]
pub struct Sample {
    pub customer: GatewayToken,
    /// A payment method whose charges succeed at once.
    pub succeeds: GatewayToken,
    /// One whose charges are declined at once.
    pub declines: GatewayToken,
    pub currency: Currency,
    /// Names this check: no payment of an earlier one is taken for one of it.
    pub run: Ulid,
    pub now: DateTime<Utc>,
}

/// A promise, and how it was broken; `None` if it was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    pub promise: &'static str,
    pub broken: Option<String>,
}

/// A list has more than one page of any gateway's.
const MANY: u32 = 105;
/// The same request, sent so often at the same time.
const AT_ONCE: u32 = 6;

type Outcome = Result<(), String>;

/// Holds every promise against `gateway`, in order; `told` hears of each once it is known.
pub async fn check(gateway: &dyn Processor, sample: &Sample, mut told: impl FnMut(&Checked)) -> Vec<Checked> {
    let case = Case { gateway, sample };
    let mut all = Vec::new();
    let mut checked = |promise, outcome: Outcome| {
        let checked = Checked { promise, broken: outcome.err() };
        told(&checked);
        all.push(checked);
    };
    checked("it says whose account it is, and in which mode", case.account().await);
    checked("a charge that succeeds is answered with its names, amount and currency", case.succeeds().await);
    checked("the same request again is the same payment", case.again().await);
    checked("the same request at the same time is one payment", case.at_once().await);
    checked("an idempotency key that was used for another request makes nothing", case.key_reused().await);
    checked("a decline is answered, is final, and is the same when it is asked for again", case.declines().await);
    checked("a request that cannot be carried out is rejected, and makes nothing", case.rejects().await);
    checked("what is charged in a currency of no or three decimals is what was asked for", case.decimals().await);
    checked("the list shows every payment of the customer since an instant, all pages, at once", case.lists().await);
    checked("the list of a customer shows no other customer's payments", case.strangers().await);
    checked("a part of a payment is given back once under one name, and shows in its list", case.refunds().await);
    checked("no more is given back than was paid", case.refunds_too_much().await);
    checked("a page is opened once for one setup, and is open until something is given", case.pages().await);
    all
}

struct Case<'a> {
    gateway: &'a dyn Processor,
    sample: &'a Sample,
}

fn is(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn was<T: Debug>(expected: &str) -> impl FnOnce(T) -> String {
    move |answer| format!("{expected} was expected, and the answer was {answer:?}")
}

impl Case<'_> {
    /// The charge `no` of this check.
    fn charge(&self, no: u32) -> ChargeRequest {
        let Sample { customer, succeeds, currency, run, now, .. } = self.sample;
        ChargeRequest {
            idempotency_key: format!("{run}-{no}"),
            table: Some(*run),
            account: "conformance".parse().expect("an account id"),
            subscription: SubscriptionId::new(*run),
            sku: "check".parse().expect("a SKU"),
            due_on: now.date_naive(),
            attempt_no: no,
            amount: Money::new(1_200, *currency),
            payment_method: PaymentMethod { customer: customer.clone(), payment_method: succeeds.clone() },
        }
    }

    async fn paid(&self, no: u32) -> Result<Payment, String> {
        match self.gateway.charge(&self.charge(no)).await {
            ChargeAnswer::Succeeded(payment) => Ok(payment),
            other => Err(was("a success")(other)),
        }
    }

    /// What the list has of this check.
    async fn listed(&self) -> Result<Vec<Payment>, String> {
        let since = self.sample.now - TimeDelta::days(1);
        let listed = self.gateway.payments_of(&self.sample.customer, since).await.map_err(|error| error.to_string())?;
        Ok(listed.into_iter().filter(|payment| payment.table == Some(self.sample.run)).collect())
    }

    async fn listed_of(&self, no: u32) -> Result<Vec<Payment>, String> {
        Ok(self.listed().await?.into_iter().filter(|payment| payment.attempt_no == no).collect())
    }

    async fn account(&self) -> Outcome {
        let of = |error: GatewayError| error.to_string();
        let (first, second) = (self.gateway.account().await.map_err(of)?, self.gateway.account().await.map_err(of)?);
        is(first == second, || format!("it was {first}, and then {second}"))?;
        is(!first.kind.is_empty() && !first.account.is_empty(), || format!("{first:?} names nobody"))
    }

    async fn succeeds(&self) -> Outcome {
        let (asked, made) = (self.charge(1), self.paid(1).await?);
        let (account, due_on): (_, NaiveDate) = (&asked.account, asked.due_on);
        let is_named = made.table == asked.table
            && made.account == *account
            && (made.subscription, made.due_on, made.attempt_no) == (asked.subscription, due_on, 1);
        is(is_named, || format!("it does not carry the names of the request: {made:?}"))?;
        is(made.amount == asked.amount, || format!("{} was asked for, and {} charged", asked.amount, made.amount))?;
        is(made.status == PaymentStatus::Succeeded, || format!("its status is {:?}", made.status))
    }

    async fn again(&self) -> Outcome {
        let (first, second) = (self.paid(1).await?, self.paid(1).await?);
        is(first.id == second.id, || format!("it made {} and {}", first.id, second.id))?;
        let listed = self.listed_of(1).await?;
        is(listed.len() == 1, || format!("the list has {} payments of it", listed.len()))
    }

    async fn at_once(&self) -> Outcome {
        let request = self.charge(2);
        let answers = join_all((0..AT_ONCE).map(|_| self.gateway.charge(&request))).await;
        let listed = self.listed_of(2).await?;
        is(listed.len() <= 1, || format!("the list has {} payments of it", listed.len()))?;
        let ids = answers.iter().filter_map(|answer| match answer {
            ChargeAnswer::Succeeded(payment) => Some(payment.id.clone()),
            _ => None,
        });
        let ids: BTreeSet<_> = ids.collect();
        is(ids.len() == 1, || format!("one success was expected, and the answers were {answers:?}"))
    }

    async fn key_reused(&self) -> Outcome {
        self.paid(1).await?;
        let other = ChargeRequest { amount: Money::new(1_300, self.sample.currency), attempt_no: 90, ..self.charge(1) };
        let answer = self.gateway.charge(&other).await;
        is(answer == ChargeAnswer::KeyReused, || was("a key that is reused")(answer))?;
        let listed = self.listed_of(90).await?;
        is(listed.is_empty(), || format!("it made {listed:?}"))
    }

    async fn declines(&self) -> Outcome {
        let declining = PaymentMethod { payment_method: self.sample.declines.clone(), ..self.charge(3).payment_method };
        let request = ChargeRequest { payment_method: declining, ..self.charge(3) };
        let first = match self.gateway.charge(&request).await {
            ChargeAnswer::Declined(first) => first,
            other => return Err(was("a decline")(other)),
        };
        let again = self.gateway.charge(&request).await;
        is(again == ChargeAnswer::Declined(first.clone()), || was("the same decline")(again))?;
        let listed = self.listed_of(3).await?;
        let is_final = listed.iter().all(|payment| matches!(&payment.status, PaymentStatus::Declined(_)));
        is(is_final, || format!("it can still be paid, or was: {listed:?}"))
    }

    async fn rejects(&self) -> Outcome {
        let unknown = format!("pm_{}", self.sample.run).parse().expect("a token");
        let method = PaymentMethod { payment_method: unknown, ..self.charge(4).payment_method };
        let answer = self.gateway.charge(&ChargeRequest { payment_method: method, ..self.charge(4) }).await;
        is(matches!(answer, ChargeAnswer::Rejected { .. }), || was("a rejection")(answer))?;
        let listed = self.listed_of(4).await?;
        is(listed.is_empty(), || format!("it made {listed:?}"))
    }

    async fn decimals(&self) -> Outcome {
        for (no, minor, code) in [(5, 500, "JPY"), (6, 57_500, "KWD")] {
            let Ok(currency) = code.parse::<Currency>() else { continue };
            let request = ChargeRequest { amount: Money::new(minor, currency), ..self.charge(no) };
            match self.gateway.charge(&request).await {
                ChargeAnswer::Succeeded(made) => {
                    is(made.amount == request.amount, || {
                        format!("{} was asked for, and {} charged", request.amount, made.amount)
                    })?;
                }
                // Not every account takes every currency.
                ChargeAnswer::Rejected { .. } => {}
                other => return Err(was("a success, or a rejection")(other)),
            }
        }
        Ok(())
    }

    async fn lists(&self) -> Outcome {
        let first = 100;
        for no in first..first + MANY {
            self.paid(no).await?;
        }
        let listed: BTreeSet<u32> = self.listed().await?.into_iter().map(|payment| payment.attempt_no).collect();
        let missing: Vec<u32> = (first..first + MANY).filter(|no| !listed.contains(no)).collect();
        is(missing.is_empty(), || format!("of {MANY} payments {} are not in the list", missing.len()))
    }

    async fn strangers(&self) -> Outcome {
        let stranger = format!("cus_{}", self.sample.run).parse().expect("a token");
        match self.gateway.payments_of(&stranger, self.sample.now - TimeDelta::days(1)).await {
            Ok(listed) => is(listed.is_empty(), || format!("it has {} payments", listed.len())),
            Err(error) => Err(format!("a customer who has paid nothing has an empty list: {error}")),
        }
    }

    async fn refunds(&self) -> Outcome {
        let paid = self.paid(1).await?;
        let part = Money::new(500, self.sample.currency);
        let request = RefundRequest { refund: self.sample.run, payment: paid.id.clone(), amount: part };
        for _ in 0..2 {
            match self.gateway.refund(&request).await {
                RefundAnswer::Made(made) if made.amount == part => {
                    let is_good = matches!(made.state, RefundState::Succeeded | RefundState::Pending);
                    is(is_good, || format!("it came to {:?}", made.state))?;
                }
                other => return Err(was("a refund of that amount")(other)),
            }
        }
        let listed = self.gateway.refunds_of(&paid.id).await.map_err(|error| error.to_string())?;
        let named: Vec<_> = listed.iter().filter(|made| made.refund == Some(self.sample.run)).collect();
        is(named.len() == 1 && listed.len() == 1, || format!("its list has {} refunds", listed.len()))
    }

    async fn refunds_too_much(&self) -> Outcome {
        let paid = self.paid(1).await?;
        let refund = Ulid::from_parts(self.sample.run.timestamp_ms(), 1);
        let request = RefundRequest { refund, payment: paid.id, amount: paid.amount };
        let answer = self.gateway.refund(&request).await;
        is(matches!(answer, RefundAnswer::Rejected { .. }), || was("a rejection")(answer))
    }

    async fn pages(&self) -> Outcome {
        let request = PageRequest {
            setup: self.sample.run,
            account: "conformance".parse().expect("an account id"),
            email: "conformance@example.com".parse().expect("an address"),
            customer: Some(self.sample.customer.clone()),
            return_url: "https://example.com/back".to_owned(),
        };
        let of = |error: GatewayError| error.to_string();
        let page = self.gateway.open_page(&request).await.map_err(of)?;
        let again = self.gateway.open_page(&request).await.map_err(of)?;
        is(page.id == again.id, || format!("it opened {} and {}", page.id, again.id))?;
        is(page.expires_at > self.sample.now, || format!("it has closed at {}", page.expires_at))?;
        let state = self.gateway.page_state(&page.id).await.map_err(of)?;
        is(state == PageState::Open, || was("an open page")(state))
    }
}
