//! Tests that send requests to the function's binary through its Lambda handler.

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use clock::{Clock as _, SimulatedClock, SystemClock};
use config::Env;
use emulator::Engine;
use gateway_secrets::{FirstSecretRead, create_gateway_from_environment, create_sandbox_client_from_environment};
use gateways::conformance::{
    CheckObserver, CheckParameters, ConformanceProgress, PromiseResult, PromiseVerdict, check_conformance,
};
use gateways::{GatewayError, GatewaySigningKeys, HttpGateway, PaymentGateway as _};
use reqwest::redirect::Policy;
use sandbox_function::SandboxTable;
use serde_json::Value;
use testkit::{InvocationResult, LambdaFunction};

use crate::lambda_url::{FunctionUrlAccess, start};

/// The key with which the test signs requests, if the function verifies signatures.
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// An observer that ignores the progress of the conformance check: the test reads the report at the end.
struct IgnoringObserver;

impl CheckObserver for IgnoringObserver {
    fn report_checked_promise(&self, _: &PromiseResult) {}
    fn report_progress(&self, _: &ConformanceProgress) {}
}

/// Returns an AWS configuration with test credentials.
async fn sdk() -> SdkConfig {
    let sdk = aws_config::defaults(aws_config::BehaviorVersion::latest());
    sdk.region("eu-west-1").test_credentials().load().await
}

/// Returns the client of the sandbox at `url` that the functions of the stack use.
async fn client_of_functions(url: &str) -> HttpGateway {
    let env = |name: &str| (name == "DUEDAY_SANDBOX_URL").then(|| url.to_owned());
    create_sandbox_client_from_environment(Env(&env), &sdk().await, Duration::from_secs(20), Arc::new(SystemClock))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_event_of_the_function_url_returns_the_account() {
    let variables = [("DUEDAY_SANDBOX_TABLE", "dueday-sandbox")];
    let engine = Engine::in_memory();
    SandboxTable::new(engine.client(), "dueday-sandbox", Arc::new(SystemClock)).create_if_absent().await.unwrap();
    let mut function =
        LambdaFunction::start_on_engine(&engine, env!("CARGO_BIN_EXE_sandbox"), "sandbox", &variables).await;
    let event = include_str!("../../../../events/function-url-account.json");
    let response = function.invoke(event, SystemClock.now().timestamp_millis() + 15_000).await;
    let InvocationResult::Response(response) = response else { panic!("{response:?}") };
    assert_eq!(response["statusCode"], 200, "{response}");
    let account: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
    assert_eq!((&account["Kind"], &account["Live"]), (&"sandbox".into(), &false.into()), "{account}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_function_fulfils_every_promise_of_a_gateway() {
    let url = start(FunctionUrlAccess::Iam, &[("DUEDAY_GATEWAY_KEY", KEY)]).await;
    let keys: GatewaySigningKeys = KEY.parse().unwrap();
    // The function verifies signatures with the clock of this machine, but makes payments at the time that the client
    // sends, which is `clock`.
    let signing = client_of_functions(&url).await.with_keys(keys.into(), Arc::new(SystemClock));
    let clock = Arc::new(SimulatedClock::new(SystemClock.now(), 1));
    let parameters = CheckParameters {
        customer: "cus_conformance".parse().unwrap(),
        other_customer: "cus_conformance_other".parse().unwrap(),
        succeeding_method: "pm_card_visa".parse().unwrap(),
        declining_method: "pm_card_visa_chargeDeclinedInsufficientFunds".parse().unwrap(),
        processing_method: Some("pm_usBankAccount_success".parse().unwrap()),
        currency: "EUR".parse().unwrap(),
        http_client: Some(signing.clone()),
        run: clock.ulid(),
        wait: Duration::from_secs(11 * 60),
    };
    let gateway = signing.with_clock(clock.clone());
    let report = check_conformance(&gateway, &parameters, clock.as_ref(), &IgnoringObserver).await;
    let not_kept = report.results.iter().filter(|result| !matches!(result.verdict, PromiseVerdict::Kept));
    let not_kept: Vec<_> = not_kept.map(|result| (result.promise, &result.verdict)).collect();
    let never_throttled = PromiseVerdict::NotChecked("the gateway refused no request with 429".to_owned());
    let promise = "a request that is refused with the status 429 makes no payment and no refund";
    assert_eq!(not_kept, [(promise, &never_throttled)]);
    assert_eq!(report.results.len(), 43);
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_stack_sign_their_requests_for_iam_and_unsigned_requests_are_refused() {
    let url = start(FunctionUrlAccess::Iam, &[]).await;
    let env = |name: &str| match name {
        "DUEDAY_GATEWAY" => Some("sandbox".to_owned()),
        "DUEDAY_SANDBOX_URL" => Some(format!("{url}/")),
        _ => None,
    };
    let (timeout, sdk) = (Duration::from_secs(20), sdk().await);
    let gateway =
        create_gateway_from_environment(Env(&env), &sdk, timeout, FirstSecretRead::MustSucceed, Arc::new(SystemClock))
            .await;
    let account = gateway.unwrap().account().await.unwrap();
    assert!(account.kind == "sandbox" && !account.live && account.account.starts_with("sandbox_"), "{account:?}");
    let again = client_of_functions(&url).await.account().await.unwrap();
    assert_eq!(again, account, "every process returns the same account");
    let stranger = HttpGateway::new(&url, timeout);
    let refused = stranger.account().await.unwrap_err();
    assert_eq!(refused, GatewayError::Unusable { reason: "403 Forbidden".to_owned() });
}

#[tokio::test(flavor = "multi_thread")]
async fn customer_chooses_a_test_card_on_the_checkout_page_at_the_api() {
    let url = start(FunctionUrlAccess::Everyone, &[]).await;
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let setup = r#"{"setup": "01JZXCVBNM0123456789ABCDEJ", "account": "acme", "email": "billing@acme.example.com",
        "return_url": "https://api.example.com/payment-method-setups/01JZXCVBNM0123456789ABCDEJ/return"}"#;
    let open = http.post(format!("{url}/v1/pages")).header("content-type", "application/json").body(setup);
    let opened: serde_json::Value = open.send().await.unwrap().json().await.unwrap();
    let page = opened["url"].as_str().unwrap();
    let path = page.strip_prefix("https://api.example.com").expect("the page is at the origin of return_url");
    assert_eq!(path, "/pages/page_01JZXCVBNM0123456789ABCDEJ");
    // API Gateway passes the browser's requests for this path to the function.
    let shown = http.get(format!("{url}{path}")).send().await.unwrap();
    assert_eq!(shown.status(), 200);
    assert!(shown.text().await.unwrap().contains("pm_card_mastercard"));
    let form = http.post(format!("{url}{path}")).form(&[("payment_method", "pm_card_mastercard")]);
    let chosen = form.send().await.unwrap();
    assert_eq!(chosen.status(), 303);
    assert!(chosen.headers()["location"].to_str().unwrap().ends_with("/return"));
    let state = http.get(format!("{url}/v1/pages/page_01JZXCVBNM0123456789ABCDEJ")).send().await.unwrap();
    let state: serde_json::Value = state.json().await.unwrap();
    let method = &state["complete"]["payment_method"];
    assert_eq!((&method["customer"], &method["payment_method"]), (&"cus_acme".into(), &"pm_card_mastercard".into()));
    let unknown = http.get(format!("{url}/pages/page_01JZXCVBNM0123456789ABCDEK")).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_sandbox_function_succeed() {
    for report in &testkit::run_sam_local_commands("SandboxFunction", env!("CARGO_BIN_EXE_sandbox")).await {
        assert_eq!(report["statusCode"], 200, "{report}");
    }
}
