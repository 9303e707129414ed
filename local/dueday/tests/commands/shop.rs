//! A small shop in a local installation, for tests of the commands.

use crate::gateway::Gateway;
use crate::terminal::{dueday, output};

use std::path::Path;

use chrono::{Datelike, Days, Utc};
use regex::Regex;
use serde_json::Value;

/// A data folder with two customers after today's payment run: `acme` has paid, and the card of `bell` was declined.
pub struct Shop {
    pub folder: tempfile::TempDir,
    pub gateway: Gateway,
    /// The placeholders in the commands, such as `{payment}`, each with its value.
    pub words: Vec<(&'static str, String)>,
}

impl Shop {
    /// Starts a gateway, imports the two customers, and runs the payments.
    pub fn open() -> Self {
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

    /// Returns `output` with placeholders for all values that are different in each test run.
    pub fn without_changing_values(&self, output: &str) -> String {
        let is_id = |word: &&(&str, String)| !["{today}", "{month}"].contains(&word.0);
        let ids =
            self.words.iter().filter(is_id).fold(output.to_owned(), |text, (word, value)| text.replace(value, word));
        let text =
            ids.replace(&self.gateway.url, "{gateway}").replace(&self.folder.path().display().to_string(), "{folder}");
        let patterns = [
            (r"\d{4}-\d{2}-\d{2}", "{date}"),
            (r"(T|\b)\d{2}:\d{2}(:\d{2})?(\.\d+)?Z?", " {time}"),
            (r"[0-7][0-9A-Z]{25}", "{ulid}"),
            ("\"(active|past_due)\",\\d{1,2},", "\"$1\",{day},"),
        ];
        let replace = |text: String, (pattern, word): (&str, &str)| {
            Regex::new(pattern).unwrap().replace_all(&text, word).into_owned()
        };
        patterns.into_iter().fold(text, replace)
    }

    /// Returns `text` with the values of its placeholders.
    pub fn fill_placeholders(&self, text: &str) -> String {
        self.words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }

    /// Runs a command that must succeed. Returns its output.
    pub fn run(&self, command: &str) -> String {
        let (code, output) = self.run_command(command);
        assert!(code == 0, "{command}: exit code {code}\n{output}");
        output
    }

    /// Runs a command, with the values of its placeholders. Returns its exit code and its output.
    pub fn run_command(&self, command: &str) -> (i32, String) {
        let data: &Path = &self.folder.path().join("data");
        let arguments = self.fill_placeholders(command);
        let gateway = ["--gateway", &self.gateway.url];
        let (code, stdout, stderr) = output(dueday(data).args(arguments.split(' ')).args(gateway));
        (code, stdout + &stderr)
    }
}
