//! The generated tables of `docs/costs.md`.

use std::fmt::Write as _;

use super::bill::{AVERAGE_DOLLARS, Bill};
use super::prices::Prices;
use super::workload::{Count, Counts};

/// The numbers of payments in a month for which the tables show the costs. Each payment has a reminder.
pub const PAYMENTS_PER_MONTH: [f64; 3] = [1e3, 1e6, 1e7];

/// The counts of one payment that the tables show, each with its name in the tables.
const SHOWN_COUNTS: [(Count, &str); 14] = [
    (Count::ReminderWrites, "write units of the reminder"),
    (Count::ReminderReads, "read units of the reminder"),
    (Count::PaymentWrites, "write units of the payment"),
    (Count::PaymentReads, "read units of the payment"),
    (Count::NoticeWrites, "write units of the receipt's mail"),
    (Count::NoticeReads, "read units of the receipt's mail"),
    (Count::StreamRecords, "changes in the stream, with the expiry of the receipt"),
    (Count::PassedRecords, "changes that the filter of the stream passes to the function `events`"),
    (Count::Events, "events on the bus"),
    (Count::DeliveryMessages, "messages in the queue of webhook deliveries"),
    (Count::NoticeMessages, "messages in the queue of notices"),
    (Count::ArchivedEvents, "events in the archive"),
    (Count::Mails, "mails"),
    (Count::LogBytes, "bytes of log lines"),
];

/// Returns `dollars` with two decimals and separators, such as `1,234.50`.
fn format_dollars(dollars: f64) -> String {
    let text = format!("{dollars:.2}");
    let (whole, cents) = text.split_once('.').expect("two decimals");
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped}.{cents}")
}

/// Returns a number of payments with separators, such as `1,000,000`.
fn format_payment_count(number: f64) -> String {
    format_dollars(number).trim_end_matches(".00").to_owned()
}

/// Adds a table row with a cell for each bill.
fn add_row(text: &mut String, name: &str, bills: &[&Bill], cell: impl Fn(&Bill) -> f64, is_bold: bool) {
    let mark = if is_bold { "**" } else { "" };
    let cells: Vec<String> = bills.iter().map(|bill| format!("{mark}{}{mark}", format_dollars(cell(bill)))).collect();
    writeln!(text, "| {mark}{name}{mark} | {} |", cells.join(" | ")).unwrap();
}

/// Returns the sentence about the costs in README.md, in which a stack with all parts has two mails for each payment.
pub fn sentence_of_readme(core: &[Bill; 3], full: &[Bill; 3]) -> String {
    let whole = |bill: &Bill| format!("${:.0}", bill.without_mails());
    let [idle, million] = [0, 1]
        .map(|index| format!("{} with all parts and {} with only the core", whole(&full[index]), whole(&core[index])));
    format!("a month with a million payments costs {million}; a month with a thousand, {idle}")
}

/// Returns the generated part of the document. `core` contains the bills of a stack with only the core, and `bills` those of
/// a stack with all parts. `without_receipts` contains, for each bill, the costs that grow with the payments if no receipts
/// are mailed. `one` contains the counts of one payment.
pub fn render(
    core: &[Bill; 3],
    bills: &[Bill; 3],
    without_receipts: [f64; 3],
    one: &Counts,
    prices: &Prices,
) -> String {
    let mut text = String::from("## A month\n\n");
    text.push_str("| reminded payments in a month | core, without mails | core, with one mail for each payment | ");
    text.push_str("all parts, without mails | all parts, with two mails for each payment | ");
    writeln!(text, "Stripe Billing, at ${AVERAGE_DOLLARS} for each payment |\n|---:|---:|---:|---:|---:|---:|")
        .unwrap();
    for ((month, bill), core) in PAYMENTS_PER_MONTH.iter().zip(bills).zip(core) {
        let cells = [core, bill].map(|bill| {
            let (aws, all) = (format_dollars(bill.without_mails()), format_dollars(bill.without_mails() + bill.mails));
            format!("${aws} | ${all}")
        });
        let (month, stripe) = (format_payment_count(*month), format_dollars(bill.stripe_billing));
        writeln!(text, "| {month} | {} | ${stripe} |", cells.join(" | ")).unwrap();
    }
    writeln!(
        text,
        "\nWithout any payment, the core costs ${} a month and all parts cost ${}. A user pool of Amazon Cognito that the stack \
         creates costs ${} more, for one program that gets a token every hour.",
        format_dollars(core[0].fixed()),
        format_dollars(bills[0].fixed()),
        format_dollars(bills[0].user_pool)
    )
    .unwrap();
    // The columns of the table by service: the core with a million payments, and the stack with all parts.
    let by_service = [&core[1], &bills[0], &bills[1], &bills[2]];
    let months = PAYMENTS_PER_MONTH.map(format_payment_count).join(" | ");
    let (region, date) = (&prices.region, prices.entered_on);
    write!(
        text,
        "\n## By service\n\nDollars in {region}, by the payments of the month. The column *core* is that of a million payments with only the core. The \
         prices were entered on {date}:\n\n"
    )
    .unwrap();
    writeln!(text, "| service | core | {months} |\n|---|---:|---:|---:|---:|").unwrap();
    for (index, line) in bills[0].lines.iter().enumerate() {
        if bills[2].lines[index].by_payments > 0.0 {
            add_row(&mut text, line.service, &by_service, |bill| bill.lines[index].by_payments, false);
        }
    }
    add_row(&mut text, "grows with the payments", &by_service, Bill::by_payments, true);
    let cells = without_receipts.map(format_dollars).join(" | ");
    writeln!(text, "| grows with the payments, if no receipts are mailed (`mails-off=paid`) | | {cells} |").unwrap();
    for (index, line) in bills[0].lines.iter().enumerate().filter(|(_, line)| line.fixed >= 0.005) {
        add_row(
            &mut text,
            &format!("{}, without payments", line.service),
            &by_service,
            |bill| bill.lines[index].fixed,
            false,
        );
    }
    add_row(&mut text, "does not grow", &by_service, Bill::fixed, true);
    add_row(&mut text, "storage in the table and its backups, after a year", &by_service, |bill| bill.storage, false);
    add_row(
        &mut text,
        "nightly reads of the comparison and the audit, after a year",
        &by_service,
        |bill| bill.checks,
        false,
    );
    add_row(&mut text, "total, without mails", &by_service, Bill::without_mails, true);
    add_row(&mut text, "Amazon SES, two mails for each payment; core: one", &by_service, |bill| bill.mails, false);
    add_row(&mut text, "total", &by_service, |bill| bill.without_mails() + bill.mails, true);
    text.push_str("\n## Counts of one reminded payment\n\n| count | for each payment |\n|---|---:|\n");
    for (count, name) in SHOWN_COUNTS {
        writeln!(text, "| {name} | {} |", format_decimal(one.get(&count).copied().unwrap_or(0.0))).unwrap();
    }
    let million = &bills[1];
    for (name, number) in [
        ("invocations of the function `events`", million.events_invocations),
        ("invocations of the functions `deliver` and `notices`", million.queue_invocations),
        ("requests to queues that send, receive or delete messages", million.queue_requests),
    ] {
        writeln!(text, "| {name} | {} |", format_decimal(number / 1e6)).unwrap();
    }
    text
}

/// Returns a count with at most three decimals.
fn format_decimal(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
