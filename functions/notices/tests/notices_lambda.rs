//! The sample event, through the real Lambda runtime loop: a mail in the outbox.

use clock::{Clock as _, SystemClock};
use emulator::{Limits, serve};
use testkit::{Answer, Function, SesFault, SesServer, sample};

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

/// What the function logs, at every level, of an event that it tells and one that it cannot read.
async fn logged(url: &str, others: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut variables = vec![("DUEDAY_MAIL_URL", url), ("DUEDAY_MAIL_FROM", "Shop <shop@example.com>")];
    variables.extend(others);
    let written = std::fs::File::create(&log).unwrap();
    let mut function = Function::logging(env!("CARGO_BIN_EXE_notices"), "notices", &variables, written).await;
    function.table.put_account(&sample::account()).await.unwrap();
    let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs-paid.json")).unwrap();
    let deadline_ms = SystemClock.now().timestamp_millis() + 60_000;
    function.invoke(&event, deadline_ms).await;
    function.invoke(&event.replace("payment.succeeded", "nonsense"), deadline_ms).await;
    std::fs::read_to_string(&log).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn function_logs_no_address_and_no_text_of_a_mail_at_any_level() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = format!("outbox:{}", folder.path().join("outbox").display());
    let ses = SesServer::new("example.com", "dueday");
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, ses.clone().router(), Limits::default()));
    let by_ses = [("AWS_ENDPOINT_URL_SESV2", url.as_str())];
    let sent = logged("ses:", &by_ses).await;
    assert_eq!(ses.mails().len(), 1);
    ses.next([SesFault::MessageRejected]);
    let refused = logged("ses:", &by_ses).await;
    assert!(refused.contains("Amazon SES answered MessageRejected"), "{refused}");

    let address = sample::account().email;
    for logged in [logged(&outbox, &[]).await, sent, refused] {
        assert!(logged.contains("a message comes again"), "it logs: {logged}");
        for secret in [address.as_str(), "Gold plan", "Hello"] {
            let line = logged.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{secret} is logged: {line:?}");
        }
    }
}
