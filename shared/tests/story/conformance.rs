//! Every gateway keeps its promises, one that breaks one is found, and what is written of them over HTTP is what is said.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use emulator::{Limits, STRIPE_KEY, StripeServer, gateway_router, serve};
use serde_json::Value;
use shared::billing::{GatewayAccount, GatewayToken, Money, Payment, PaymentStatus};
use shared::clock::SimulatedClock;
use shared::gateway::conformance::{Sample, check};
use shared::gateway::{
    ChargeAnswer, ChargeRequest, GatewayError, Ledger, Page, PageRequest, PageState, PaymentGateway,
    PaymentMethodPages, Processor, RefundAnswer, RefundMade, RefundRequest, Refunds, Sandbox, SandboxClient,
};
use ulid::Ulid;

use crate::stripe::reached;
use crate::world::World;

fn now() -> DateTime<Utc> {
    "2027-01-31T06:00:00Z".parse().unwrap()
}

fn sandbox() -> (Arc<SimulatedClock>, Arc<Sandbox>) {
    let clock = Arc::new(SimulatedClock::new(now(), 1));
    let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
    sandbox.served_at("http://127.0.0.1:7879");
    (clock, sandbox)
}

async fn served(sandbox: Arc<Sandbox>) -> String {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, gateway_router(sandbox), Limits::default()));
    url
}

/// The promises that `gateway` breaks.
async fn broken(gateway: &dyn Processor, now: DateTime<Utc>) -> Vec<String> {
    let sample = Sample {
        customer: "cus_conformance".parse().unwrap(),
        succeeds: "pm_card_visa".parse().unwrap(),
        declines: "pm_card_visa_chargeDeclinedInsufficientFunds".parse().unwrap(),
        currency: "EUR".parse().unwrap(),
        run: Ulid::from_parts(1_800_000_000_000, 7),
        now,
    };
    let mut told = 0;
    let all = check(gateway, &sample, |_| told += 1).await;
    assert_eq!(told, all.len());
    all.into_iter().filter_map(|checked| checked.broken.map(|how| format!("{}: {how}", checked.promise))).collect()
}

#[tokio::test]
async fn sandbox_and_stripe_keep_every_promise() {
    let (clock, sandbox) = sandbox();
    assert_eq!(broken(sandbox.as_ref(), now()).await, [""; 0]);
    let (_, another) = self::sandbox();
    let client = SandboxClient::new(&served(another).await, Duration::from_secs(5)).on_clock(clock);
    assert_eq!(broken(&client, now()).await, [""; 0]);
    let world = World::new().await;
    let stripe = reached(&StripeServer::new(world.clock.clone()), STRIPE_KEY).await;
    let now = shared::clock::Clock::now(world.clock.as_ref());
    assert_eq!(broken(&stripe, now).await, [""; 0]);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    AnotherAccountEachTime,
    OtherAmount,
    ForgetsKeys,
    TakesReusedKeys,
    DeclinesWhatCanStillBePaid,
    TakesWhatIsNone,
    ListsOnePage,
    ListsEverybody,
    RefundsAgain,
    RefundsTooMuch,
    OpensAnotherPage,
}

/// The sandbox, with a flaw.
#[derive(Debug)]
struct Flawed {
    sandbox: Arc<Sandbox>,
    flaw: Flaw,
    calls: std::sync::atomic::AtomicU32,
}

impl Flawed {
    fn call(&self) -> u32 {
        self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

#[async_trait]
impl PaymentGateway for Flawed {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let account = self.sandbox.account().await?;
        let other = GatewayAccount { account: format!("{}{}", account.account, self.call()), ..account.clone() };
        Ok(if self.flaw == Flaw::AnotherAccountEachTime { other } else { account })
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let asked = match self.flaw {
            Flaw::ForgetsKeys => ChargeRequest { idempotency_key: self.call().to_string(), ..request.clone() },
            _ => request.clone(),
        };
        let answer = self.sandbox.charge(&asked).await;
        match (self.flaw, answer) {
            (Flaw::OtherAmount, ChargeAnswer::Succeeded(payment)) => {
                let amount = Money::new(payment.amount.minor() / 10, payment.amount.currency());
                ChargeAnswer::Succeeded(Payment { amount, ..payment })
            }
            (Flaw::TakesReusedKeys, ChargeAnswer::KeyReused) => {
                let other = ChargeRequest { idempotency_key: self.call().to_string(), ..request.clone() };
                self.sandbox.charge(&other).await
            }
            (Flaw::TakesWhatIsNone, ChargeAnswer::Rejected { .. }) => ChargeAnswer::Unknown { reason: "?".to_owned() },
            (_, answer) => answer,
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let everybody = "cus_conformance".parse().unwrap();
        let of = if self.flaw == Flaw::ListsEverybody { &everybody } else { customer };
        let mut listed = self.sandbox.payments_of(of, since).await?;
        match self.flaw {
            Flaw::ListsOnePage => listed.truncate(100),
            Flaw::DeclinesWhatCanStillBePaid => {
                let declined = listed.iter_mut().filter(|payment| matches!(payment.status, PaymentStatus::Declined(_)));
                declined.for_each(|payment| payment.status = PaymentStatus::Processing);
            }
            _ => {}
        }
        Ok(listed)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

#[async_trait]
impl PaymentMethodPages for Flawed {
    async fn open_page(&self, request: &PageRequest) -> Result<Page, GatewayError> {
        let other = PageRequest { setup: Ulid::from_parts(1, self.call().into()), ..request.clone() };
        self.sandbox.open_page(if self.flaw == Flaw::OpensAnotherPage { &other } else { request }).await
    }

    async fn page_state(&self, id: &GatewayToken) -> Result<PageState, GatewayError> {
        self.sandbox.page_state(id).await
    }
}

#[async_trait]
impl Refunds for Flawed {
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let other = RefundRequest { refund: Ulid::from_parts(2, self.call().into()), ..request.clone() };
        let answer = self.sandbox.refund(if self.flaw == Flaw::RefundsAgain { &other } else { request }).await;
        match answer {
            RefundAnswer::Rejected { .. } if self.flaw == Flaw::RefundsTooMuch => {
                let less = RefundRequest { amount: Money::new(1, request.amount.currency()), ..request.clone() };
                self.sandbox.refund(&less).await
            }
            answer => answer,
        }
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        self.sandbox.refunds_of(payment).await
    }
}

#[tokio::test]
async fn check_finds_each_broken_promise() {
    for (flaw, promise) in [
        (Flaw::AnotherAccountEachTime, "it says whose account it is"),
        (Flaw::OtherAmount, "a charge that succeeds is answered with its names, amount and currency"),
        (Flaw::ForgetsKeys, "the same request again is the same payment"),
        (Flaw::ForgetsKeys, "the same request at the same time is one payment"),
        (Flaw::TakesReusedKeys, "an idempotency key that was used for another request"),
        (Flaw::DeclinesWhatCanStillBePaid, "a decline is answered, is final"),
        (Flaw::TakesWhatIsNone, "a request that cannot be carried out is rejected"),
        (Flaw::OtherAmount, "what is charged in a currency of no or three decimals"),
        (Flaw::ListsOnePage, "the list shows every payment"),
        (Flaw::ListsEverybody, "the list of a customer shows no other"),
        (Flaw::RefundsAgain, "a part of a payment is given back once"),
        (Flaw::RefundsTooMuch, "no more is given back than was paid"),
        (Flaw::OpensAnotherPage, "a page is opened once"),
    ] {
        let flawed = Flawed { sandbox: sandbox().1, flaw, calls: 0.into() };
        let broken = broken(&flawed, now()).await;
        assert!(broken.iter().any(|said| said.starts_with(promise)), "{flaw:?}: {broken:?}");
    }
}

/// `UPDATE_EXAMPLES=1` writes down what is answered now.
#[tokio::test]
async fn document_says_what_goes_over_the_wire() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/gateways.md");
    let text = std::fs::read_to_string(PATH).unwrap();
    let (_, sandbox) = sandbox();
    let url = served(sandbox).await;
    let http = reqwest::Client::new();
    let (mut now_said, mut payment, mut requests) = (String::new(), None::<String>, 0);
    for (number, part) in text.split("```").enumerate() {
        let Some(block) = part.strip_prefix("http\n").filter(|_| number % 2 == 1) else {
            now_said += if number == 0 { "" } else { "```" };
            now_said += part;
            continue;
        };
        let (asked, _) = block.split_once("\n\n").unwrap();
        let (line, body) = asked.split_once('\n').unwrap_or((asked, ""));
        let (method, path) = line.split_once(' ').unwrap();
        let named = |text: &str| payment.as_ref().map_or(text.to_owned(), |id| text.replace("PAYMENT", id));
        let request = http.request(method.parse().unwrap(), format!("{url}{}", named(path)));
        let request =
            request.header("sandbox-clock", "2027-01-31T06:00:00Z").header("content-type", "application/json");
        let answer = request.body(named(body)).send().await.unwrap();
        let (status, said) = (answer.status().as_u16(), answer.text().await.unwrap());
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{line}: {error}: {said}"));
        if let Some(id) = said["succeeded"]["id"].as_str() {
            payment.get_or_insert(id.to_owned());
        }
        let said = payment.as_ref().map_or(said.to_string(), |id| said.to_string().replace(id, "PAYMENT"));
        // Where it listens, and whose it is, is another one each time.
        let said = said.replace(&url, "https://gateway.example.com");
        let said = said.split("acct_").enumerate().map(|(n, rest)| match (n, rest.split_once('"')) {
            (0, _) | (_, None) => rest.to_owned(),
            (_, Some((_, rest))) => format!("acct_1Qx\"{rest}"),
        });
        now_said += &format!("```http\n{asked}\n\n{status}\n{}\n", said.collect::<String>());
        requests += 1;
    }
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(PATH, &now_said).unwrap();
    }
    assert!(requests > 8 && now_said == std::fs::read_to_string(PATH).unwrap(), "{now_said}");
}
