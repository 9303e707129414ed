//! Invokes the function's binary, and reads the sent mails from the outbox or from a stand-in for Amazon SES.

use clock::{Clock as _, SystemClock};
use emulator::{ServerLimits, serve_http};
use notices::{NOTICE_DELAYED, NOTICE_MESSAGE_FAILED};
use testkit::{InvocationResult, LambdaFunction, RefusedAt, SesFault, SesServer, SmtpServer, sample_account};

#[tokio::test(flavor = "multi_thread")]
async fn notices_function_sends_one_mail_for_a_repeated_event() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = format!("outbox:{}", folder.path().display());
    let variables = [("DUEDAY_MAIL_URL", outbox.as_str()), ("DUEDAY_MAIL_FROM", "Shop <shop@example.com>")];
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_notices"), "notices", &variables).await;
    function.table.put_account(&sample_account()).await.unwrap();
    let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs-paid.json")).unwrap();
    let deadline_ms = SystemClock.now().timestamp_millis() + 60_000;
    for _ in 0..2 {
        let InvocationResult::Response(response) = function.invoke(&event, deadline_ms).await else { panic!() };
        assert_eq!(response["batchItemFailures"], serde_json::json!([]), "{response}");
    }
    let mails: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = std::fs::read_to_string(&mails[0]).unwrap();
    assert!(mail.contains("Gold plan") && mail.contains("2027"), "{mail}");
    let InvocationResult::Response(response) =
        function.invoke(&event.replace("specversion", "version"), deadline_ms).await
    else {
        panic!()
    };
    assert_eq!(
        response["batchItemFailures"].as_array().unwrap().len(),
        1,
        "a message that is not an event stays in the queue"
    );
}

/// Invokes the function with a readable and an unreadable event. Returns the function's log with all levels.
async fn log_of_two_events(url: &str, more_variables: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut variables = vec![("DUEDAY_MAIL_URL", url), ("DUEDAY_MAIL_FROM", "Shop <shop@example.com>")];
    variables.extend(more_variables);
    let log_file = std::fs::File::create(&log).unwrap();
    let mut function =
        LambdaFunction::start_with_log(env!("CARGO_BIN_EXE_notices"), "notices", &variables, log_file).await;
    function.table.put_account(&sample_account()).await.unwrap();
    let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs-paid.json")).unwrap();
    let deadline_ms = SystemClock.now().timestamp_millis() + 60_000;
    function.invoke(&event, deadline_ms).await;
    function.invoke(&event.replace("payment.succeeded", "nonsense"), deadline_ms).await;
    std::fs::read_to_string(&log).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn log_contains_no_address_and_no_text_of_a_mail_at_any_level() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = format!("outbox:{}", folder.path().join("outbox").display());
    let ses = SesServer::new("example.com", "dueday");
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, ses.clone().router(), ServerLimits::default()));
    let ses_variables = [("AWS_ENDPOINT_URL_SESV2", url.as_str())];
    let log_of_sent = log_of_two_events("ses:", &ses_variables).await;
    assert_eq!(ses.mails().len(), 1);
    ses.set_faults([SesFault::MessageRejected]);
    let log_of_rejected = log_of_two_events("ses:", &ses_variables).await;
    assert!(log_of_rejected.contains("Amazon SES responded with MessageRejected"), "{log_of_rejected}");

    let address = sample_account().email;
    for log in [log_of_two_events(&outbox, &[]).await, log_of_sent, log_of_rejected] {
        assert!(log.contains("a message failed and stays in the queue"), "the unreadable event is logged: {log}");
        for secret in [address.as_str(), "Gold plan", "Hello"] {
            let line = log.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{secret} is logged: {line:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_that_its_recipient_does_not_accept_now_stays_in_the_queue_without_an_alarm() {
    let (server, url) = SmtpServer::start().await;
    let address = sample_account().email;
    server.refuse_mails_to(address.as_str(), RefusedAt::Recipient, 452, "4.2.2 mailbox full");
    let log = log_of_two_events(&url, &[]).await;
    let line = log.lines().find(|line| line.contains(NOTICE_DELAYED)).expect("a line about the delayed notice");
    assert!(line.contains("responded to RCPT TO with 452 4.2.2 mailbox full <<redacted>>"), "{line}");
    assert!(log.contains("\"mails-delayed\":1"), "the metric counts the notice: {log}");
    assert!(!log.contains(address.as_str()), "{log}");
    let failed: Vec<&str> = log.lines().filter(|line| line.contains(NOTICE_MESSAGE_FAILED)).collect();
    assert_eq!(failed.len(), 1, "only the unreadable event raises the alarm: {failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_notices_function_succeed() {
    for report in &testkit::run_sam_local_commands("NoticesFunction", env!("CARGO_BIN_EXE_notices")).await {
        assert_eq!(report["batchItemFailures"], serde_json::json!([]), "{report}");
    }
}
