//! Charges a month through the stand-in for Stripe in a local installation, and compares the receipts and refunds with
//! the payments and refunds that the stand-in lists.

use crate::process;
use crate::terminal;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::Utc;
use process::Process;
use serde_json::Value;
use terminal::{dueday, output};

/// The secret API key that the stand-in accepts.
const KEY: &str = "sk_test_standin";
/// The header row of the CSV file that the tests write and import with `dueday import`.
const IMPORT_HEADER: &str = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n";
/// A restricted API key, which has no permission to read its own Stripe account.
const RESTRICTED_KEY: &str = "rk_test_standin";

/// Starts the server `command`. Returns the process of the server, and the address that the server prints as the JSON
/// field `name`.
fn start_server(command: &mut Command, name: &str) -> (Process, String) {
    let mut process = Process::start(command.stdout(Stdio::piped()));
    let mut text = String::new();
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next() {
        text += &line.unwrap();
        if let Ok(addresses) = serde_json::from_str::<Value>(&text) {
            // Keep reading: the server ends if it cannot write its output.
            std::thread::spawn(move || lines.for_each(drop));
            return (process, addresses[name].as_str().unwrap().to_owned());
        }
    }
    panic!("the server has ended: {} {text}", process.has_ended() || process.kill())
}

/// Returns the command `dueday`, which charges through the Stripe API at the URL `base` with the API key `key`.
fn dueday_with_stripe(data: &Path, base: &str, key: &str) -> Command {
    let mut command = dueday(data);
    command.args(["--gateway", "stripe"]).env("STRIPE_API_BASE", base).env("STRIPE_SECRET_KEY", key);
    command
}

#[test]
fn month_is_charged_through_stripe_and_matches_its_lists() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("s.csv"));
    let mut stand_in = dueday(&folder.path().join("gateway"));
    let (_server, base) =
        start_server(stand_in.args(["--json", "gateway", "--like-stripe", "--gateway-port", "0"]), "gateway");
    let run = |arguments: &[&str]| output(dueday_with_stripe(&data, &base, KEY).args(arguments));
    let today = Utc::now().date_naive();
    let day = today.format("%-d");
    let rows: String = [
        ("acme", "12.99,EUR", "pm_card_visa"),
        ("bell", "57.500,KWD", "pm_card_visa"),
        ("cube", "500,JPY", "pm_card_authenticationRequired"),
    ]
    .map(|(account, price, method)| {
        format!(
            "{account},{account}@example.com,{account},,1,gold,Gold plan,{day},{price},cus_{account},{method},{today}\n"
        )
    })
    .concat();
    std::fs::write(&file, IMPORT_HEADER.to_owned() + &rows).unwrap();
    let (code, _, stderr) = run(&["import", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");

    let (code, stdout, stderr) = run(&["run", "payments"]);
    assert!(code == 0 && stdout.contains(": 3 due, 2 paid, 1 declined\n"), "{stdout}{stderr}");
    assert!(!format!("{stdout}{stderr}").contains(KEY), "the key is never printed");
    let (_, stdout, _) = run(&["run", "payments"]);
    assert!(stdout.contains(": 0 due"), "a second run charges nothing: {stdout}");
    let (_, receipts, _) = run(&["receipts", "bell"]);
    assert!(receipts.contains("57.500") && receipts.contains("pi_0000"), "{receipts}");
    let (code, stdout, stderr) = run(&["audit", "--gateway-list"]);
    assert!(code == 0 && stdout.contains("every invariant holds"), "{stdout}{stderr}");
    let (code, stdout, stderr) = run(&["reconcile"]);
    assert!(code == 0 && stdout.contains("no difference"), "no payment was made before: {stdout}{stderr}");
    let (code, _, stderr) = run(&["reconcile", "--from", &today.to_string()]);
    assert!(code == 2 && stderr.contains("an hour after its end in UTC"), "{code} {stderr}");
    let (_, receipts, _) = run(&["receipts", "bell", "--json"]);
    let receipt = serde_json::from_str::<Value>(&receipts).unwrap()[0]["id"].as_str().unwrap().to_owned();
    for amount in ["10.000", "10.000", "20.000"] {
        let (code, stdout, stderr) =
            run(&["refund", "bell", &receipt, "--amount", amount, "--reason", "a test", "--yes"]);
        assert!(code == 0 && stdout.starts_with(&format!("{amount} KWD of ")), "{stdout}{stderr}");
    }
    let (code, stdout, stderr) = run(&["audit", "--gateway-list"]);
    assert!(
        code == 0 && stdout.contains("every invariant holds"),
        "two refunds, as Stripe lists them: {stdout}{stderr}"
    );

    let (code, _, stderr) = output(dueday_with_stripe(&data, &base, "sk_test_other").args(["run", "payments"]));
    assert!(code != 0 && stderr.contains("refuses our requests: 401"), "{code} {stderr}");
    let (code, _, stderr) = output(dueday(&data).args(["--gateway", "stripe", "due"]));
    assert!(code == 2 && stderr.contains("STRIPE_SECRET_KEY must be set"), "{stderr}");
    let (code, _, stderr) = output(dueday(&data).args(["run", "payments"]));
    assert!(
        code != 0 && stderr.contains("stripe acct_standin"),
        "a run through another gateway must be refused: {code} {stderr}"
    );

    // While a server charges through Stripe, a command that only reads needs no key, and a command that would charge is
    // refused.
    let ports = ["--json", "--api-port", "0", "--dynamodb-port", "0", "--billing-time", "19:00"];
    let (_serving, _) = start_server(dueday_with_stripe(&data, &base, KEY).args(ports), "api");
    let (code, receipts, stderr) = output(dueday(&data).args(["receipts", "bell"]));
    assert!(code == 0 && receipts.contains("57.500"), "{stderr}");
    let (code, _, stderr) = output(dueday(&data).args(["run", "payments"]));
    assert!(code != 0 && stderr.contains("STRIPE_SECRET_KEY must be set"), "{stderr}");
}

#[test]
fn table_is_moved_to_a_restricted_key_that_may_not_read_its_account() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("s.csv"));
    let mut stand_in = dueday(&folder.path().join("gateway"));
    let (_server, base) =
        start_server(stand_in.args(["--json", "gateway", "--like-stripe", "--gateway-port", "0"]), "gateway");
    let secret = |arguments: &[&str]| output(dueday_with_stripe(&data, &base, KEY).args(arguments));
    let restricted = |arguments: &[&str]| output(dueday_with_stripe(&data, &base, RESTRICTED_KEY).args(arguments));
    let today = Utc::now().date_naive();
    let row = format!(
        "acme,acme@example.com,Acme,,1,gold,Gold plan,{},12.99,EUR,cus_acme,pm_card_visa,{today}\n",
        today.format("%-d")
    );
    std::fs::write(&file, IMPORT_HEADER.to_owned() + &row).unwrap();
    for arguments in [&["import", file.to_str().unwrap()][..], &["run", "payments"][..]] {
        let (code, _, stderr) = secret(arguments);
        assert_eq!(code, 0, "the first run records the Stripe account: {stderr}");
    }

    let (code, _, stderr) = restricted(&["run", "payments"]);
    let hints = ["lacks the permission rak_accounts_kyc_basic_read", "dueday move-gateway"];
    assert!(code != 0 && hints.iter().all(|hint| stderr.contains(hint)), "{code} {stderr}");
    let (code, _, stderr) = secret(&["charging", "off"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, stderr) = restricted(&["move-gateway"]);
    let moved = "moved from stripe acct_standin (test) to stripe cus_made000001 (test)";
    assert!(code == 0 && stdout.contains(moved), "{stdout}{stderr}");
    let (code, stdout, stderr) = restricted(&["move-gateway"]);
    assert!(code == 0 && stdout.contains("are made at stripe cus_made000001"), "repeated: {stdout}{stderr}");
    let (code, _, stderr) = secret(&["charging", "on"]);
    assert_eq!(code, 0, "{stderr}");
    for key in [RESTRICTED_KEY, KEY] {
        for arguments in [&["run", "payments"][..], &["audit", "--gateway-list"][..]] {
            let (code, stdout, stderr) = output(dueday_with_stripe(&data, &base, key).args(arguments));
            assert_eq!(code, 0, "{key} {arguments:?}: {stdout}{stderr}");
        }
    }
}
