//! Tests of the conformance check of gateways (`gateway check`): the sandbox and the Stripe adapter pass the check, and
//! each gateway with a flaw fails it. Also tests that `docs/gateways.md` contains real responses.

mod flawed;
mod flawed_http;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use billing::SigningSecret;
use chrono::{DateTime, Utc};
use clock::{Clock as _, SimulatedClock};
use emulator::{STRIPE_KEY, ServerLimits, StripeServer, serve_http};
use gateways::conformance::{
    CheckObserver, CheckParameters, ConformanceProgress, PromiseResult, PromiseVerdict, check_conformance,
};
use gateways::{FullGateway, GatewayError, GatewaySigningKeys, HttpGateway, PaymentGateway as _};
use sandbox::{Ledger, LedgerEntry, Sandbox, gateway_router, signed_gateway_router};
use serde_json::Value;
use testkit::create_replaced_secret;
use ulid::Ulid;

use crate::stripe::connect;
use crate::world::World;
use flawed::{Flaw, FlawedGateway};
use flawed_http::{HttpFlaw, with_flaw};

/// The time that a check waits: longer than the time for which the flawed gateways list payments or remember
/// idempotency keys.
const CHECK_WAIT: Duration = Duration::from_secs(11 * 60);

/// The flaws of the tested gateways. Each flaw has the first words of the promise (the required behaviour) that the
/// check must report as violated.
const FLAWS: [(Flaw, &str); 67] = [
    (Flaw::ReturnsNewAccountEachTime, "the account has an id"),
    (Flaw::ChangesAccountAfterOneHundredCharges, "after more than 100 charges, the account"),
    (Flaw::ChangesAccountAfterFiveMinutes, "after the wait, the account"),
    (Flaw::ReportsWrongAmounts, "a successful payment has the metadata"),
    (Flaw::ReportsLocalTimeAsUtc, "a successful payment has the metadata"),
    (Flaw::StoresDayOfChargeAsDueDate, "the metadata of a payment is stored unchanged"),
    (Flaw::StoresAccountsInLowerCase, "the metadata of a payment is stored unchanged"),
    (Flaw::StoresFortyCharactersOfAccounts, "the metadata of a payment is stored unchanged"),
    (Flaw::ReportsWrongAmounts, "amounts are charged exactly"),
    (Flaw::StoresAmountsInSinglePrecision, "amounts are charged exactly"),
    (Flaw::ForgetsKeys, "a repeated request returns the same payment"),
    (Flaw::ForgetsKeys, "concurrent copies of one request"),
    (Flaw::ForgetsKeysAfterSixtyRequests, "idempotency keys still work after more than 100"),
    (Flaw::ForgetsKeysAfterFiveMinutes, "after the wait, repeated requests"),
    (Flaw::ForgetsKeysOfDeclines, "a decline is final"),
    (Flaw::ForgetsKeysOfDebitsAfterFiveMinutes, "after the wait, repeated requests"),
    (Flaw::ForgetsKeysOfRejections, "a rejected request makes no payment when it is repeated"),
    (Flaw::RepeatsPaymentsWithNewTime, "after the wait, repeated requests"),
    (Flaw::ScopesKeysByCustomer, "a request that reuses the idempotency key"),
    (Flaw::TruncatesKeys, "idempotency keys that differ only in their last character"),
    (Flaw::AcceptsReusedKeys, "a request that reuses the idempotency key"),
    (Flaw::ComparesOnlyTheAmount, "a request that reuses the idempotency key"),
    (Flaw::DeclinesWhileTheKeyIsInUse, "concurrent copies of one request"),
    (Flaw::RejectsWhileTheCustomerIsBusy, "concurrent requests for different charges"),
    (Flaw::ListsDeclinesAsProcessing, "a decline is final"),
    (Flaw::PaysDeclinesAfterThreeSeconds, "some seconds later, no declined"),
    (Flaw::PaysDeclinesAfterTwoMinutes, "after the wait, no declined"),
    (Flaw::RespondsUnknownToInvalidRequests, "a request that cannot be carried out"),
    (Flaw::PaysRejectedRequestsLater, "some seconds later, no declined"),
    (Flaw::PaysRepeatedRejectedRequests, "a rejected request makes no payment when it is repeated"),
    (Flaw::PaysRejectedRequestsRepeatedAfterFiveMinutes, "after the wait, repeated requests"),
    (Flaw::PaysAndRespondsThrottled, "a request that is refused with the status 429"),
    (Flaw::RoundsAmountsDown, "the list contains every payment exactly once"),
    (Flaw::ListsOnlyTheFirstPage, "the list contains every payment exactly once"),
    (Flaw::ListsAPaymentOnTwoPages, "the list contains every payment exactly once"),
    (Flaw::ListsAllCustomers, "the list of one customer"),
    (Flaw::ListsOnlyTheLastTenMinutes, "after the wait, the list"),
    (Flaw::ReadsSinceAsLocalTime, "a list since an instant"),
    (Flaw::RoundsSinceUpToSeconds, "a list since an instant"),
    (Flaw::RoundsSinceUpToDays, "a list since an instant"),
    (Flaw::ListsWrongAmounts, "the list contains every payment exactly once"),
    (Flaw::ListsAmountsAfterRefunds, "the list contains refunded payments"),
    (Flaw::HidesRefundedPayments, "the list contains refunded payments"),
    (Flaw::HidesProcessingPayments, "the list contains payments that the bank is still processing"),
    (Flaw::MatchesCustomersByPrefix, "the list of one customer"),
    (Flaw::MatchesCustomersWithoutCase, "the list of one customer"),
    (Flaw::ReturnsWrongPaymentById, "a payment can be read by its id"),
    (Flaw::ConfirmsDeclinesWhenRead, "reading a payment changes nothing"),
    (Flaw::ChangesCreationTimeWhenRead, "reading a payment changes nothing"),
    (Flaw::SkipsAPaymentBetweenRangePages, "the list of the payments of a time range"),
    (Flaw::RepeatsAPaymentOnTheNextRangePage, "the list of the payments of a time range"),
    (Flaw::RefersToTheLastRangePageForever, "the list of the payments of a time range"),
    (Flaw::AddsEmptyRangePagesForever, "the list of the payments of a time range"),
    (Flaw::OmitsDeclinesFromRange, "the list of the payments of a time range"),
    (Flaw::ExcludesStartOfRange, "a time range contains its start"),
    (Flaw::IncludesEndOfRange, "a time range contains its start"),
    (Flaw::OmitsRefundsFromRange, "the list of the refunds of a time range"),
    (Flaw::IgnoresRangeOfRefunds, "the list of the refunds of a time range"),
    (Flaw::RepeatsRefunds, "a repeated request for a partial refund"),
    (Flaw::RefundsReusedKeysWithOtherAmounts, "a repeated request for a partial refund"),
    (Flaw::MakesConcurrentCopiesOfRefunds, "concurrent copies of one refund request"),
    (Flaw::ForgetsRefundsAfterFiveMinutes, "after the wait, a repeated refund request"),
    (Flaw::RefundsAndRespondsThrottled, "a request that is refused with the status 429"),
    (Flaw::RefundsDeclinedPayments, "a declined payment cannot be refunded"),
    (Flaw::RefundsMoreThanPaid, "refunds never exceed"),
    (Flaw::RefundsConcurrentlyMoreThanPaid, "refunds never exceed"),
    (Flaw::OpensNewCheckoutPageEachTime, "a setup has one checkout page"),
];

/// The flaws of the tested gateways over HTTP, with the first words of the violated promises.
const HTTP_FLAWS: [(HttpFlaw, &str); 9] = [
    (HttpFlaw::WritesAmountsAsFloats, "amounts in responses are integers"),
    (HttpFlaw::WritesAmountsOfRangeListsAsFloats, "amounts in responses are integers"),
    (HttpFlaw::WritesAmountsInMajorUnits, "amounts in responses are integers"),
    (HttpFlaw::RefusesUnknownFieldsOfCharges, "unknown fields and query parameters"),
    (HttpFlaw::RefusesUnknownFieldsOfRefunds, "unknown fields and query parameters"),
    (HttpFlaw::RefusesUnknownFieldsOfCheckoutPages, "unknown fields and query parameters"),
    (HttpFlaw::RefusesUnknownParametersOfLists, "unknown fields and query parameters"),
    (HttpFlaw::RefusesUnknownParametersOfRangeLists, "unknown fields and query parameters"),
    (HttpFlaw::IgnoresCurrencyOfRefunds, "a refund in another currency"),
];

/// The promise that a check of a gateway without a rate limit cannot check, with the reason.
const NEVER_THROTTLED: &str = "a request that is refused with the status 429 makes no payment and no refund: \
                               the gateway refused no request with 429";

/// The largest number of requests that a check sends, whatever the gateway responds.
const MAX_REQUESTS: u32 = 1_000;

/// The time at which each check starts. It is not a whole second, so that a rounded time is another time.
fn check_start_time() -> DateTime<Utc> {
    "2027-01-31T06:00:00.250Z".parse().unwrap()
}

/// Creates a sandbox gateway, and the simulated clock whose time it uses.
fn sandbox_with_clock() -> (Arc<SimulatedClock>, Arc<Sandbox>) {
    let clock = Arc::new(SimulatedClock::new(check_start_time(), 1));
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), clock.clone()));
    sandbox.set_url("http://127.0.0.1:7879");
    (clock, sandbox)
}

/// Starts an HTTP server for `sandbox`, and returns its URL.
async fn start_http_gateway(sandbox: Arc<Sandbox>) -> String {
    serve_routes(gateway_router(sandbox)).await
}

/// Serves `routes` over HTTP on a free port. Returns the URL of the server.
async fn serve_routes(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, routes, ServerLimits::default()));
    url
}

/// Returns the keys with which the requests to the signed gateways are signed.
fn keys() -> GatewaySigningKeys {
    GatewaySigningKeys::from(SigningSecret::new([7; 32]))
}

/// Returns a client of the gateway at `url` that signs its requests at the time of `clock`.
fn signing_client(url: &str, keys: GatewaySigningKeys, clock: &Arc<SimulatedClock>) -> HttpGateway {
    HttpGateway::new(url, Duration::from_secs(5)).with_keys(keys.into(), clock.clone())
}

/// Checks the gateway of `client`. Returns the promises about signatures that the gateway violates or that were not
/// checked, each with the reason.
async fn signature_promises_not_kept(client: &HttpGateway, clock: &SimulatedClock) -> Vec<String> {
    let parameters = CheckParameters { http_client: Some(client.clone()), ..check_parameters(Duration::ZERO) };
    let report = check_conformance(client, &parameters, clock, &RecordingObserver::default()).await;
    let about_signatures = report.results.iter().filter(|result| result.promise.contains("signature"));
    let violated = about_signatures.filter_map(|result| match &result.verdict {
        PromiseVerdict::Kept => None,
        PromiseVerdict::Broken(reason) | PromiseVerdict::NotChecked(reason) => {
            Some(format!("{}: {reason}", result.promise))
        }
    });
    violated.collect()
}

/// An observer that records the results and the progress of a check.
#[derive(Default)]
struct RecordingObserver(Mutex<(Vec<PromiseResult>, Vec<ConformanceProgress>)>);

impl CheckObserver for RecordingObserver {
    fn report_checked_promise(&self, result: &PromiseResult) {
        self.0.lock().unwrap().0.push(result.clone());
    }

    fn report_progress(&self, progress: &ConformanceProgress) {
        self.0.lock().unwrap().1.push(*progress);
    }
}

/// Returns the id of a run that starts at the start of each check.
fn run_id(no: u128) -> Ulid {
    Ulid::from_parts(u64::try_from(check_start_time().timestamp_millis()).unwrap(), no)
}

/// Returns the parameters of a check that waits for the duration `wait`.
fn check_parameters(wait: Duration) -> CheckParameters {
    CheckParameters {
        customer: "cus_conformance".parse().unwrap(),
        other_customer: "cus_conformance_other".parse().unwrap(),
        succeeding_method: "pm_card_visa".parse().unwrap(),
        declining_method: "pm_card_visa_chargeDeclinedInsufficientFunds".parse().unwrap(),
        processing_method: Some("pm_usBankAccount_success".parse().unwrap()),
        currency: "EUR".parse().unwrap(),
        http_client: None,
        run: run_id(7),
        wait,
    }
}

/// Checks `gateway`, which is not a gateway over HTTP. Returns the promises that the gateway violates or that were not
/// checked, each with the reason.
async fn promises_not_kept(gateway: &dyn FullGateway, clock: &SimulatedClock) -> Vec<String> {
    promises_not_kept_in(&check_parameters(CHECK_WAIT), gateway, clock).await
}

/// Checks the gateway over HTTP of `client`. Returns the same as [`promises_not_kept`].
async fn promises_not_kept_over_http(client: &HttpGateway, clock: &SimulatedClock) -> Vec<String> {
    let parameters = CheckParameters { http_client: Some(client.clone()), ..check_parameters(CHECK_WAIT) };
    promises_not_kept_in(&parameters, client, clock).await
}

/// Checks `gateway` with `parameters`. Returns the same as [`promises_not_kept`].
async fn promises_not_kept_in(
    parameters: &CheckParameters,
    gateway: &dyn FullGateway,
    clock: &SimulatedClock,
) -> Vec<String> {
    let observer = RecordingObserver::default();
    let report = check_conformance(gateway, parameters, clock, &observer).await;
    let (results, _) = observer.0.into_inner().unwrap();
    assert_eq!(results, report.results);
    let broken = report.results.into_iter().filter_map(|result| match result.verdict {
        PromiseVerdict::Kept => None,
        PromiseVerdict::Broken(reason) | PromiseVerdict::NotChecked(reason) => {
            Some(format!("{}: {reason}", result.promise))
        }
    });
    broken.collect()
}

#[tokio::test]
async fn sandbox_and_stripe_adapter_fulfil_every_promise() {
    let (clock, sandbox) = sandbox_with_clock();
    let without_flaw = FlawedGateway::new(Flaw::None, sandbox.clone(), clock.clone());
    assert_eq!(promises_not_kept(&without_flaw, &clock).await, [""; 0]);
    let count = without_flaw.request_count();
    assert!((300..400).contains(&count), "the check sends about 350 requests, and sent {count}");
    let (clock, sandbox) = sandbox_with_clock();
    assert_eq!(promises_not_kept(sandbox.as_ref(), &clock).await, [NEVER_THROTTLED]);
    let (clock, sandbox) = sandbox_with_clock();
    let url = serve_routes(signed_gateway_router(sandbox, keys(), clock.clone())).await;
    let client = signing_client(&url, keys(), &clock);
    let client = client.with_clock(clock.clone());
    assert_eq!(promises_not_kept_over_http(&client, &clock).await, [NEVER_THROTTLED]);
    assert_eq!(signature_promises_not_kept(&client, &clock).await, [""; 0]);
    let world = World::new().await;
    let stripe = connect(&StripeServer::new(world.clock.clone()), STRIPE_KEY).await;
    assert_eq!(promises_not_kept(&stripe, &world.clock).await, [NEVER_THROTTLED]);
}

#[tokio::test]
async fn gateway_check_finds_a_gateway_that_does_not_verify_signatures() {
    let (clock, sandbox) = sandbox_with_clock();
    let url = start_http_gateway(sandbox.clone()).await;
    let violated = signature_promises_not_kept(&signing_client(&url, keys(), &clock), &clock).await;
    assert_eq!(
        violated,
        [
            "a request without a valid signature is refused: \
             a request without a signature got the status 200 OK instead of 401",
            "a request with a signature that is older than five minutes is refused: \
             a request that was signed six minutes ago got the status 200 OK instead of 401",
            "a signature is valid only for its method, path, query and body: \
             a request with the signature of another method got the status 200 OK instead of 401",
        ]
    );
    let without_key = HttpGateway::new(&url, Duration::from_secs(5));
    let not_checked = signature_promises_not_kept(&without_key, &clock).await;
    assert!(not_checked.len() == 3 && not_checked[0].ends_with("no key is set: set DUEDAY_GATEWAY_KEY"));

    // This gateway refuses requests that are signed with another key. If the key is replaced, the client reads the new
    // key and sends the refused request again.
    let url = serve_routes(signed_gateway_router(sandbox, keys(), clock.clone())).await;
    let other_key = signing_client(&url, SigningSecret::new([8; 32]).into(), &clock);
    let refused = other_key.account().await.unwrap_err();
    assert_eq!(refused, GatewayError::Unusable { reason: "401 Unauthorized".to_owned() });
    let secret = create_replaced_secret(SigningSecret::new([8; 32]).into(), keys(), &clock).await;
    let client = HttpGateway::new(&url, Duration::from_secs(5)).with_keys(secret, clock.clone());
    assert!(client.account().await.is_ok(), "the request is sent again with the new key");
}

#[tokio::test]
async fn gateway_check_reports_progress_unchecked_promises_and_created_payments() {
    let (clock, sandbox) = sandbox_with_clock();
    let (began, observer) = (clock.now(), RecordingObserver::default());
    let without_wait = CheckParameters { processing_method: None, ..check_parameters(Duration::ZERO) };
    let report = check_conformance(sandbox.as_ref(), &without_wait, clock.as_ref(), &observer).await;
    let not_checked = report.results.iter().filter(|result| matches!(result.verdict, PromiseVerdict::NotChecked(_)));
    let not_checked: Vec<&str> = not_checked.map(|result| result.promise).collect();
    assert!(not_checked.len() == 8 && not_checked[0].contains("bank") && not_checked[6].contains("after the wait"));
    assert!(not_checked[7].contains("429"));
    assert_eq!(clock.now(), began, "the check does not wait");
    // Each of the check's 105 payments is one step of its progress.
    let steps = |observer: &RecordingObserver| observer.0.lock().unwrap().1.len();
    assert_eq!(steps(&observer), 105);
    let payments = sandbox.entries().iter().filter(|entry| matches!(entry, LedgerEntry::Payment(_))).count();
    assert_eq!(report.payment_ids.len(), payments);
    let refunds: usize = report.payment_ids.iter().map(|id| sandbox.refunds_made(id).len()).sum();
    assert!(report.refunds == refunds && refunds >= 3, "reported {}, in the sandbox {refunds}", report.refunds);

    let observer = RecordingObserver::default();
    let with_wait = CheckParameters { run: run_id(8), ..check_parameters(Duration::from_secs(90)) };
    check_conformance(sandbox.as_ref(), &with_wait, clock.as_ref(), &observer).await;
    assert_eq!(clock.now() - began, chrono::TimeDelta::seconds(90));
    assert_eq!(steps(&observer), 105 + 90, "the check reports the remaining time of the wait each second");
}

#[tokio::test]
async fn gateway_check_finds_the_violated_promise_of_each_flaw() {
    let mut missed = Vec::new();
    for (flaw, promise) in FLAWS {
        let (clock, sandbox) = sandbox_with_clock();
        let flawed = FlawedGateway::new(flaw, sandbox, clock.clone());
        let broken = promises_not_kept(&flawed, &clock).await;
        if !broken.iter().any(|text| text.starts_with(promise)) {
            missed.push(format!("the check does not find that {flaw:?} violates {promise:?}, but: {broken:#?}"));
        }
        if flawed.request_count() > MAX_REQUESTS {
            missed.push(format!("the check sends {} requests to the gateway that {flaw:?}", flawed.request_count()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test]
async fn gateway_check_finds_the_violated_promise_of_each_flaw_in_json() {
    let mut missed = Vec::new();
    for (flaw, promise) in HTTP_FLAWS {
        let (clock, sandbox) = sandbox_with_clock();
        let url = serve_routes(with_flaw(gateway_router(sandbox), flaw)).await;
        let client = HttpGateway::new(&url, Duration::from_secs(5)).with_clock(clock.clone());
        let parameters = CheckParameters { http_client: Some(client.clone()), ..check_parameters(Duration::ZERO) };
        let report = check_conformance(&client, &parameters, clock.as_ref(), &RecordingObserver::default()).await;
        let broken = report.results.iter().filter(|result| matches!(result.verdict, PromiseVerdict::Broken(_)));
        let broken: Vec<_> = broken.map(|result| (result.promise, &result.verdict)).collect();
        if !broken.iter().any(|(broken, _)| broken.starts_with(promise)) {
            missed.push(format!("the check does not find that {flaw:?} violates {promise:?}, but: {broken:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Sends each request of `docs/gateways.md` to the sandbox and compares the response with the document. With
/// `UPDATE_EXAMPLES=1`, writes the responses to the document.
#[tokio::test]
async fn examples_in_the_gateway_document_are_real_responses() {
    /// The path of the document.
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateways.md");
    let text = std::fs::read_to_string(PATH).unwrap();
    let (clock, sandbox) = sandbox_with_clock();
    clock.set("2027-01-31T06:00:00Z".parse().unwrap());
    let url = start_http_gateway(sandbox).await;
    let http = reqwest::Client::new();
    let (mut updated, mut payment, mut requests) = (String::new(), None::<String>, 0);
    for (number, part) in text.split("```").enumerate() {
        let Some(block) = part.strip_prefix("http\n").filter(|_| number % 2 == 1) else {
            updated += if number == 0 { "" } else { "```" };
            updated += part;
            continue;
        };
        let (example, _) = block.split_once("\n\n").unwrap();
        let (line, body) = example.split_once('\n').unwrap_or((example, ""));
        let (method, path) = line.split_once(' ').unwrap();
        let with_payment_id = |text: &str| payment.as_ref().map_or(text.to_owned(), |id| text.replace("PAYMENT", id));
        let request = http.request(method.parse().unwrap(), format!("{url}{}", with_payment_id(path)));
        let request =
            request.header("sandbox-clock", "2027-01-31T06:00:00Z").header("content-type", "application/json");
        let response = request.body(with_payment_id(body)).send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"));
        if let Some(id) = json["succeeded"]["id"].as_str() {
            payment.get_or_insert(id.to_owned());
        }
        let text = payment.as_ref().map_or(json.to_string(), |id| json.to_string().replace(id, "PAYMENT"));
        // The address of the server and the id of the account differ in each run, so replace them with fixed texts.
        let text = text.replace(&url, "https://gateway.example.com");
        let text = text.split("acct_").enumerate().map(|(n, rest)| match (n, rest.split_once('"')) {
            (0, _) | (_, None) => rest.to_owned(),
            (_, Some((_, rest))) => format!("acct_1Qx\"{rest}"),
        });
        updated += &format!("```http\n{example}\n\n{status}\n{}\n", text.collect::<String>());
        requests += 1;
    }
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(PATH, &updated).unwrap();
    }
    assert!(requests > 8 && updated == std::fs::read_to_string(PATH).unwrap(), "{updated}");
}
