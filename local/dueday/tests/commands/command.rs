//! Tests of `dueday` processes: the server, `simulate`, `demo` and `gateway`. Also tests that a killed server loses no
//! data.

use crate::demo_folder::write_demo_folder;
use crate::gateway;
use crate::server::Server;
use crate::terminal;

use std::net::TcpListener;

use chrono::Datelike;
use gateway::Gateway;
use sandbox::LedgerEntry;
use terminal::{dueday, output};

#[test]
fn simulate_reports_the_line_and_column_of_an_invalid_cell() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.csv");
    let header = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date";
    for (text, expected) in [
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
        (format!("{header},colour\n"), "column 14 \"colour\" is unknown"),
    ] {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let (code, _, stderr) =
            output(dueday(folder.path()).args(["simulate", "--from", "2026-01-01", "--months", "1", "--file", path]));
        assert!(code == 2 && stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn simulate_runs_a_file_with_declines_and_debits() {
    let folder = tempfile::tempdir().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/try_out/demo.csv");
    let arguments = ["simulate", "--from", "2026-01-01", "--months", "3", "--json", "--file", path];
    let (code, stdout, stderr) = output(dueday(folder.path()).args(arguments));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let played: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    // Eleven subscriptions are paid three times. One subscription is declined five times and is then unpaid; one
    // subscription is declined permanently.
    assert_eq!(
        (&played["charges"], &played["receipts"], &played["declined"]),
        (&33.into(), &33.into(), &6.into()),
        "{played}"
    );
}

#[tokio::test]
async fn serve_refuses_other_hosts_and_origins_on_every_port() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let _server = Server::start(&data, &[]);
    let running: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(data.join("running.json")).unwrap()).unwrap();
    let client = reqwest::Client::new();
    for server in ["api", "dynamodb", "gateway"] {
        let url = running[server].as_str().unwrap();
        for (name, value) in [("host", "evil.example"), ("origin", "http://evil.example"), ("origin", "null")] {
            for method in [reqwest::Method::GET, reqwest::Method::POST, reqwest::Method::OPTIONS] {
                let response = client.request(method, url).header(name, value).send().await.unwrap();
                assert_eq!(response.status(), 403, "{server}, {name}: {value}");
                assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
            }
        }
        let own = client.get(url).header("origin", url).send().await.unwrap();
        assert_ne!(own.status(), 403, "the {server} server must accept requests of its own web pages");
    }
}

#[test]
fn serve_reports_a_port_that_is_in_use() {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn second_server_of_a_data_folder_is_refused_and_commands_use_the_running_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let (code, _, stderr) = output(&mut dueday(folder.path()));
    assert!(
        code == 2 && stderr.contains("another dueday is using the data folder") && stderr.contains(&server.api_url),
        "{stderr}"
    );

    let (code, stdout, stderr) = output(dueday(folder.path()).args(["demo", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    let loaded: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let receipts: serde_json::Value =
        reqwest::get(format!("{}/accounts/hotel-aurora/receipts", server.api_url)).await.unwrap().json().await.unwrap();
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
async fn gateway_option_selects_the_gateway_that_charges() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path());
    let (code, _, stderr) = output(dueday(folder.path()).arg("demo"));
    assert!(code == 2 && stderr.contains("If that is `dueday gateway`, give its address with --gateway"), "{stderr}");

    let (code, _, stderr) = output(dueday(folder.path()).args(["demo", "--gateway", &gateway.url]));
    assert_eq!(code, 0, "{stderr}");
    let ledger = std::fs::read_to_string(folder.path().join("gateway-ledger.jsonl")).unwrap();
    assert!(ledger.lines().count() > 30, "{ledger}");

    let _server = Server::start(folder.path(), &["--gateway", &format!("{}/", gateway.url)]);
    let (code, _, stderr) = output(dueday(folder.path()).args(["run", "payments"]));
    assert_eq!(code, 0, "{stderr}");
    let other = ["run", "payments", "--gateway", "http://127.0.0.1:9"];
    let (code, _, stderr) = output(dueday(folder.path()).args(other));
    let expected =
        format!("--gateway http://127.0.0.1:9: the process that uses the data folder charges at {}", gateway.url);
    assert!(code == 2 && stderr.contains(&expected), "{stderr}");
}

#[test]
fn gateway_check_reports_kept_and_unchecked_promises_and_remaining_test_data() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path());
    let check = ["gateway", "check", &gateway.url, "--wait", "0s"];
    let (code, stdout, stderr) = output(dueday(folder.path()).args(check));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stderr.contains("they are not removed") && stderr.contains("Making 105 payments."), "{stderr}");
    for expected in [
        "kept         the account has an id",
        "not checked  the list contains payments that the bank is still processing",
        "; 11 not checked.",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    let ledger = std::fs::read_to_string(folder.path().join("gateway-ledger.jsonl")).unwrap();
    let lines = |event: &str| ledger.lines().filter(|line| line.contains(&format!("\"event\":\"{event}\""))).count();
    let remaining = format!("{} payments, {} refunds and a checkout page", lines("payment"), lines("refunded"));
    assert!(lines("payment") > 100 && stdout.contains(&remaining), "{remaining}: {stdout}");

    let (code, stdout, stderr) =
        output(dueday(folder.path()).args(check).args(["--json", "--processing", "pm_usBankAccount_success"]));
    let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let results = results.as_array().unwrap();
    let broken = results.iter().filter(|result| !result["broken"].is_null()).count();
    let not_checked = results.iter().filter(|result| !result["not_checked"].is_null()).count();
    assert_eq!((code, results.len(), broken, not_checked), (0, 43, 0, 10), "{stdout}{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_keeps_confirmed_changes_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    write_demo_folder(folder.path());
    let ledger = || std::fs::read_to_string(folder.path().join("gateway-ledger.jsonl")).unwrap();
    let before = ledger();
    for round in 0..4 {
        let mut server = Server::start(folder.path(), &[]);
        let account = format!("{}/accounts/kill-{round}", server.api_url);
        let http = reqwest::Client::new();
        let body = serde_json::json!({"email": "a@example.com", "name": "A"});
        assert_eq!(http.put(&account).json(&body).send().await.unwrap().status(), 201);
        server.process.kill();
        if round % 2 == 0 {
            // Append an incomplete line to the ledger, as a crash of the gateway during a write would leave it. The
            // gateway has not responded to the charge request of this line.
            let torn = format!("{before}{{\"event\":\"payment\",\"id\":\"pay");
            std::fs::write(folder.path().join("gateway-ledger.jsonl"), torn).unwrap();
        }
    }
    let server = Server::start(folder.path(), &[]);
    for round in 0..4 {
        let found = reqwest::get(format!("{}/accounts/kill-{round}", server.api_url)).await.unwrap();
        assert_eq!(found.status(), 200, "account of round {round}");
    }
    let lines =
        |text: &str| text.lines().map(|line| serde_json::from_str::<LedgerEntry>(line).unwrap()).collect::<Vec<_>>();
    assert_eq!(lines(&ledger()), lines(&before), "no charge is lost or made twice");
}
