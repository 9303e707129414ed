//! The jobs of a day in support, each with the commands that do it: at most two.

use crate::gateway::Gateway;
use crate::terminal;

use std::path::Path;

use chrono::{Datelike, Days, Utc};
use regex::Regex;
use serde_json::Value;
use terminal::{dueday, output};

/// A job with its commands. Words in braces are replaced by ids of [`Shop`]. Every command must succeed, and the output
/// of the last command must contain the text.
type Job = (&'static str, &'static [&'static str], &'static str);

const JOBS: [Job; 22] = [
    ("find a customer by e-mail address", &["accounts --email BELL@example.com"], "Bell GmbH"),
    ("find a payment by the number on the receipt", &["receipt show {number}"], "Account:      acme"),
    ("find a payment by the gateway's id", &["receipts --payment {payment}"], "Gold plan"),
    ("find a subscription by its id in the earlier system", &["subscriptions --external-id sub-2"], "bell"),
    (
        "find a customer by the id of a subscription in the earlier system",
        &["accounts --external-id sub-2"],
        "Bell GmbH",
    ),
    ("say why a customer was charged", &["subscriptions acme", "why acme {acme}"], "charged on {today}: 12.99 EUR"),
    ("say why a customer was not charged", &["subscriptions bell", "why bell {bell}"], "declined"),
    ("refund a part of a payment", &["refund {number} --amount 5.00 --yes"], "5.00 EUR of {number} was refunded"),
    ("send the receipt again", &["receipt resend {number}"], "was sent"),
    ("refund the rest", &["refund {number} --yes"], "7.99 EUR of {number} was refunded"),
    ("list the customers who have not paid", &["subscriptions --status past_due"], "1 subscription\n"),
    ("charge a declined payment again", &["subscription retry bell {bell}"], "{today}  {today}    sub-2"),
    ("pause a subscription", &["subscription pause acme {acme}"], "paused"),
    ("resume a subscription", &["subscription resume acme {acme}"], "active"),
    ("cancel at the end of the paid month", &["subscription cancel acme {acme} --at-period-end"], "cancelled on"),
    ("undo a cancellation", &["subscription uncancel acme {acme}"], "active"),
    ("change the price", &["subscription change acme {acme} --price 14.99"], "14.99  EUR"),
    ("change the address", &["account change acme --email books@acme.example.com"], "books@acme.example.com"),
    (
        "let the customer change the card",
        &["account card-link acme --api https://shop.example.com/api"],
        "The page closes on ",
    ),
    ("state the net revenue of a month", &["report --from {month} --to {today}"], "net: 0.00 EUR"),
    ("give the bookkeeper a month", &["export receipts --from {month} --to {today}"], "{number},Acme Ltd,"),
    ("cancel now", &["subscription cancel acme {acme} --yes"], "cancelled"),
];

/// A data folder with two customers after the payment run of today: `acme` has paid, the card of `bell` was declined.
struct Shop {
    folder: tempfile::TempDir,
    gateway: Gateway,
    words: Vec<(&'static str, String)>,
}

impl Shop {
    fn open() -> Self {
        let today = Utc::now().date_naive();
        let csv = format!(
            "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n\
             acme,a@example.com,Acme Ltd,,sub-1,gold,Gold plan,{0},12.99,EUR,cus_1,pm_card_visa,{today}\n\
             bell,Bell@example.com,Bell GmbH,,sub-2,gold,Gold plan,{0},12.99,EUR,cus_2,pm_card_chargeDeclined,{today}\n",
            today.day()
        );
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(&folder.path().join("gateway"));
        let mut shop = Self { folder, gateway, words: Vec::new() };
        let file = shop.folder.path().join("subscriptions.csv");
        std::fs::write(&file, csv).unwrap();
        shop.run(&format!("import {}", file.display()));
        shop.run("run payments");
        let first = |command: &str| -> Value { serde_json::from_str::<Value>(&shop.run(command)).unwrap()[0].clone() };
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let receipt = first("receipts acme --json");
        shop.words = vec![
            ("{number}", text(&receipt["number"])),
            ("{payment}", text(&receipt["gateway_payment_id"])),
            ("{acme}", text(&first("subscriptions acme --json")["id"])),
            ("{bell}", text(&first("subscriptions bell --json")["id"])),
            ("{today}", today.to_string()),
            ("{month}", (today - Days::new(u64::from(today.day0()))).to_string()),
        ];
        shop
    }

    /// Returns `output` with placeholders for everything that differs from one test run to the next.
    fn without_changing_values(&self, output: &str) -> String {
        let is_id = |word: &&(&str, String)| !["{today}", "{month}"].contains(&word.0);
        let ids =
            self.words.iter().filter(is_id).fold(output.to_owned(), |text, (word, value)| text.replace(value, word));
        let text =
            ids.replace(&self.gateway.url, "{gateway}").replace(&self.folder.path().display().to_string(), "{folder}");
        let patterns = [
            (r"\d{4}-\d{2}-\d{2}", "{date}"),
            (r"(T|\b)\d{2}:\d{2}(:\d{2})?(\.\d+)?Z?", " {time}"),
            (r"[0-7][0-9A-Z]{25}", "{ulid}"),
            (r"(active|past_due),\d{1,2},", "$1,{day},"),
        ];
        let replace = |text: String, (pattern, word): (&str, &str)| {
            Regex::new(pattern).unwrap().replace_all(&text, word).into_owned()
        };
        patterns.into_iter().fold(text, replace)
    }

    fn fill(&self, text: &str) -> String {
        self.words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }

    /// Runs a command that must succeed. Returns its output.
    fn run(&self, command: &str) -> String {
        let (code, output) = self.run_any(command);
        assert!(code == 0, "{command}: exit code {code}\n{output}");
        output
    }

    /// Runs a command. Returns its exit code and its output.
    fn run_any(&self, command: &str) -> (i32, String) {
        let data: &Path = &self.folder.path().join("data");
        let arguments = self.fill(command);
        let gateway = ["--gateway", &self.gateway.url];
        let (code, stdout, stderr) = output(dueday(data).args(arguments.split(' ')).args(gateway));
        (code, stdout + &stderr)
    }
}

#[test]
fn each_job_of_support_needs_at_most_two_commands() {
    let shop = Shop::open();
    let mut transcript = String::new();
    for (job, commands, expected) in JOBS {
        assert!(commands.len() <= 2, "{job}: {commands:?}");
        let outputs: Vec<String> = commands.iter().map(|command| shop.run(command)).collect();
        transcript += &format!("== {job}\n");
        for (command, output) in commands.iter().zip(&outputs) {
            transcript += &format!("$ dueday {command}\n{}\n", shop.without_changing_values(output));
        }
        let (last, expected) = (outputs.last().unwrap(), shop.fill(expected));
        assert!(last.contains(&expected), "{job}: {commands:?} must print {expected:?}, not\n{last}");
    }
    insta::assert_snapshot!("support_jobs", transcript);
}

/// The commands that an operator runs to look at the system.
const LOOKS: [&str; 23] = [
    "accounts",
    "subscriptions",
    "receipts acme",
    "run reminders",
    "run payments",
    "reshard",
    "confirm-clock",
    "due",
    "due --json",
    "runs",
    "runs payments --json",
    "report",
    "audit",
    "audit --gateway-list",
    "findings",
    "events --account acme",
    "events --type payment.succeeded --json",
    "shards",
    "charging",
    "export accounts",
    "export subscriptions",
    "export receipts",
    "orders list",
];

#[test]
fn output_of_commands_that_look_at_the_system_matches_its_snapshot() {
    let shop = Shop::open();
    shop.run("run reminders");
    let transcript =
        LOOKS.map(|command| format!("$ dueday {command}\n{}\n", shop.without_changing_values(&shop.run(command))));
    insta::assert_snapshot!("looks", transcript.concat());
}

/// Commands of which the test keeps the exit code and the output: some of them are refused.
const OTHERS: [&str; 10] = [
    "resolve acme {acme} --not-charged",
    "move-gateway",
    "findings resolve acme {payment} --close --because closed",
    "charging off",
    "run payments",
    "charging on",
    "shards set 2",
    "shards set 8",
    "orders stock nothing",
    "listen --forward-to nowhere",
];

#[test]
fn output_of_other_commands_matches_its_snapshot() {
    let shop = Shop::open();
    let transcript = OTHERS.map(|command| {
        let (code, output) = shop.run_any(command);
        format!("$ dueday {command}\n{}exit code {code}\n\n", shop.without_changing_values(&output))
    });
    insta::assert_snapshot!("others", transcript.concat());
}

#[test]
fn output_of_the_demo_and_of_a_simulation_matches_its_snapshot_except_for_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo.csv");
    let simulate = ["simulate", "--from", "2027-01-01", "--months", "2", "--file", demo];
    let transcript = [&["demo"][..], &simulate].map(|arguments| {
        let (code, stdout, _) = output(dueday(&data).args(arguments));
        assert_eq!(code, 0, "{arguments:?}: {stdout}");
        let text = stdout.replace(&folder.path().display().to_string(), "{folder}");
        let text = match arguments {
            ["simulate", ..] => text,
            // The number of payments depends on the day.
            _ => Regex::new(r"\d+").unwrap().replace_all(&text, "9").into_owned(),
        };
        format!("$ dueday {}\n{text}\n", arguments[0])
    });
    insta::assert_snapshot!("demo", transcript.concat());
}
