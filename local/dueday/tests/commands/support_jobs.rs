//! Tests of the jobs of a support employee: for each job, at most two commands are needed.

use crate::shop::Shop;

/// A job: its name, its commands, and a text. Placeholders in braces are replaced by values of [`Shop`]. Every command
/// must succeed, and the output of the last command must contain the text.
type Job = (&'static str, &'static [&'static str], &'static str);

/// The jobs of a support employee, in the sequence in which the test runs their commands.
const JOBS: [Job; 23] = [
    ("find a customer by email address", &["accounts --email BELL@example.com"], "Bell GmbH"),
    ("find a payment by the number on the receipt", &["receipt show {number}"], "Account:      acme"),
    ("find a payment by the gateway's id", &["receipts --payment {payment}"], "Gold plan"),
    ("find a subscription by its id in the earlier system", &["subscriptions --external-id sub-2"], "bell"),
    (
        "find a customer by the id of a subscription in the earlier system",
        &["accounts --external-id sub-2"],
        "Bell GmbH",
    ),
    ("say why a customer was charged", &["why acme"], "charged on {today}: 12.99 EUR"),
    ("say why a customer was not charged", &["why bell"], "declined"),
    ("answer \"I was charged twice\"", &["accounts --email a@example.com", "receipts acme"], "1 receipt\n"),
    (
        "refund a part of a payment",
        &["refund {number} --amount 5.00 --reason ticket-4711 --yes"],
        "5.00 EUR of {number} was refunded",
    ),
    ("send the receipt again", &["receipt resend {number}"], "was sent"),
    ("refund the rest", &["refund {number} --reason ticket-4711 --yes"], "7.99 EUR of {number} was refunded"),
    ("list the customers who have not paid", &["subscriptions --status past_due"], "1 subscription\n"),
    ("charge a declined payment again", &["subscription retry bell"], "{today}  {today}                    sub-2"),
    ("pause a subscription", &["subscription pause acme"], "paused"),
    ("resume a subscription", &["subscription resume acme sub-1"], "active"),
    ("cancel at the end of the paid month", &["subscription cancel acme {acme} --at-period-end"], "ends on"),
    ("undo a cancellation", &["subscription uncancel acme {acme}"], "active"),
    ("change the price", &["subscription change acme {acme} --price 14.99"], "14.99  EUR"),
    ("change the address", &["account change acme --email books@acme.example.com"], "books@acme.example.com"),
    (
        "let the customer change the card",
        &["account card-link acme --api https://shop.example.com/api"],
        "The page closes on ",
    ),
    ("state the net revenue of a month", &["report --from {month} --to {today}"], "net: 0.00 EUR"),
    ("give the bookkeeper a month", &["export receipts --from {month} --to {today}"], r#""{number}","Acme Ltd","#),
    ("cancel now", &["subscription cancel acme {acme} --yes"], "cancelled"),
];

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
        let (last, expected) = (outputs.last().unwrap(), shop.fill_placeholders(expected));
        assert!(last.contains(&expected), "{job}: {commands:?} must print {expected:?}, not\n{last}");
    }
    insta::assert_snapshot!("support_jobs", transcript);
}

#[test]
fn account_is_exported_and_erased_and_its_receipts_stay() {
    let shop = Shop::open();
    let exported: serde_json::Value = serde_json::from_str(&shop.run("account export acme")).unwrap();
    let receipts = exported["receipts"].as_array().unwrap().len();
    assert!(receipts > 0 && exported["account"]["name"] == "Acme Ltd", "{exported}");
    shop.run("subscription cancel acme {acme} --yes");
    let erased = shop.run("account erase acme --yes");
    assert!(erased.ends_with("The account acme is erased.\n"), "{erased}");
    let again: serde_json::Value = serde_json::from_str(&shop.run("account erase acme --yes --json")).unwrap();
    assert!(again["erased_at"].is_string() && again["step"].is_null(), "{again}");
    let left: serde_json::Value = serde_json::from_str(&shop.run("account export acme")).unwrap();
    assert_eq!((&left["account"], left["receipts"].as_array().unwrap().len()), (&serde_json::Value::Null, receipts));
    let accounts = shop.run("accounts");
    assert!(accounts.contains("Bell GmbH") && !accounts.contains("Acme Ltd"), "{accounts}");
    let audit = shop.run("audit");
    assert!(audit.contains("every invariant holds"), "{audit}");
    let event = shop.run("events --account acme");
    assert!(event.contains("account.erased"), "{event}");
    // The pages of deleted items and the stream would otherwise keep the former items.
    for file in ["dynamodb.sqlite", "dynamodb.sqlite-wal"] {
        let bytes = std::fs::read(shop.folder.path().join("data").join(file)).unwrap_or_default();
        for erased in ["Acme Ltd", "a@example.com", "cus_1"] {
            assert!(!bytes.windows(erased.len()).any(|part| part == erased.as_bytes()), "{erased} is in {file}");
        }
    }
}
