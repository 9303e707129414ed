//! What people see in a terminal with 80 columns, and what a program reads from a pipe.

use crate::shop::Shop;
use crate::terminal::{dueday, in_terminal, output};

use console::{measure_text_width, strip_ansi_codes};

/// The commands whose tables are in a snapshot.
const COMMANDS_WITH_TABLES: [&str; 9] = [
    "accounts",
    "subscriptions",
    "subscriptions acme",
    "receipts acme",
    "receipt show {number}",
    "why acme",
    "settings get",
    "log acme",
    "subscription change acme --price 14.99",
];

/// Runs `command` in a terminal. Returns its output without colours.
fn seen(shop: &Shop, command: &str) -> String {
    let filled = shop.fill_placeholders(command);
    let arguments: Vec<&str> = filled.split(' ').chain(["--gateway", &shop.gateway.url]).collect();
    let (code, text) = in_terminal(&shop.folder.path().join("data"), &arguments, "");
    assert_eq!(code, 0, "{command}: {text}");
    strip_ansi_codes(&text).into_owned()
}

#[test]
fn tables_of_80_columns_match_their_snapshot_and_no_identifier_is_cut() {
    let shop = Shop::open();
    // The declined payment of `bell` is owed, so the changes apply from the next month.
    shop.run("subscription change bell sub-2 --payment-day last --price 13.99");
    let mut transcript = String::new();
    for command in COMMANDS_WITH_TABLES {
        let text = seen(&shop, command);
        // Sentences and commands to copy may be longer: the terminal wraps them.
        let is_table = |line: &&str| {
            !line.contains("--data") && !line.starts_with("charged on") && !line.starts_with("No server runs")
        };
        for line in text.lines().filter(is_table) {
            assert!(measure_text_width(line) <= 80, "{command}: a line is too long: {line}");
        }
        assert!(!text.contains('…'), "{command}: a value is cut: {text}");
        transcript += &format!("$ dueday {command}\n{}\n", shop.without_changing_values(&text));
    }
    let subscriptions = seen(&shop, "subscriptions");
    for word in ["{acme}", "{bell}"] {
        let id = shop.fill_placeholders(word);
        assert!(subscriptions.contains(&format!("{id}\n")), "the id {id} is whole: {subscriptions}");
    }
    insta::assert_snapshot!("narrow", transcript);
}

#[test]
fn colours_are_shown_in_a_terminal_and_not_in_a_pipe_or_file() {
    let shop = Shop::open();
    let data = shop.folder.path().join("data");
    let (_, text) = in_terminal(&data, &["subscriptions"], "");
    assert!(text.contains("\u{1b}[32mactive\u{1b}[0m"), "{text:?}");
    // A program that reads a pipe may run in a terminal, so the variable TERM is set.
    for command in ["subscriptions", "status", "runs", "audit", "why bell"] {
        let (_, stdout, stderr) =
            output(dueday(&data).args(command.split(' ')).env("TERM", "xterm-256color").env("RUST_LOG", "debug"));
        assert!(!stdout.contains('\u{1b}'), "{command}: {stdout:?}");
        assert!(!stderr.contains('\u{1b}'), "{command}: {stderr:?}");
    }
}

#[test]
fn change_that_cannot_be_undone_is_made_only_after_a_confirmation() {
    let shop = Shop::open();
    let (code, refused) = shop.run_command("refund {number} --reason ticket-1");
    assert_eq!(code, 2, "{refused}");
    assert!(refused.contains("This cannot be undone. Nothing was changed; add --yes to confirm it"), "{refused}");
    let (code, refused) = shop.run_command("subscription cancel acme");
    assert!(code == 2 && refused.contains("Gold plan") && refused.contains("add --yes"), "{refused}");
    assert!(shop.run("subscriptions acme").contains("active"));

    let in_shop = |arguments: &[&str], input: &str| in_terminal(&shop.folder.path().join("data"), arguments, input);
    let (code, text) = in_shop(&["subscription", "cancel", "acme"], "no\n");
    assert!(code == 2 && text.contains("the change was not confirmed"), "{text}");
    assert!(shop.run("subscriptions acme").contains("active"));
    let (code, text) = in_shop(&["subscription", "cancel", "acme"], "yes\n");
    assert!(code == 0 && text.contains("This cannot be undone. Type yes to continue:"), "{text}");
    assert!(shop.run("subscriptions acme").contains("cancelled"));
}

#[test]
fn progress_bar_of_an_import_begins_empty_and_without_an_estimate() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/try_out/demo.csv");
    let (code, text) = in_terminal(&folder.path().join("data"), &["import", file], "");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("0%  0 rows") && !text.contains("left"), "{text:?}");
}

#[test]
fn help_fits_a_terminal_and_help_all_adds_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let help = |arguments: &str| {
        let (code, text) = in_terminal(folder.path(), &arguments.split_whitespace().collect::<Vec<_>>(), "");
        assert_eq!(code, 0, "{text}");
        strip_ansi_codes(&text).into_owned()
    };
    for command in ["", "accounts", "subscriptions", "subscription", "subscription change", "orders", "orders list"] {
        let text = help(&format!("{command} --help"));
        assert!(text.lines().count() < 60, "{command}: {} lines\n{text}", text.lines().count());
        // Only a usage line may be longer: a person can copy it.
        let is_narrow = |line: &str| measure_text_width(line) <= 80 || line.starts_with("Usage:");
        assert!(text.lines().all(is_narrow), "{command}: {text}");
        assert!(text.contains("--help-all") && !text.contains("--mail-from"), "{command}: {text}");
        assert_eq!(text, help(&format!("{command} -h")), "{command}");
        let all = help(&format!("{command} --help-all"));
        assert!(all.contains("--mail-from") && all.contains("--time-zone"), "{command}: {all}");
    }
    assert_eq!(help("help"), help("--help"));
    assert_eq!(help("help subscription change"), help("subscription change --help"));
    let all = help("--help-all");
    assert!(all.contains("Exit codes: 0 success") && all.contains("  reshard "), "{all}");
}
