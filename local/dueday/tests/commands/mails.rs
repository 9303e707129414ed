//! Tests of the mails of a local installation: an error of one recipient delays no other mail, and a command without a
//! server says that the mails about its changes wait.

use crate::shop::Shop;
use crate::terminal::{dueday, output};

use std::path::Path;

use chrono::{Datelike as _, Utc};
use serde_json::{Value, json};
use testkit::{RefusedAt, SmtpServer};

/// The addresses of the customers, in the order of their accounts.
const ADDRESSES: [&str; 3] = ["ada@example.com", "josé@example.com", "zoe@bücher.example"];
/// The address of the last customer, as the mail server gets it.
const LAST_ADDRESS: &str = "zoe@xn--bcher-kva.example";

/// A data folder with three customers who have paid today, and whose receipts are not mailed yet. The mails are sent to
/// a mail server without SMTPUTF8.
struct PaidShop {
    folder: tempfile::TempDir,
    server: SmtpServer,
    mail_url: String,
}

impl PaidShop {
    async fn open() -> Self {
        let (server, mail_url) = SmtpServer::start().await;
        let shop = Self { folder: tempfile::tempdir().unwrap(), server, mail_url };
        let today = Utc::now().date_naive();
        let rows = ADDRESSES.iter().enumerate().map(|(n, address)| {
            format!(
                "account-{n},{address},Acme,,{n},gold,Gold plan,{},12.99,EUR,cus_{n},pm_card_visa,{today}\n",
                today.day()
            )
        });
        let file = shop.folder.path().join("subscriptions.csv");
        std::fs::write(&file, format!("{}\n{}", crate::file::HEADER, rows.collect::<String>())).unwrap();
        shop.run(&["import", file.to_str().unwrap()]);
        shop.run(&["run", "payments"]);
        shop
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// Runs a command that must succeed or need attention. Returns its output.
    fn run(&self, arguments: &[&str]) -> (String, String) {
        let mut command = dueday(&self.data());
        let command = command.args(arguments).args(["--merchant", "Shop"]).env("DUEDAY_MAIL_URL", &self.mail_url);
        let (code, stdout, stderr) = output(command);
        assert!(code < 2, "{arguments:?}: {stderr}");
        (stdout, stderr)
    }

    /// Publishes the events, which sends the waiting notices. Returns the messages of the command.
    fn send_notices(&self) -> String {
        self.run(&["events"]).1
    }

    /// Returns the recipients of all mails that the mail server has accepted.
    fn recipients(&self) -> Vec<String> {
        self.server.received_mails().into_iter().flat_map(|mail| mail.to).collect()
    }

    /// Returns the number of messages in the queue `name`.
    fn waiting(&self, name: &str) -> Value {
        let status: Value = serde_json::from_str(&self.run(&["status", "--json"]).0).unwrap();
        let queues = status["queues"].as_array().unwrap().clone();
        queues.into_iter().find(|queue| queue["name"] == name).unwrap()["waiting"].clone()
    }

    /// Returns the mail status of the account with the number `n`.
    fn mail_status(&self, n: usize) -> Value {
        let (stdout, _) = self.run(&["account", "export", &format!("account-{n}")]);
        serde_json::from_str::<Value>(&stdout).unwrap()["account"]["mail_status"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_recipients_delay_no_other_notice_and_are_counted_apart() {
    for (code, text) in [(452, "4.2.2 mailbox full"), (554, "refused")] {
        let shop = PaidShop::open().await;
        shop.server.refuse_mails_to(ADDRESSES[0], RefusedAt::Recipient, code, text);
        let messages = shop.send_notices();
        assert_eq!(shop.recipients(), [LAST_ADDRESS], "{messages}");
        let response = format!("RCPT TO with {code} {text} <<redacted>>");
        assert!(messages.contains(&response) && messages.contains("SMTPUTF8"), "{messages}");
        assert!(!messages.contains("mails cannot be sent") && !messages.contains("@example.com"), "{messages}");
        assert_eq!((shop.waiting("Notices"), shop.waiting("NoticesDelayed")), (json!(0), json!(1)));
        let statuses = [0, 1, 2].map(|n| shop.mail_status(n));
        assert_eq!(statuses, ["deliverable", "bounced", "deliverable"]);

        shop.server.accept_mails_to(ADDRESSES[0]);
        shop.send_notices();
        assert_eq!(shop.recipients(), [LAST_ADDRESS, ADDRESSES[0]]);
        assert_eq!(shop.waiting("NoticesDelayed"), json!(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn address_that_does_not_exist_is_marked_and_its_notice_is_finished() {
    let shop = PaidShop::open().await;
    shop.server.refuse_mails_to(ADDRESSES[0], RefusedAt::Recipient, 501, "5.1.3 bad address");
    shop.send_notices();
    assert_eq!(shop.recipients(), [LAST_ADDRESS]);
    assert_eq!(shop.mail_status(0), "bounced");
    assert_eq!((shop.waiting("Notices"), shop.waiting("NoticesDelayed")), (json!(0), json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_for_which_the_whole_service_seems_to_fail_waits_behind_the_others() {
    let shop = PaidShop::open().await;
    shop.server.refuse_mails_to(ADDRESSES[0], RefusedAt::Recipient, 421, "closing");
    let messages = shop.send_notices();
    assert!(messages.contains("mails cannot be sent") && messages.contains("421"), "{messages}");
    shop.send_notices();
    assert_eq!(shop.recipients(), [LAST_ADDRESS]);
    assert_eq!(shop.waiting("Notices"), json!(1));
}

#[test]
fn command_without_a_server_says_that_mails_wait() {
    const WAITING: &str = "No server runs: the mails and events about these changes are sent when `dueday` runs.";
    let shop = Shop::open();
    for command in ["refund {number} --amount 5.00 --reason x --yes", "subscription cancel acme {acme} --yes"] {
        let output = shop.run(command);
        assert_eq!(output.matches(WAITING).count(), 1, "{command}: {output}");
    }
    assert!(!has_receipt_mail(&shop.folder.path().join("data")));
    shop.run("events");
    assert!(has_receipt_mail(&shop.folder.path().join("data")), "`dueday events` publishes the changes");
    let output = shop.run("run payments");
    assert!(!output.contains("mails and events about these changes wait"), "{output}");
}

/// Returns whether the outbox of the folder `data` contains a receipt or a mail about a refund.
fn has_receipt_mail(data: &Path) -> bool {
    let names = std::fs::read_dir(data.join("outbox")).map(|files| files.map(|file| file.unwrap().file_name()));
    names.is_ok_and(|mut names| names.any(|name| name.to_string_lossy().contains("paid")))
}
