//! Tests of prices that Stripe can never charge: the import and the price change refuse them, and the audit finds older
//! ones.

use crate::file;
use crate::terminal;

use std::path::Path;
use std::process::Command;

use file::{HEADER, read_rejects, stored_subscriptions, write_file};
use serde_json::Value;
use terminal::{dueday, output};

/// Returns the command `dueday` on `folder/data`, which charges through Stripe. No server of Stripe is reachable.
fn dueday_with_stripe(folder: &Path) -> Command {
    let mut command = dueday(&folder.join("data"));
    command.args(["--gateway", "stripe"]);
    command.env("STRIPE_API_BASE", "http://127.0.0.1:9").env("STRIPE_SECRET_KEY", "sk_test_unused");
    command
}

/// Returns the text of a CSV file with one subscription for each price, such as `12.99,EUR`.
fn csv_with_prices(prices: &[&str]) -> String {
    let row = |(n, price): (usize, &&str)| {
        format!("a{n},a{n}@example.com,Customer,,{n},gold,Gold plan,31,{price},cus_1,pm_card_visa,\n")
    };
    format!("{HEADER}\n{}", prices.iter().enumerate().map(row).collect::<String>())
}

#[test]
fn import_rejects_prices_that_stripe_can_never_charge_also_in_a_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let prices = ["57.505,KWD", "1.005,IQD", "0.10,USD", "1000000.00,USD", "57.510,KWD", "0.50,USD"];
    let path = write_file(folder, "s.csv", csv_with_prices(&prices));
    for (flags, stored) in [(&["--dry-run"][..], 0), (&[], 2)] {
        let (code, stdout, stderr) =
            output(dueday_with_stripe(folder).arg("import").arg(&path).arg("--json").args(flags));
        let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
        assert_eq!((code, &report["created"], &report["rejected"]), (1, &2.into(), &4.into()), "{flags:?}: {report}");
        let step =
            "must be a multiple of 0.010 KWD, because Stripe accepts no other amounts in KWD; for example 57.510 KWD";
        let expected = [
            ["2", "amount", "57.505", step],
            ["3", "currency", "IQD", "must be in a currency that Stripe accepts; Stripe does not accept IQD"],
            ["4", "amount", "0.10", "must be at least 0.50 USD, the smallest amount in USD that Stripe accepts"],
            [
                "5",
                "amount",
                "1000000.00",
                "must be at most 999999.99 USD, the largest amount in USD that Stripe accepts",
            ],
        ];
        assert_eq!(read_rejects(&folder.join("s.rejects.csv")), expected, "{flags:?}");
        assert_eq!(stored_subscriptions(folder).len(), stored);
    }
}

#[test]
fn imported_price_stays_unchanged_and_is_a_finding_of_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = write_file(folder, "s.csv", csv_with_prices(&["57.505,KWD", "12.99,EUR"]));
    let (code, _, stderr) = output(dueday(&folder.join("data")).arg("import").arg(&path));
    assert_eq!(code, 0, "the sandbox accepts every amount: {stderr}");
    let (code, stdout, stderr) = output(dueday_with_stripe(folder).arg("import").arg(&path));
    assert_eq!(code, 0, "a subscription that exists is not touched: {stdout}{stderr}");
    let (code, stdout, stderr) = output(dueday(&folder.join("data")).arg("audit"));
    assert_eq!(code, 0, "{stdout}{stderr}");

    let (code, stdout, stderr) = output(dueday_with_stripe(folder).args(["audit", "--json"]));
    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    assert_eq!((code, &report["violations"]), (1, &1.into()), "{report}");
    let broken = &report["broken"][0];
    let what = "the price 57.505 KWD must be a multiple of 0.010 KWD, because Stripe accepts no other amounts in KWD; for \
                example 57.510 KWD";
    assert_eq!((&broken["invariant"], &broken["what"]), (&"chargeable".into(), &what.into()));

    // The next step of the audit solves the problem.
    let subscription = &stored_subscriptions(folder)[0];
    let id = subscription["id"].as_str().unwrap();
    let change =
        |price: &str| output(dueday_with_stripe(folder).args(["subscription", "change", "a0", id, "--price", price]));
    let (code, _, stderr) = change("0.005");
    let refused =
        "invalid value '0.005' for --price: must be at least 0.010 KWD, the smallest amount in KWD that Stripe accepts";
    assert!(code == 2 && stderr.contains(refused), "{code} {stderr}");
    let (code, _, stderr) = change("57.510");
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, stderr) = output(dueday_with_stripe(folder).arg("audit"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}
