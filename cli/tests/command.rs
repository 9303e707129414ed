//! The command as it is typed: what it says, and what survives it being killed.

mod terminal;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use chrono::{Datelike, TimeDelta};
use dueday::{books, check};
use local::{Engine, sample};
use shared::ambient::{Ambient, Simulated, System};
use shared::batch::{BatchRequest, ChargeDue, Sweep};
use shared::billing::{Account, Subscription, SubscriptionId};
use shared::config::{Config, Env};
use shared::gateway::{Entry, Ledger, Sandbox};
use shared::table::{Created, Settings, Table};
use terminal::{dueday, output};

/// A server on free ports, killed when dropped.
struct Server {
    process: Child,
    api: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts a server on `data` and waits until it answers.
    async fn start(data: &Path) -> Self {
        let process = dueday(data)
            .args(["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { process, api: String::new() };
        // What it announces is there before it serves; a request then waits for its answer.
        loop {
            let announced = std::fs::read_to_string(data.join("running.json")).unwrap_or_default();
            let running: serde_json::Value = serde_json::from_str(&announced).unwrap_or_default();
            if running["pid"] == server.process.id() {
                server.api = running["api"].as_str().unwrap().to_owned();
            }
            if !server.api.is_empty()
                && reqwest::get(format!("{}/health", server.api)).await.is_ok_and(|r| r.status() == 200)
            {
                return server;
            }
            assert!(server.process.try_wait().unwrap().is_none(), "the server has ended");
            tokio::task::yield_now().await;
        }
    }
}

#[test]
fn bad_arguments_are_answered_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (vec!["run", "payments", "--date", "2026-02-30"], "invalid value '2026-02-30' for '--date <DATE>'"),
        (vec!["run", "invoices"], "[possible values: reminders, payments]"),
        (vec!["run", "payments", "--date", "9999-12-31"], "9999-12-31 lies in the future: today is"),
        (vec!["simulate", "--from", "2026-01-01", "--months", "0"], "0 is not in 1..=600"),
        (vec!["--billing-time", "03:00"], "must be from 04:00 to 21:00"),
        (vec!["due", "--time-zone", "Mars"], "DUEDAY_TIME_ZONE"),
        (vec!["due", "--retry-gaps", "9,9,9,9"], "DUEDAY_RETRY_GAPS must be gaps in days like 1,2,2,2"),
        (
            vec!["simulate", "--from", "2026-01-01", "--months", "1", "--file", "nowhere.csv"],
            "nowhere.csv: No such file",
        ),
    ] {
        let (code, _, stderr) = output(dueday(folder.path()).args(&arguments));
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_file_is_refused_by_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.csv");
    let header = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date";
    for (text, said) in [
        (
            format!("{header}\na,a@example.com,A,en,1,s,P,32,12.99,EUR,c,pm_card_visa,\n"),
            "line 2, payment_day: must be a day of the month",
        ),
        (
            format!("{header}\na,a@example.com,A,en,1,s,P,3,12.999,EUR,c,pm_card_visa,\n"),
            "line 2, amount: must have at most 2 decimals in EUR",
        ),
        (format!("{header}\na,a@example.com,A\n"), "line 2: must have 13 fields, not 3"),
        ("account,email\n".to_owned(), "the header lacks name, locale"),
        (format!("{header},colour\n"), "column 14 \"colour\" is not known"),
    ] {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let (code, _, stderr) =
            output(dueday(folder.path()).args(["simulate", "--from", "2026-01-01", "--months", "1", "--file", path]));
        assert!(code == 2 && stderr.contains(said), "{stderr}");
    }
}

#[test]
fn a_file_is_played_with_its_declines_and_debits() {
    let folder = tempfile::tempdir().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo.csv");
    let arguments = ["simulate", "--from", "2026-01-01", "--months", "3", "--json", "--file", path];
    let (code, stdout, stderr) = output(dueday(folder.path()).args(arguments));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let played: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    // Eleven pay three times; one is declined five times and then unpaid, one is declined for good at once.
    assert_eq!(
        (&played["charges"], &played["receipts"], &played["declined"]),
        (&33.into(), &33.into(), &6.into()),
        "{played}"
    );
}

#[test]
fn a_taken_port_and_a_damaged_folder_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for flag in ["--api-port", "--gateway-port", "--dynamodb-port"] {
        let mut command = dueday(folder.path());
        command.args(
            ["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0"]
                .into_iter()
                .filter(|f| f.starts_with("--"))
                .flat_map(|f| if f == flag { [f.to_owned(), port.clone()] } else { [f.to_owned(), "0".to_owned()] }),
        );
        let (code, _, stderr) = output(&mut command);
        assert_eq!(code, 2);
        assert!(stderr.contains(&format!("cannot listen on 127.0.0.1:{port}")) && stderr.contains(flag), "{stderr}");
    }
    std::fs::write(folder.path().join("gateway-ledger.jsonl"), "{\"event\":\"payment\"}\n").unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).arg("due"));
    assert!(code == 2 && stderr.contains("gateway-ledger.jsonl is damaged at line 1"), "{stderr}");
    std::fs::write(folder.path().join("dynamodb.sqlite"), "this is not a database, it is a text of some length")
        .unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).arg("due"));
    assert!(code == 2 && stderr.contains("dynamodb.sqlite cannot be used"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_is_refused_and_commands_go_through_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let (code, _, stderr) = output(&mut dueday(folder.path()));
    assert!(
        code == 2 && stderr.contains("another dueday is using the data folder") && stderr.contains(&server.api),
        "{stderr}"
    );

    let (code, stdout, stderr) = output(dueday(folder.path()).args(["demo", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    let loaded: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let receipts: serde_json::Value =
        reqwest::get(format!("{}/accounts/hotel-aurora/receipts", server.api)).await.unwrap().json().await.unwrap();
    assert_eq!(receipts["data"].as_array().unwrap().len(), 3, "{loaded} {receipts}");
    let (code, stdout, _) = output(dueday(folder.path()).arg("demo"));
    assert!(code == 0 && stdout.contains("loaded already"), "{stdout}");
    let today = chrono::Utc::now().date_naive();
    let ahead = format!("{}-12-31", today.year() + 1);
    let (code, stdout, _) = output(dueday(folder.path()).args(["due", "--json", "--date", &ahead]));
    let due: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, due["payments"]["rows"].as_array().unwrap().len() > 8), (0, true), "{due}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).arg("demo"));
    assert_eq!(code, 0, "{stderr}");
    let ledger = || std::fs::read_to_string(folder.path().join("gateway-ledger.jsonl")).unwrap();
    let before = ledger();
    for round in 0..10 {
        let mut server = Server::start(folder.path()).await;
        let account = format!("{}/accounts/kill-{round}", server.api);
        let http = reqwest::Client::new();
        let body = serde_json::json!({"email": "a@example.com", "name": "A"});
        assert_eq!(http.put(&account).json(&body).send().await.unwrap().status(), 201);
        server.process.kill().unwrap();
        server.process.wait().unwrap();
        if round % 2 == 0 {
            // A line that was cut off while being written was never answered.
            let torn = format!("{before}{{\"event\":\"payment\",\"id\":\"pay");
            std::fs::write(folder.path().join("gateway-ledger.jsonl"), torn).unwrap();
        }
    }
    let server = Server::start(folder.path()).await;
    for round in 0..10 {
        let found = reqwest::get(format!("{}/accounts/kill-{round}", server.api)).await.unwrap();
        assert_eq!(found.status(), 200, "account of round {round}");
    }
    let lines = |text: &str| text.lines().map(|line| serde_json::from_str::<Entry>(line).unwrap()).collect::<Vec<_>>();
    assert_eq!(lines(&ledger()), lines(&before), "no charge lost, none doubled");
}

/// A table on the data folder with `count` subscriptions due yesterday.
async fn subscribe(folder: &Path, count: u32) {
    let engine = Engine::open(&folder.join("dynamodb.sqlite")).unwrap();
    let table = Table::new(engine.client(), "dueday", TimeDelta::days(190));
    table.create_if_absent().await.unwrap();
    let settings = table.init_settings(&Settings { shards: 2, charging: true, table_id: System.ulid() }).await.unwrap();
    let yesterday = System.now() - TimeDelta::days(1);
    for n in 0..count {
        let account = Account { id: format!("account-{}", n / 2).parse().unwrap(), ..sample::account() };
        table.put_account(&account).await.unwrap();
        let day_before = (yesterday - TimeDelta::days(1)).date_naive();
        let due = sample::subscription(i64::from(yesterday.day()), day_before);
        let (id, shard) = (SubscriptionId::new(System.ulid()), settings.shard_of(&account.id));
        let subscription = Subscription { account: account.id, id, shard, ..due };
        assert_eq!(table.create_subscription(&subscription, None).await.unwrap(), Created::Created);
    }
}

/// The server is killed again and again while it charges, after some lines more in the ledger each time. Then, when
/// every lease has lapsed, one sweep settles what was left open.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_run_killed_again_and_again_charges_everyone_once() {
    const SUBSCRIPTIONS: u32 = 300;
    let folder = tempfile::tempdir().unwrap();
    subscribe(folder.path(), SUBSCRIPTIONS).await;
    let path = folder.path().join("gateway-ledger.jsonl");
    let lines = || std::fs::read_to_string(&path).unwrap_or_default().lines().count();
    let mut kills = 0;
    for step in [1, 3, 7, 2, 11, 5, 13, 4, 9, 6, 17, 8] {
        let wanted = lines() + step;
        let mut process = dueday(folder.path())
            .args([
                "--api-port",
                "0",
                "--dynamodb-port",
                "0",
                "--gateway-port",
                "0",
                "--gateway-rate",
                "10000",
                "--concurrency",
                "4",
            ])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while lines() < wanted {
            assert!(process.try_wait().unwrap().is_none(), "the server has ended");
            std::thread::yield_now();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        kills += 1;
    }
    assert_eq!(kills, 12);

    let clock = Arc::new(Simulated::new(System.now() + TimeDelta::hours(1), 0));
    let engine = Engine::open(&folder.path().join("dynamodb.sqlite")).unwrap();
    let config = Config::read(Env(&|_| None)).unwrap();
    let table = Table::new(engine.client(), "dueday", config.receipts_kept);
    let sandbox = Arc::new(Sandbox::new(Ledger::open(&path).unwrap(), clock.clone()));
    let open = books::books(&table, &sandbox.entries()).await.unwrap();
    let in_doubt = open.subscriptions.iter().filter(|s| s.has_attempt).count();
    let unlimited = Config { gateway_rate: None, ..config };
    let charge_due = ChargeDue::new(table.clone(), sandbox.clone(), &unlimited, clock.clone());
    let sweep = Sweep::new(table.clone(), charge_due, &unlimited, clock.clone()).await.unwrap();
    let today = clock.now().date_naive();
    let report = sweep.run(&BatchRequest::on(today), clock.now() + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");

    let settled = books::books(&table, &sandbox.entries()).await.unwrap();
    let broken: Vec<_> = check(&settled, today).into_iter().filter(|finding| !finding.holds()).collect();
    // The killed runs left their records open, and that is what the checker says of them.
    assert!(broken.iter().all(|finding| finding.invariant.starts_with("every sweep was closed")), "{broken:?}");
    let expected = usize::try_from(SUBSCRIPTIONS).unwrap();
    assert_eq!((settled.charges.len(), settled.receipts.len()), (expected, expected), "{in_doubt} were in doubt");
    assert!(settled.subscriptions.iter().all(|s| !s.has_attempt && s.due > today));
    assert!(in_doubt > 0, "no kill fell between claim and settlement");
}
