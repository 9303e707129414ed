//! Tests of the error messages: each message states the problem, and the allowed values or the solution. No message
//! contains internal terms.

use crate::demo_folder::write_demo_folder;
use crate::terminal;

use std::io::pipe;
use std::path::Path;
use std::process::{Command, Stdio};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Subscription, SubscriptionId};
use emulator::Engine;
use store::Table;
use terminal::{dueday, output};
use testkit::{sample_account, sample_subscription};
use ulid::Ulid;

/// Terms of Rust, its libraries and the AWS SDK, which a user of the command cannot understand.
const LIBRARY_ERROR_TEXTS: [&str; 18] = [
    "input contains invalid characters",
    "input is out of range",
    "invalid digit found",
    "premature end of input",
    "invalid IP address syntax",
    "is not in ",
    "os error",
    "expected struct",
    "expected i64",
    "Expected num",
    "unhandled error",
    "service error",
    "dispatch failure",
    "Database::",
    "IMDS",
    "HTTP connector",
    "panicked",
    "<FOLDER>",
];

/// Asserts that `command` fails with a message that contains `words` and no internal terms.
fn assert_refused(command: &mut Command, words: &str) {
    let (code, stdout, stderr) = output(command);
    assert_eq!(code, 2, "{command:?}: {stdout}{stderr}");
    assert!(stderr.contains(words), "{command:?}: {stderr}");
    for term in LIBRARY_ERROR_TEXTS {
        assert!(!stderr.contains(term), "{command:?} prints {term:?}: {stderr}");
    }
}

#[test]
fn invalid_arguments_are_refused_with_the_allowed_values() {
    let folder = tempfile::tempdir().unwrap();
    let data = &folder.path().join("data");
    write_demo_folder(data);
    let simulate = ["simulate", "--from", "2026-01-01", "--months"];
    for (arguments, words) in [
        (vec!["due", "--date", "31.01.2027"], "'--date <DATE>': must be a date like 2027-01-31: year, month, day"),
        (vec!["due", "--date", "2027-02-29"], "must be a date like 2027-01-31"),
        (vec!["due", "--date", "2027-02"], "must be a date like 2027-01-31"),
        (vec!["run", "payments", "--date", "2026-02-30"], "must be a date like 2027-01-31"),
        (vec!["run", "payments", "--date", "9999-12-31"], "9999-12-31 lies in the future: today is"),
        (vec!["runs", "--date", "9999-12-31"], "9999-12-31 lies in the future: today is"),
        (vec!["accounts", "--limit", "-1"], "invalid value '-1' for '--limit <N>': must be a whole number from 1 to"),
        (
            vec!["refund", "x", "--reason", "x"],
            "invalid value 'x' for '<RECEIPT>': must be the number of a receipt, such as",
        ),
        (vec!["refund", "202601-7KQ29M-4T3XWA", "--id", "x"], "invalid value 'x' for '--id <ID>': must be a ULID"),
        (vec!["receipt", "show", "2026-03-31.01JZXCVBNM0123456789ABCDEF.gold"], "a receipt's id needs its account"),
        (vec!["accounts", "--endpoint", "nope"], "invalid value 'nope' for '--endpoint <URL>': must be a URL such as"),
        (vec!["accounts", "--mails-off", "failed"], "'--mails-off <KINDS>': must not contain failed: customers must"),
        (vec!["run", "invoices"], "[possible values: reminders, payments]"),
        (vec!["accounts", "--limit", "0"], "must be a whole number from 1 to"),
        (vec!["accounts", "--limit", "many"], "must be a whole number from 1 to"),
        ([&simulate[..], &["0"]].concat(), "must be a whole number from 1 to 600"),
        ([&simulate[..], &["1", "--faults", "2"]].concat(), "must be a fraction from 0 to 0.5, such as 0.02"),
        ([&simulate[..], &["1", "--faults", "0.1", "--seed", "x"]].concat(), "must be a whole number from 0 to"),
        ([&simulate[..], &["1", "--file", "nowhere.csv"]].concat(), "nowhere.csv: No such file"),
        (vec!["--billing-time", "03:00"], "must be from 04:00 to 19:59"),
        (vec!["--billing-time", "20:00"], "must be from 04:00 to 19:59"),
        (vec!["--billing-time", "3"], "must be a time like 06:00"),
        (vec!["--api-port", "70000"], "must be a port from 0 to 65535"),
        (vec!["--listen", "localhost"], "must be an IP address of this machine, such as 127.0.0.1"),
        (vec!["--listen", "192.0.2.1", "--api-port", "0"], "--listen must be an address of this machine"),
        (vec!["--mail-from", "nonsense"], "the sender must be an address, or a name and an address in <>"),
        (
            vec!["due", "--gateway", "127.0.0.1:7879"],
            "'--gateway <GATEWAY>': must be stripe, sandbox, or an https URL such as https://gateway.example.com",
        ),
        (vec!["due", "--gateway", "http://me:secret@127.0.0.1"], "must be stripe, sandbox, or an https URL such as"),
        (vec!["due", "--gateway", "http://gateway.example.com"], "must be stripe, sandbox, or an https URL such as"),
        (vec!["due", "--gateway", "http://127.0.0.1:78790"], "must be stripe, sandbox, or an https URL such as"),
        (vec!["due", "--time-zone", "Mars"], "must be an IANA time zone like Europe/Berlin"),
        (vec!["due", "--retry-gaps", "9,9,9,9"], "must be gaps in days such as 1,2,2,2"),
        (vec!["due", "--shards", "x"], "must be a whole number from 1 to 1000"),
        (vec!["due", "--catch-up", "all"], "must be each or latest"),
        (vec!["why"], "Usage: dueday why [OPTIONS] <ACCOUNT> [SUBSCRIPTION]"),
        (vec!["--data", "elsewhere", "why"], "Usage: dueday why [OPTIONS] <ACCOUNT> [SUBSCRIPTION]"),
        (vec!["subscription", "pause"], "Usage: dueday subscription pause [OPTIONS] <ACCOUNT> [SUBSCRIPTION]"),
        (vec!["demo", "--table", "payments"], "leave out --table"),
    ] {
        assert_refused(dueday(data).args(arguments), words);
    }
    for (variable, value, words) in [
        ("DUEDAY_SHARDS", "x", "DUEDAY_SHARDS must be a whole number from 1 to 1000, not \"x\""),
        ("DUEDAY_MAIL_FROM", "nonsense", "DUEDAY_MAIL_FROM the sender must be an address"),
        (
            "DUEDAY_GATEWAY",
            "nowhere",
            "DUEDAY_GATEWAY must be stripe, sandbox, or an https URL such as https://gateway.example.com",
        ),
    ] {
        assert_refused(dueday(data).arg("due").env(variable, value), words);
    }
}

#[test]
fn unreachable_aws_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let due_on_aws = || {
        let mut command = dueday(folder.path());
        command
            .args(["due", "--table", "payments"])
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("HOME", folder.path());
        command
    };
    assert_refused(&mut due_on_aws(), "no AWS region is set: set AWS_REGION");
    assert_refused(
        due_on_aws().env("AWS_REGION", "eu-west-1"),
        "no AWS credentials were found: sign in as for the AWS CLI",
    );
    assert_refused(
        due_on_aws()
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .args(["--endpoint", "http://127.0.0.1:9"]),
        "DynamoDB does not respond at http://127.0.0.1:9. Check --endpoint, the region and the network: Connection refused",
    );
}

#[test]
fn reading_commands_refuse_a_missing_folder_and_create_none() {
    let folder = tempfile::tempdir().unwrap();
    let data = &folder.path().join("none");
    let id = "01JZXCVBNM0123456789ABCDEF";
    for arguments in [
        vec!["due"],
        vec!["accounts"],
        vec!["subscriptions"],
        vec!["receipts", "acme"],
        vec!["subscription", "pause", "acme", id],
        vec!["why", "acme", id],
        vec!["resolve", "acme", id, "--not-charged", "--reason", "x"],
        vec!["runs"],
        vec!["run", "payments"],
        vec!["charging", "off"],
        vec!["settings", "set", "max-charges", "1"],
        vec!["export", "accounts"],
    ] {
        let words = format!("there is no data in the folder {}. Choose the data folder with --data", data.display());
        assert_refused(dueday(data).args(arguments), &words);
        assert!(!data.exists(), "a folder was created");
    }
    assert_refused(dueday(data).arg("due"), &format!("or create one with `dueday --data {} demo`", data.display()));
}

#[tokio::test]
async fn commands_refuse_data_that_is_damaged_or_of_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    write_demo_folder(data);
    let file = data.join("dynamodb.sqlite");
    let engine = Engine::open(&file).unwrap();
    let raise = engine.client().update_item().table_name("dueday").update_expression("SET #F = :f");
    let settings = || AttributeValue::S("CTL#settings".to_owned());
    let raised = raise
        .key("PK", settings())
        .key("SK", settings())
        .expression_attribute_names("#F", "Format")
        .expression_attribute_values(":f", AttributeValue::N("0".to_owned()));
    raised.send().await.unwrap();
    drop(engine);
    let words = format!("another version of dueday wrote the data in the folder {}", data.display());
    assert_refused(dueday(data).arg("due"), &words);
    assert_refused(dueday(data).args(["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0"]), &words);
    let engine = Engine::open(&file).unwrap();
    let delete = engine.client().delete_item().table_name("dueday").key("PK", settings()).key("SK", settings());
    delete.send().await.unwrap();
    drop(engine);
    assert_refused(dueday(data).arg("status"), "the settings of the table are lost: restore the data folder");
    for (bytes, words) in [
        (&b""[..], "dynamodb.sqlite is empty: its data is lost. Restore it from a backup"),
        (b"this is not a database, it is a text of some length", "is not a data file of dueday, or is damaged"),
        (b"SQLite format 3\0 and then nothing that SQLite would know", "dynamodb.sqlite is damaged. Restore it"),
    ] {
        for left in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(data.join(format!("dynamodb.sqlite{left}")));
        }
        std::fs::write(&file, bytes).unwrap();
        assert_refused(dueday(data).arg("due"), words);
    }
    std::fs::write(data.join("gateway-ledger.jsonl"), "{\"event\":\"payment\"}\n").unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_refused(dueday(data).arg("demo"), "gateway-ledger.jsonl is damaged at line 1");
    let check = ["gateway", "check", "https://gateway.example.com"];
    assert_refused(dueday(data).args(check), "DUEDAY_GATEWAY_KEY must be set");
    assert_refused(
        dueday(data).args(check).env("DUEDAY_GATEWAY_KEY", "secret"),
        "DUEDAY_GATEWAY_KEY must contain one key",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    // The columns are: the maximum file size in blocks, and words of the message. A write beyond this size fails, as on
    // a full disk.
    for (blocks, words) in [
        ("20", "Free space on the disk of the data folder"),
        ("120", "Is its disk full?"),
        ("1000", "Free space on the disk of the data folder"),
    ] {
        let data = folder.path().join(blocks);
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" demo");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_dueday")]).env_clear().env("DUEDAY_DATA", data);
        assert_refused(&mut command, words);
    }
}

#[tokio::test]
async fn subscriptions_lists_readable_items_and_reports_an_unreadable_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    write_demo_folder(data);
    let engine = Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    let table = Table::new(engine.client(), "dueday");
    table.create_account(&sample_account()).await.unwrap();
    let today = chrono::Utc::now().date_naive();
    for n in 1..=2u128 {
        let id = SubscriptionId::new(Ulid::from_parts(1, n));
        table.create_subscription(&Subscription { id, ..sample_subscription(3, today) }, None).await.unwrap();
    }
    let sk = format!("SUB#{}#SKU#gold", Ulid::from_parts(1, 1));
    let spoil = table.client().update_item().table_name("dueday").update_expression("SET PaymentAmount = :amount");
    let spoil = spoil.key("PK", AttributeValue::S("ACC#acme".to_owned())).key("SK", AttributeValue::S(sk.clone()));
    spoil.expression_attribute_values(":amount", AttributeValue::S("lots".to_owned())).send().await.unwrap();
    drop((table, engine));
    let (code, stdout, stderr) = output(dueday(data).args(["subscriptions", "acme"]));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains(&Ulid::from_parts(1, 2).to_string()) && stdout.ends_with("1 subscription\n"), "{stdout}");
    let words = format!("the item ACC#acme {sk} cannot be read: its attribute PaymentAmount must be a number (N)");
    assert_eq!(stderr, format!("unreadable: {words}\n"));
}

/// Runs the command twice. In the first run, standard output is a closed pipe; in the second run, standard output and
/// standard error are closed pipes. Returns the exit code of the second run and the messages of the first run.
fn run_with_closed_output(data: &Path, arguments: &[&str]) -> (i32, String) {
    let (reader, stdout) = pipe().unwrap();
    drop(reader);
    let (_, _, stderr) = output(dueday(data).args(arguments).stdout(Stdio::from(stdout.try_clone().unwrap())));
    let code = dueday(data).args(arguments).stdout(Stdio::from(stdout.try_clone().unwrap())).stderr(stdout).status();
    (code.unwrap().code().unwrap_or(-1), stderr)
}

#[test]
fn closed_output_ends_every_command_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    write_demo_folder(data);
    let serve = ["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0"];
    for arguments in [
        vec!["demo"],
        vec!["completions", "bash"],
        serve.to_vec(),
        vec!["gateway", "--gateway-port", "0"],
        vec!["due"],
        vec!["charging"],
        vec!["shards"],
        vec!["subscriptions"],
        vec!["export", "receipts"],
        vec!["--help"],
    ] {
        let (code, stderr) = run_with_closed_output(data, &arguments);
        assert_eq!((code, stderr.as_str()), (0, ""), "{arguments:?}");
    }
    // The exit code can be 0 or 1: it depends on the time of day whether the runs of today are complete.
    let (code, stderr) = run_with_closed_output(data, &["runs"]);
    assert!((code == 0 || code == 1) && stderr.is_empty(), "{code}: {stderr}");
    let (code, _) = run_with_closed_output(&data.join("new"), &["demo", "--gateway", "http://127.0.0.1:9"]);
    assert_eq!(code, 2);
}

#[test]
fn help_does_not_wrap_lists_and_examples() {
    let folder = tempfile::tempdir().unwrap();
    let help = |command: &str, columns: &str| {
        let (code, text, _) =
            output(dueday(folder.path()).args(command.split_whitespace()).arg("-h").env("COLUMNS", columns));
        assert_eq!(code, 0);
        // The footer is the text after the last option.
        let lines: Vec<&str> = text.lines().collect();
        let footer = lines.iter().rposition(|line| line.starts_with("      ")).unwrap_or_default();
        lines[footer + 1..].join("\n")
    };
    for command in
        ["", "run", "due", "import", "accounts", "subscriptions", "receipts", "subscription", "why", "resolve"]
            .into_iter()
            .chain(["runs", "charging", "gateway", "export", "completions", "simulate"])
    {
        let (narrow, wide) = (help(command, "80"), help(command, "100"));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let indented =
            |text: &str| text.lines().filter(|line| line.starts_with(' ')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(indented(&narrow), indented(&wide), "an example or a list is wrapped: {narrow}");
        for text in [(&narrow, 80), (&wide, 100)] {
            let lines: Vec<&str> = text.0.lines().collect();
            for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with(char::is_alphanumeric)))
            {
                let next = pair[1].split(' ').next().unwrap_or_default();
                assert!(pair[0].len() + 1 + next.len() > text.1, "{command}: a line is wrapped too early: {pair:?}");
            }
        }
    }
}

#[test]
fn errors_of_commands_are_json_with_json() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = output(dueday(&folder.path().join("data")).args(["accounts", "acme", "--json"]));
    let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert!(code == 2 && error["error"]["message"].as_str().unwrap().starts_with("there is no data"), "{stderr}");
    let (code, _, stderr) = output(dueday(&folder.path().join("data")).args(["forecast", "--months", "abc", "--json"]));
    let error: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    let expected = "invalid value 'abc' for '--months <N>': must be a whole number from 1 to 12";
    assert!(code == 2 && error["error"]["message"].as_str().unwrap().starts_with(expected), "{stderr}");
}
