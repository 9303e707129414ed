//! Tests of the effect of each fault on a request to the table, to the gateway and to the mail server.

use std::sync::Arc;

use billing::Attempt;
use clock::SimulatedClock;
use deployment::{Deployment, FaultyService, InMemoryDeployment};
use emulator::{EngineConnection, ExternalCall, ExternalOperation, Fault, FaultDecider, FaultInjector};
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway as _};
use mail::{Mail, MailKind, Mailer as _};
use testkit::{
    FaultScript, RecordedMails, fault_at_call, fault_in_first_calls, read_test_config, sample_account,
    sample_subscription,
};

/// The columns are: the fault, whether the call takes effect, and the result of the call (`None` if the call never
/// returns).
const FAULTS: [(Option<Fault>, bool, Option<CallResult>); 7] = [
    (None, true, Some(CallResult::Succeeded)),
    (Some(Fault::LostBefore), false, Some(CallResult::Lost)),
    (Some(Fault::LostAfter), true, Some(CallResult::Lost)),
    (Some(Fault::CrashBefore), false, None),
    (Some(Fault::CrashAfter), true, None),
    (Some(Fault::Refused("ThrottlingException")), false, Some(CallResult::Refused)),
    (Some(Fault::Cancelled("TransactionConflict")), false, Some(CallResult::Refused)),
];

/// The result of a call with a fault, as its caller sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CallResult {
    Succeeded,
    /// The caller got no response.
    Lost,
    /// The caller got an error.
    Refused,
}

/// Creates a deployment, and the list of the mails that it sends.
async fn new_system() -> (InMemoryDeployment, Arc<RecordedMails>) {
    let mails_sent = Arc::new(RecordedMails::default());
    let clock = SimulatedClock::new("2026-03-10T06:00:00Z".parse().unwrap(), 1);
    (InMemoryDeployment::new(read_test_config(&[]).unwrap(), clock, mails_sent.clone()).await.unwrap(), mails_sent)
}

/// Returns an injector that gives `fault` to each call during its runs.
fn injector_with(fault: Option<Fault>) -> Arc<FaultInjector> {
    Arc::new(FaultInjector::active_during_runs(Arc::new(move |_: &ExternalCall<'_>| fault)))
}

/// Returns the request of the first payment attempt of an example subscription.
fn charge_request() -> ChargeRequest {
    let subscription = sample_subscription(10, "2026-03-01".parse().unwrap());
    let attempt = Attempt {
        table: None,
        no: 1,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: chrono::DateTime::UNIX_EPOCH,
        leased_until: chrono::DateTime::UNIX_EPOCH,
        claim_token: billing::ClaimToken(ulid::Ulid::nil()),
    };
    ChargeRequest::from_attempt(&subscription, &attempt)
}

#[tokio::test]
async fn table_request_behaves_as_its_fault() {
    for (fault, takes_effect, expected_result) in FAULTS {
        let (system, _) = new_system().await;
        let injector = injector_with(fault);
        let connection = EngineConnection::with_injector(injector.clone()).without_retries();
        let table = system.with_connection(Arc::new(connection)).table;
        let actual = injector.run(table.create_account(&sample_account())).await;
        let actual = actual.map(|actual| match actual {
            Ok(_) => CallResult::Succeeded,
            Err(error) if error.to_string().contains("Exception") => CallResult::Refused,
            Err(_) => CallResult::Lost,
        });
        assert_eq!(actual, expected_result, "{fault:?}");
        let stored = system.deployment.table.get_account(&sample_account().id).await.unwrap();
        assert_eq!(stored.is_some(), takes_effect, "{fault:?}");
        assert_eq!(injector.call_count(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn charge_behaves_as_its_fault() {
    for (fault, takes_effect, expected_result) in FAULTS {
        let (system, _) = new_system().await;
        let injector = injector_with(fault);
        let gateway = FaultyService::new(system.sandbox.clone(), injector.clone());
        let actual = injector.run(gateway.charge(&charge_request())).await;
        let actual = actual.map(|actual| match actual {
            ChargeResponse::Succeeded(_) => CallResult::Succeeded,
            ChargeResponse::Unusable { .. } => CallResult::Refused,
            _ => CallResult::Lost,
        });
        assert_eq!((actual, system.sandbox.entries().len() == 1), (expected_result, takes_effect), "{fault:?}");
        let customer = charge_request().payment_method.customer;
        let known = injector.run(gateway.payments_of_customer(&customer, Default::default())).await;
        let known = known.map(|known| match known {
            Ok(_) => CallResult::Succeeded,
            Err(GatewayError::Unusable { .. }) => CallResult::Refused,
            Err(GatewayError::Unknown { .. } | GatewayError::Unreadable { .. } | GatewayError::Throttled { .. }) => {
                CallResult::Lost
            }
        });
        assert_eq!(known, expected_result, "{fault:?}");
    }
}

#[tokio::test]
async fn mail_behaves_as_its_fault() {
    for (fault, takes_effect, expected_result) in FAULTS {
        let mails_sent = Arc::new(RecordedMails::default());
        let injector = injector_with(fault);
        let mailer = FaultyService::new(mails_sent.clone(), injector.clone());
        let mail = Mail {
            id: "1".to_owned(),
            kind: MailKind::Paid,
            account: sample_account().id,
            sender_name: "Example Shop".to_owned(),
            reply_to: None,
            unsubscribe_at: None,
            to: sample_account().email,
            subject: String::new(),
            text: String::new(),
            html: String::new(),
            written_at: chrono::DateTime::UNIX_EPOCH,
        };
        let actual = injector.run(mailer.send(&mail)).await.map(|actual| actual.is_ok());
        assert_eq!(
            actual,
            expected_result.map(|expected_result| expected_result == CallResult::Succeeded),
            "{fault:?}"
        );
        assert_eq!(mails_sent.mails().len() == 1, takes_effect, "{fault:?}");
    }
}

#[tokio::test]
async fn injector_counts_the_calls_of_all_systems_only_during_its_runs() {
    let (system, mails_sent) = new_system().await;
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(2, Fault::CrashBefore))));
    let deployment = Deployment {
        gateway: Arc::new(FaultyService::new(system.sandbox.clone(), injector.clone())),
        mailer: Arc::new(FaultyService::new(mails_sent, injector.clone())),
        ..system.with_connection(Arc::new(EngineConnection::with_injector(injector.clone())))
    };
    deployment.table.get_settings().await.unwrap();
    deployment.gateway.charge(&charge_request()).await;
    assert_eq!(injector.call_count(), 0, "before the run");
    let run = async {
        deployment.table.get_settings().await.unwrap();
        deployment.gateway.charge(&charge_request()).await
    };
    assert_eq!(
        (injector.run(run).await, injector.call_count()),
        (None, 2),
        "the charge is the second call, at which the run crashes"
    );
    let actual = injector.run(deployment.gateway.charge(&charge_request())).await;
    assert!(matches!(actual, Some(ChargeResponse::Succeeded(_))), "a crash ends only one run: {actual:?}");
}

#[test]
fn script_returns_the_faults_of_each_operation_in_order() {
    let script = FaultScript::default();
    let lost = Some(Fault::LostAfter);
    script.add(ExternalOperation::Charge, [None, lost, lost]);
    let next = |operation| script.fault_of_call(&ExternalCall { number: 1, operation });
    let called = [
        ExternalOperation::Charge,
        ExternalOperation::SendMail,
        ExternalOperation::Charge,
        ExternalOperation::PaymentsOf,
    ]
    .map(next);
    assert_eq!(called, [None, None, lost, None]);
    assert_eq!((script.clear(ExternalOperation::Charge), next(ExternalOperation::Charge)), (1, None));

    let faults = fault_in_first_calls(1, ExternalOperation::DynamoDb("PutItem"), Fault::LostBefore);
    let called = ["GetItem", "PutItem", "PutItem"]
        .map(|name| faults(&ExternalCall { number: 1, operation: ExternalOperation::DynamoDb(name) }));
    assert_eq!(called, [None, Some(Fault::LostBefore), None]);
}
