//! The sample event, through the real Lambda runtime loop: a mail in the outbox.

use emulator::{Answer, Function, sample};
use shared::clock::{Clock as _, SystemClock};

#[tokio::test(flavor = "multi_thread")]
async fn function_writes_the_mail_of_the_sample_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = format!("outbox:{}", folder.path().display());
    let variables = [("DUEDAY_MAIL_URL", outbox.as_str()), ("DUEDAY_MAIL_FROM", "Shop <shop@example.com>")];
    let mut function = Function::start(env!("CARGO_BIN_EXE_notices"), "notices", &variables).await;
    function.table.put_account(&sample::account()).await.unwrap();
    let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs-paid.json")).unwrap();
    let deadline_ms = SystemClock.now().timestamp_millis() + 60_000;
    for _ in 0..2 {
        let Answer::Response(response) = function.invoke(&event, deadline_ms).await else { panic!() };
        assert_eq!(response["batchItemFailures"], serde_json::json!([]), "{response}");
    }
    let mails: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = std::fs::read_to_string(&mails[0]).unwrap();
    assert!(mail.contains("Gold plan") && mail.contains("2027"), "{mail}");
    let Answer::Response(response) = function.invoke(&event.replace("specversion", "version"), deadline_ms).await
    else {
        panic!()
    };
    assert_eq!(response["batchItemFailures"].as_array().unwrap().len(), 1, "what is no event comes again");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_logs_no_address_and_no_text_of_a_mail_at_any_level() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = format!("outbox:{}", folder.path().join("outbox").display());
    let log = folder.path().join("log");
    let variables = [("DUEDAY_MAIL_URL", outbox.as_str()), ("DUEDAY_MAIL_FROM", "Shop <shop@example.com>")];
    let written = std::fs::File::create(&log).unwrap();
    let mut function = Function::logging(env!("CARGO_BIN_EXE_notices"), "notices", &variables, written).await;
    function.table.put_account(&sample::account()).await.unwrap();
    let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs-paid.json")).unwrap();
    let deadline_ms = SystemClock.now().timestamp_millis() + 60_000;
    function.invoke(&event, deadline_ms).await;
    function.invoke(&event.replace("payment.succeeded", "nonsense"), deadline_ms).await;
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("a message comes again"), "it logs: {logged}");
    let address = sample::account().email;
    for secret in [address.as_str(), "Gold plan", "Hello"] {
        let line = logged.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is logged: {line:?}");
    }
}
