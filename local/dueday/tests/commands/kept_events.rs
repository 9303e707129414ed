//! Tests of the stored events in a local installation: each event is stored once, also after kills and restarts of the
//! server, and `dueday listen` prints the new events.

use crate::demo_folder::write_demo_folder;
use crate::process;
use crate::server::Server;
use crate::terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use process::Process;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use terminal::{dueday, output};
use testkit::short_or_long;

/// The number of subscriptions in the imported file. Each account has three subscriptions.
const SUBSCRIPTIONS: usize = 150;

/// Writes a file for `dueday import` with `SUBSCRIPTIONS` rows. Returns its path.
fn write_csv(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("subscriptions.csv");
    let rows = (0..SUBSCRIPTIONS).map(|n| {
        format!(
            "account-{},a@example.com,Acme,,{n},gold-{},Gold plan,{},12.99,EUR,cus_{n},pm_card_visa,\n",
            n / 3,
            n % 3,
            n % 28 + 1
        )
    });
    let head = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n";
    std::fs::write(&path, head.to_owned() + &rows.collect::<String>()).unwrap();
    path
}

/// Returns the command that imports the file `csv`.
fn import_command(data: &Path, csv: &Path) -> Command {
    let mut command = dueday(data);
    command.args(["import", csv.to_str().unwrap()]);
    command
}

/// Returns the stored events, as `dueday events` lists them.
fn stored_events(data: &Path, arguments: &[&str]) -> Vec<Value> {
    let (code, stdout, stderr) = output(dueday(data).args(["events", "--json"]).args(arguments));
    assert_eq!(code, 0, "{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the number of events with the type `name`.
fn count_of_type(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["type"] == name).count()
}

#[test]
fn events_are_stored_once_although_the_server_is_killed_repeatedly() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let csv = write_csv(folder.path());
    let seed = std::env::var("DUEDAY_KILL_SEED").map_or(7, |seed| seed.parse().unwrap());
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let length = || {
        let files = std::fs::read_dir(data.join("events")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum::<u64>()
    };
    // The number of times that the server is killed.
    for _ in 0..short_or_long(5, 12) {
        let mut server = Server::start(&data, &[]);
        let mut importing = Process::start(import_command(&data, &csv).stdout(Stdio::null()).stderr(Stdio::null()));
        let until = length() + dice.random_range(1..20_000);
        while length() < until && !importing.has_ended() {
            std::thread::yield_now();
        }
        assert!(server.process.kill());
    }
    let (code, _, stderr) = output(&mut import_command(&data, &csv));
    assert_eq!(code, 0, "{stderr}");
    let events = stored_events(&data, &[]);
    let ids: BTreeSet<_> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len(), "seed {seed}: an event is stored twice");
    assert_eq!(
        (count_of_type(&events, "account.created"), count_of_type(&events, "subscription.created")),
        (SUBSCRIPTIONS / 3, SUBSCRIPTIONS),
        "seed {seed}"
    );
    let mut versions = BTreeMap::new();
    for event in &events {
        let item = (event["subject"].to_string(), event["data"]["subscription"].to_string());
        // Depending on the date, the server's daily runs add events, such as events about reminders. Some of these
        // events have no version.
        let Some(version) = event["data"]["version"].as_u64() else { continue };
        assert!(versions.insert(item, version).is_none_or(|before| before <= version), "seed {seed}: {event}");
    }
    assert_eq!(stored_events(&data, &[]), events, "a second list is the same");
}

#[test]
fn commands_refuse_the_stored_events_of_a_replaced_table() {
    let folder = tempfile::tempdir().unwrap();
    let (data, csv) = (folder.path().join("data"), write_csv(folder.path()));
    let (code, _, stderr) = output(&mut import_command(&data, &csv));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(count_of_type(&stored_events(&data, &[]), "subscription.created"), SUBSCRIPTIONS);
    for file in std::fs::read_dir(&data).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_str().unwrap().starts_with("dynamodb.sqlite") {
            std::fs::remove_file(file).unwrap();
        }
    }
    for command in [&mut import_command(&data, &csv), dueday(&data).arg("events")] {
        let (code, _, stderr) = output(command);
        assert!(code != 0 && stderr.contains("Move the folder of the events away"), "{code} {stderr}");
    }
    std::fs::rename(data.join("events"), data.join("events of before")).unwrap();
    let (code, _, stderr) = output(&mut import_command(&data, &csv));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(count_of_type(&stored_events(&data, &[]), "subscription.created"), SUBSCRIPTIONS);
}

#[test]
fn events_can_be_filtered_by_day_account_and_type() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_demo_folder(&data);
    let all = stored_events(&data, &[]);
    let bakery = stored_events(&data, &["--account", "corner-bakery"]);
    assert!(!bakery.is_empty() && bakery.iter().all(|event| event["subject"] == "corner-bakery"));
    let declined = stored_events(&data, &["--type", "payment.declined", "--type", "payment.succeeded"]);
    assert_eq!(declined.len(), count_of_type(&all, "payment.declined") + count_of_type(&all, "payment.succeeded"));
    let day = |event: &Value| event["time"].as_str().unwrap()[..10].to_owned();
    let first = day(&bakery[1]);
    let of_day = stored_events(&data, &["--from", &first, "--to", &first]);
    assert_eq!(of_day.len(), all.iter().filter(|event| day(event) == first).count());
    assert!(!of_day.is_empty());

    let (code, stdout, _) = output(dueday(&data).args(["events", "--account", "corner-bakery"]));
    let paid = stdout.lines().find(|line| line.contains("payment.succeeded")).unwrap();
    assert_eq!(code, 0);
    assert!(paid.contains("  payment.succeeded         corner-bakery     24.00 EUR, House Blend 1 kg, due "), "{paid}");

    for (arguments, expected) in [
        (["--type", "payment.lost"], "must be one of account.created, "),
        (["--from", "2027-02-30"], "must be a date like 2027-01-31"),
    ] {
        let (code, _, stderr) = output(dueday(&data).arg("events").args(arguments));
        assert!(code == 2 && stderr.contains(expected), "{stderr}");
    }
    let (code, _, stderr) = output(dueday(&data).args(["events", "--from", "2027-02-02", "--to", "2027-02-01"]));
    assert!(code == 2 && stderr.contains("--from 2027-02-02 is after --to 2027-02-01"), "{stderr}");
}

#[test]
fn listen_prints_only_new_events() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_demo_folder(&data);
    let (code, _, stderr) = output(dueday(&data).arg("listen"));
    assert!(code == 2 && stderr.contains("no server uses this data folder: start `dueday"), "{stderr}");

    // `listen` does not print the events that the demo stored.
    assert!(!stored_events(&data, &[]).is_empty());
    let _server = Server::start(&data, &[]);
    let mut listening = dueday(&data);
    listening.args(["listen", "--json", "--type", "account.created"]);
    let mut listener = Process::start(listening.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut messages = BufReader::new(listener.0.stderr.take().unwrap()).lines();
    assert!(messages.next().unwrap().unwrap().starts_with("Listening."));
    let (code, _, stderr) = output(&mut import_command(&data, &write_csv(folder.path())));
    assert_eq!(code, 0, "{stderr}");
    let lines = BufReader::new(listener.0.stdout.take().unwrap()).lines();
    let accounts: BTreeSet<String> = lines
        .take(SUBSCRIPTIONS / 3)
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["subject"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(accounts, (0..SUBSCRIPTIONS / 3).map(|n| format!("account-{n}")).collect());
}
