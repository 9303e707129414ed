//! Each fault does what it says, at the table, at the gateway and at the mailer.

use std::sync::Arc;

use billing::Attempt;
use clock::SimulatedClock;
use emulator::{Call, Deployment, Fault, Faults, Injector, Operation, Wire};
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway as _};
use mail::{Mail, Mailer as _, Occasion};
use testkit::{Faulty, InMemory, Letterbox, Script, config, first, nth, sample};

/// Faults, whether the call takes effect, and how it is answered; `None` is not at all.
const FAULTS: [(Option<Fault>, bool, Option<AnswerKind>); 7] = [
    (None, true, Some(AnswerKind::Well)),
    (Some(Fault::LostBefore), false, Some(AnswerKind::Lost)),
    (Some(Fault::LostAfter), true, Some(AnswerKind::Lost)),
    (Some(Fault::CrashBefore), false, None),
    (Some(Fault::CrashAfter), true, None),
    (Some(Fault::Refused("ThrottlingException")), false, Some(AnswerKind::Refused)),
    (Some(Fault::Cancelled("TransactionConflict")), false, Some(AnswerKind::Refused)),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AnswerKind {
    Well,
    Lost,
    Refused,
}

async fn system() -> (InMemory, Arc<Letterbox>) {
    let letterbox = Arc::new(Letterbox::default());
    let clock = SimulatedClock::new("2026-03-10T06:00:00Z".parse().unwrap(), 1);
    (InMemory::new(config(&[]).unwrap(), clock, letterbox.clone()).await.unwrap(), letterbox)
}

fn always(fault: Option<Fault>) -> Arc<Injector> {
    Arc::new(Injector::for_runs(Arc::new(move |_: &Call<'_>| fault)))
}

fn charge_request() -> ChargeRequest {
    let subscription = sample::subscription(10, "2026-03-01".parse().unwrap());
    let attempt = Attempt {
        table: None,
        no: 1,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: chrono::DateTime::UNIX_EPOCH,
        leased_until: chrono::DateTime::UNIX_EPOCH,
        held_by: billing::Token(ulid::Ulid::nil()),
    };
    ChargeRequest::of(&subscription, &attempt)
}

#[tokio::test]
async fn table_request_takes_effect_and_is_answered_as_its_fault_says() {
    for (fault, takes_effect, answered) in FAULTS {
        let (system, _) = system().await;
        let injector = always(fault);
        let wire = Wire::through(injector.clone()).and_no_retries();
        let table = system.over(Arc::new(wire)).table;
        let answer = injector.run(table.create_account(&sample::account())).await;
        let answer = answer.map(|answer| match answer {
            Ok(_) => AnswerKind::Well,
            Err(error) if error.to_string().contains("Exception") => AnswerKind::Refused,
            Err(_) => AnswerKind::Lost,
        });
        assert_eq!(answer, answered, "{fault:?}");
        let stored = system.deployment.table.get_account(&sample::account().id).await.unwrap();
        assert_eq!(stored.is_some(), takes_effect, "{fault:?}");
        assert_eq!(injector.calls(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn charge_is_made_and_answered_as_its_fault_says() {
    for (fault, takes_effect, answered) in FAULTS {
        let (system, _) = system().await;
        let injector = always(fault);
        let gateway = Faulty::new(system.sandbox.clone(), injector.clone());
        let answer = injector.run(gateway.charge(&charge_request())).await;
        let answer = answer.map(|answer| match answer {
            ChargeAnswer::Succeeded(_) => AnswerKind::Well,
            ChargeAnswer::Unusable { .. } => AnswerKind::Refused,
            _ => AnswerKind::Lost,
        });
        assert_eq!((answer, system.sandbox.entries().len() == 1), (answered, takes_effect), "{fault:?}");
        let customer = charge_request().payment_method.customer;
        let known = injector.run(gateway.payments_of(&customer, Default::default())).await;
        let known = known.map(|known| match known {
            Ok(_) => AnswerKind::Well,
            Err(GatewayError::Unusable { .. }) => AnswerKind::Refused,
            Err(GatewayError::Unknown { .. } | GatewayError::Throttled { .. }) => AnswerKind::Lost,
        });
        assert_eq!(known, answered, "{fault:?}");
    }
}

#[tokio::test]
async fn mail_is_sent_and_answered_as_its_fault_says() {
    for (fault, takes_effect, answered) in FAULTS {
        let letterbox = Arc::new(Letterbox::default());
        let injector = always(fault);
        let mailer = Faulty::new(letterbox.clone(), injector.clone());
        let mail = Mail {
            id: "1".to_owned(),
            occasion: Occasion::Paid,
            account: sample::account().id,
            reply_to: None,
            unsubscribe_at: None,
            to: sample::account().email,
            subject: String::new(),
            text: String::new(),
            html: String::new(),
            written_at: chrono::DateTime::UNIX_EPOCH,
        };
        let answer = injector.run(mailer.send(&mail)).await.map(|answer| answer.is_ok());
        assert_eq!(answer, answered.map(|answered| answered == AnswerKind::Well), "{fault:?}");
        assert_eq!(letterbox.mails().len() == 1, takes_effect, "{fault:?}");
    }
}

#[tokio::test]
async fn injector_counts_its_calls_together_and_only_during_its_runs() {
    let (system, letterbox) = system().await;
    let injector = Arc::new(Injector::for_runs(Arc::new(nth(2, Fault::CrashBefore))));
    let deployment = Deployment {
        gateway: Arc::new(Faulty::new(system.sandbox.clone(), injector.clone())),
        mailer: Arc::new(Faulty::new(letterbox, injector.clone())),
        ..system.over(Arc::new(Wire::through(injector.clone())))
    };
    deployment.table.get_settings().await.unwrap();
    deployment.gateway.charge(&charge_request()).await;
    assert_eq!(injector.calls(), 0, "before the run");
    let run = async {
        deployment.table.get_settings().await.unwrap();
        deployment.gateway.charge(&charge_request()).await
    };
    assert_eq!((injector.run(run).await, injector.calls()), (None, 2), "the charge is the second call, and a crash");
    let answer = injector.run(deployment.gateway.charge(&charge_request())).await;
    assert!(matches!(answer, Some(ChargeAnswer::Succeeded(_))), "a crash ends one run: {answer:?}");
}

#[test]
fn script_lists_the_faults_of_one_operation_in_order() {
    let script = Script::default();
    let lost = Some(Fault::LostAfter);
    script.add(Operation::Charge, [None, lost, lost]);
    let next = |operation| script.next(&Call { number: 1, operation });
    let called = [Operation::Charge, Operation::SendMail, Operation::Charge, Operation::PaymentsOf].map(next);
    assert_eq!(called, [None, None, lost, None]);
    assert_eq!((script.clear(Operation::Charge), next(Operation::Charge)), (1, None));

    let faults = first(1, Operation::DynamoDb("PutItem"), Fault::LostBefore);
    let called =
        ["GetItem", "PutItem", "PutItem"].map(|name| faults(&Call { number: 1, operation: Operation::DynamoDb(name) }));
    assert_eq!(called, [None, Some(Fault::LostBefore), None]);
}
