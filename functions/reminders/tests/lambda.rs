//! Invokes the reminder function through the real Lambda runtime loop, with every sample event in `events/` that starts
//! the function.

use billing::Subscription;
use clock::{Clock, SystemClock};
use emulator::{ServerLimits, serve_http};
use store::CreateOutcome;
use testkit::{InvocationResult, LambdaFunction, SesServer, sample_account, sample_subscription};

/// Returns the content of the sample event `events/<name>.json`.
fn sample_event(name: &str) -> String {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn reminders_are_sent_for_every_sample_event() {
    for name in ["eventbridge-scheduled", "scheduler-default", "scheduler-scheduled-time", "batch-request"] {
        let outbox = tempfile::tempdir().unwrap();
        let url = format!("outbox:{}", outbox.path().display());
        let variables = [
            ("DUEDAY_MAIL_URL", url.as_str()),
            ("DUEDAY_MAIL_FROM", "Shop <billing@example.com>"),
            ("DUEDAY_MERCHANT", "Shop"),
        ];
        let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_reminders"), "reminders", &variables).await;
        // The reminder is due on the event's day. The payment is due in the far future, because no reminder is sent
        // after the due date.
        let far_future = "2099-04-04".parse().unwrap();
        let subscription = Subscription {
            due_on: far_future,
            next_payment_on: Some(far_future),
            ..sample_subscription(4, "2026-03-05".parse().unwrap())
        };
        function.table.put_account(&sample_account()).await.unwrap();
        assert_eq!(function.table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Created);

        let deadline_ms = SystemClock.now().timestamp_millis() + 900_000;
        let InvocationResult::Response(report) = function.invoke(&sample_event(name), deadline_ms).await else {
            panic!("{name}")
        };
        assert_eq!((&report["batch"], &report["complete"]), (&"reminders".into(), &true.into()), "{name}: {report}");
        assert_eq!((&report["counts"]["due"], &report["counts"]["sent"]), (&1.into(), &1.into()), "{name}: {report}");

        let mails: Vec<_> = std::fs::read_dir(outbox.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(mails.len(), 1, "{name}");
        let mail = std::fs::read_to_string(&mails[0]).unwrap();
        assert!(
            mail.contains("To: billing@acme.example.com") && mail.contains("From: Shop <billing@example.com>"),
            "{mail}"
        );
        // The euro sign is not ASCII, so the mail contains the word with this sign in encoded form.
        assert!(mail.contains("Subject: Gold plan: =?utf-8?b?4oKsMTIuOTk=?= on April 4"), "{mail}");
        let stored = function.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap();
        assert_eq!((stored.next_reminder_on, stored.reminded_for), (None, Some(stored.due_on)), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reminders_are_sent_with_amazon_ses() {
    let ses = SesServer::new("example.com", "dueday");
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, ses.clone().router(), ServerLimits::default()));
    let variables = [
        ("AWS_ENDPOINT_URL_SESV2", url.as_str()),
        ("DUEDAY_MAIL_URL", "ses:?configuration-set=dueday"),
        ("DUEDAY_MAIL_FROM", "Shop <billing@example.com>"),
    ];
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_reminders"), "reminders", &variables).await;
    let far_future = "2099-04-04".parse().unwrap();
    let subscription = Subscription {
        due_on: far_future,
        next_payment_on: Some(far_future),
        ..sample_subscription(4, "2026-03-05".parse().unwrap())
    };
    function.table.put_account(&sample_account()).await.unwrap();
    assert_eq!(function.table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Created);

    let deadline_ms = SystemClock.now().timestamp_millis() + 900_000;
    let InvocationResult::Response(report) = function.invoke(&sample_event("batch-request"), deadline_ms).await else {
        panic!()
    };
    assert_eq!(report["counts"]["sent"], 1, "{report}");
    let [mail] = &ses.mails()[..] else { panic!("{ses:?}") };
    assert_eq!(
        (mail.to.as_slice(), mail.configuration_set.as_deref()),
        (&["billing@acme.example.com".to_owned()][..], Some("dueday"))
    );
    assert_eq!((mail.tags["account"].as_str(), mail.tags["occasion"].as_str()), ("acme", "upcoming"));
}

#[tokio::test(flavor = "multi_thread")]
async fn set_up_error_contains_the_name_of_a_missing_variable() {
    let env = config::Env(&|name| (name == "DUEDAY_MERCHANT").then(|| "Example Shop".to_owned()));
    let error = reminders_function::set_up_reminder_batch(env, std::sync::Arc::new(SystemClock)).await.unwrap_err();
    assert!(error.to_string().starts_with("DUEDAY_MAIL_URL must be set: The mail service"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_reminders_function_succeed() {
    for report in &testkit::run_sam_local_commands("RemindersFunction", env!("CARGO_BIN_EXE_reminders")).await {
        assert_eq!(report["complete"], true, "{report}");
    }
}
