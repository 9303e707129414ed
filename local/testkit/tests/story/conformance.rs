//! The sandbox and Stripe's adapter pass `gateway check`, gateways with one flaw each do not, and `docs/gateways.md` shows real responses.

mod flawed;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use clock::{Clock as _, SimulatedClock};
use emulator::{Limits, STRIPE_KEY, StripeServer, gateway_router, serve};
use gateways::conformance::{Checked, Observer, Progress, Sample, Verdict, check};
use gateways::{Entry, HttpGateway, Ledger, Processor, Sandbox};
use serde_json::Value;
use ulid::Ulid;

use crate::stripe::reached;
use crate::world::World;
use flawed::{Flaw, Flawed};

/// How long a check waits: longer than the lists and keys of flawed gateways last.
const WAIT: Duration = Duration::from_secs(11 * 60);

/// Each flaw, and the beginning of a promise that it breaks.
const FLAWS: [(Flaw, &str); 37] = [
    (Flaw::AnotherAccountEachTime, "the account is named"),
    (Flaw::OtherAmount, "a successful charge has the names"),
    (Flaw::OtherAmount, "amounts are charged exactly"),
    (Flaw::ForgetsKeys, "the same request again"),
    (Flaw::ForgetsKeys, "the same request, sent several times at once"),
    (Flaw::ForgetsKeysAfterSixtyRequests, "keys are known after more than a hundred"),
    (Flaw::ForgetsKeysAfterFiveMinutes, "after the wait, the same requests"),
    (Flaw::ForgetsKeysOfDeclines, "a decline is final"),
    (Flaw::ScopesKeysByCustomer, "a key that was used for another request"),
    (Flaw::TruncatesKeys, "keys that differ only in their last character"),
    (Flaw::TakesReusedKeys, "a key that was used for another request"),
    (Flaw::ComparesOnlyTheAmount, "a key that was used for another request"),
    (Flaw::DeclinesWhileTheKeyIsInUse, "the same request, sent several times at once"),
    (Flaw::RejectsWhileTheCustomerIsBusy, "different requests of one customer"),
    (Flaw::DeclinesWhatCanStillBePaid, "a decline is final"),
    (Flaw::PaysDeclinesAfterThreeSeconds, "some seconds later, nothing is paid"),
    (Flaw::PaysDeclinesAfterTwoMinutes, "after the wait, nothing is paid"),
    (Flaw::TakesWhatIsNone, "a request that cannot be carried out"),
    (Flaw::PaysRejectionsLater, "some seconds later, nothing is paid"),
    (Flaw::RoundsAmountsDown, "the list has every payment once"),
    (Flaw::ListsOnePage, "the list has every payment once"),
    (Flaw::ListsAPaymentOnTwoPages, "the list has every payment once"),
    (Flaw::ListsEverybody, "the list of one customer"),
    (Flaw::ListsTenMinutes, "after the wait, the list"),
    (Flaw::ListsSinceInLocalTime, "the list has every payment since an instant"),
    (Flaw::ListsWrongAmounts, "the list has every payment once"),
    (Flaw::ListsAmountsThatAreLeft, "the list has refunded payments"),
    (Flaw::HidesRefundedPayments, "the list has refunded payments"),
    (Flaw::HidesProcessingPayments, "a payment that the bank has not confirmed"),
    (Flaw::MatchesCustomersByPrefix, "the list of one customer"),
    (Flaw::MatchesCustomersWithoutCase, "the list of one customer"),
    (Flaw::ReadsAnotherPayment, "one payment is read by its id"),
    (Flaw::RefundsAgain, "a part of a payment is refunded once"),
    (Flaw::RefundsAnotherAmountAgain, "a part of a payment is refunded once"),
    (Flaw::RefundsTooMuch, "no more is refunded than was paid"),
    (Flaw::RefundsTooMuchAtOnce, "no more is refunded than was paid"),
    (Flaw::OpensAnotherPage, "a web page is opened once"),
];

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

/// The results and the steps that a check reports, in their order.
#[derive(Default)]
struct Reported(Mutex<(Vec<Checked>, Vec<Progress>)>);

impl Observer for Reported {
    fn checked(&self, checked: &Checked) {
        self.0.lock().unwrap().0.push(checked.clone());
    }

    fn progress(&self, progress: &Progress) {
        self.0.lock().unwrap().1.push(*progress);
    }
}

fn sample(wait: Duration) -> Sample {
    Sample {
        customer: "cus_conformance".parse().unwrap(),
        other_customer: "cus_conformance_other".parse().unwrap(),
        succeeds: "pm_card_visa".parse().unwrap(),
        declines: "pm_card_visa_chargeDeclinedInsufficientFunds".parse().unwrap(),
        processes: Some("pm_usBankAccount_success".parse().unwrap()),
        currency: "EUR".parse().unwrap(),
        run: Ulid::from_parts(1_800_000_000_000, 7),
        wait,
    }
}

/// The promises that `gateway` breaks, and how.
async fn broken(gateway: &dyn Processor, clock: &SimulatedClock) -> Vec<String> {
    let reported = Reported::default();
    let report = check(gateway, &sample(WAIT), clock, &reported).await;
    let (checked, _) = reported.0.into_inner().unwrap();
    assert_eq!(checked, report.checked);
    let broken = report.checked.into_iter().filter_map(|checked| match checked.verdict {
        Verdict::Kept => None,
        Verdict::Broken(how) | Verdict::NotChecked(how) => Some(format!("{}: {how}", checked.promise)),
    });
    broken.collect()
}

#[tokio::test]
async fn sandbox_and_stripe_keep_every_promise() {
    let (clock, sandbox) = sandbox();
    let sound = Flawed::new(Flaw::Sound, sandbox.clone(), clock.clone());
    assert_eq!(broken(&sound, &clock).await, [""; 0]);
    let (clock, sandbox) = self::sandbox();
    assert_eq!(broken(sandbox.as_ref(), &clock).await, [""; 0]);
    let (clock, sandbox) = self::sandbox();
    let client = HttpGateway::new(&served(sandbox).await, Duration::from_secs(5)).on_clock(clock.clone());
    assert_eq!(broken(&client, &clock).await, [""; 0]);
    let world = World::new().await;
    let stripe = reached(&StripeServer::new(world.clock.clone()), STRIPE_KEY).await;
    assert_eq!(broken(&stripe, &world.clock).await, [""; 0]);
}

#[tokio::test]
async fn check_reports_what_it_does_what_it_did_not_check_and_what_it_leaves_behind() {
    let (clock, sandbox) = sandbox();
    let (began, reported) = (clock.now(), Reported::default());
    let without = Sample { processes: None, ..sample(Duration::ZERO) };
    let report = check(sandbox.as_ref(), &without, clock.as_ref(), &reported).await;
    let not_checked = report.checked.iter().filter(|checked| matches!(checked.verdict, Verdict::NotChecked(_)));
    let not_checked: Vec<&str> = not_checked.map(|checked| checked.promise).collect();
    assert!(not_checked.len() == 5 && not_checked[0].contains("bank") && not_checked[4].contains("after the wait"));
    assert_eq!(clock.now(), began, "it does not wait");
    // Of 105 payments, each is a step.
    let steps = |reported: &Reported| reported.0.lock().unwrap().1.len();
    assert_eq!(steps(&reported), 105);
    let payments = sandbox.entries().iter().filter(|entry| matches!(entry, Entry::Payment(_))).count();
    assert_eq!(report.payment_ids.len(), payments);
    let refunds: usize = report.payment_ids.iter().map(|id| sandbox.refunds_made(id).len()).sum();
    assert!(report.refunds == refunds && refunds >= 3, "{} and {refunds}", report.refunds);

    let waiting = Reported::default();
    let other = Sample { run: Ulid::from_parts(1_800_000_000_000, 8), ..sample(Duration::from_secs(90)) };
    check(sandbox.as_ref(), &other, clock.as_ref(), &waiting).await;
    assert_eq!(clock.now() - began, chrono::TimeDelta::seconds(90));
    assert_eq!(steps(&waiting), 105 + 90, "the time that is left is reported each second");
}

#[tokio::test]
async fn check_finds_each_broken_promise() {
    let mut missed = Vec::new();
    for (flaw, promise) in FLAWS {
        let (clock, sandbox) = sandbox();
        let flawed = Flawed::new(flaw, sandbox, clock.clone());
        let broken = broken(&flawed, &clock).await;
        if !broken.iter().any(|how| how.starts_with(promise)) {
            missed.push(format!("{flaw:?} does not break {promise:?}: {broken:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// `UPDATE_EXAMPLES=1` writes down what is answered now.
#[tokio::test]
async fn document_says_what_goes_over_the_wire() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateways.md");
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
