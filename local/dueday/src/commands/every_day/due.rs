//! `dueday due`: lists the payments and reminders that the runs of a day would process.

use billing::{Money, MoneySums};
use chrono::NaiveDate;
use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;
use store::{Batch, DueEntry, DueList, DuePayment};

use crate::commands::value_parsers;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The number of rows per request to the table.
const PAGE_ROWS: usize = 1_000;
/// The largest number of rows that are printed for each batch; `--json` prints all.
const MAX_ROWS_SHOWN: usize = 50;

/// The columns of the table of due payments or reminders.
const COLUMNS: [TableColumn; 6] = [
    TableColumn::unwrapped("on"),
    TableColumn::unwrapped("due date"),
    TableColumn::unwrapped("account"),
    TableColumn::text("product"),
    TableColumn::number("amount"),
    TableColumn::unwrapped(""),
];

/// The arguments of `dueday due`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday due\n  dueday due --date 2027-01-31 --json --table TABLE")]
pub struct DueArgs {
    /// The date of the run [default: today]; for future months see `dueday forecast`
    #[arg(long, value_name = "DATE", value_parser = value_parsers::parse_date)]
    pub date: Option<NaiveDate>,
}

/// A due payment or reminder, as printed with `--json`.
#[derive(Serialize)]
struct PrintedDuePayment {
    account: String,
    subscription: String,
    sku: String,
    product_name: String,
    due_date: NaiveDate,
    /// The date on which the batch would process the row: the next payment date or the next reminder date.
    on: NaiveDate,
    #[serde(flatten)]
    amount: Money,
}

/// The due rows of one batch, their number, and the sums of their amounts.
#[derive(Default, Serialize)]
struct DueRows {
    count: u64,
    /// The number of these rows whose payment date is impossibly late, because a clock was ahead. No run finds them.
    postponed: u64,
    sums: MoneySums,
    rows: Vec<PrintedDuePayment>,
    unreadable: Vec<String>,
}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct DuePaymentsAndReminders {
    date: NaiveDate,
    payments: DueRows,
    reminders: DueRows,
}

impl PrintedDuePayment {
    /// Creates the output of `due`, of which `payment` is charged or announced.
    fn new(due: DueEntry, payment: DuePayment) -> Self {
        let DuePayment { due_on, amount } = payment;
        Self {
            account: due.key.account.to_string(),
            subscription: due.key.subscription.to_string(),
            sku: due.key.sku.to_string(),
            product_name: due.product_name.as_str().to_owned(),
            due_date: due_on,
            on: due.on,
            amount,
        }
    }
}

/// Runs `dueday due`.
pub async fn run_due_command(context: &CommandContext, args: &DueArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let today = context.today(&open_table.table);
    let date = args.date.unwrap_or(today);
    let rows_kept = if context.options.json { usize::MAX } else { MAX_ROWS_SHOWN };
    let report = DuePaymentsAndReminders {
        date,
        payments: DueRows::read(&open_table, Batch::Payments, date, today, rows_kept).await?,
        reminders: DueRows::read(&open_table, Batch::Reminders, date, today, rows_kept).await?,
    };
    context.print(&report, || {
        let later = match date > today {
            true => "Each subscription is counted once. `dueday forecast` counts each of its payments.\n",
            false => "",
        };
        format!("{}\n{}{later}", report.payments.text("payment", date), report.reminders.text("reminder", date))
    })?;
    let unreadable: Vec<_> = report.payments.unreadable.iter().chain(&report.reminders.unreadable).collect();
    for entry in &unreadable {
        output::print_message(format!("unreadable: {entry}"));
    }
    Ok(Exit::done_if(unreadable.is_empty()))
}

impl DueRows {
    /// Reads and counts all rows of `batch` that are due on or before `date`. Stores only the first `rows_kept` rows.
    async fn read(
        open_table: &OpenTable,
        batch: Batch,
        date: NaiveDate,
        today: NaiveDate,
        rows_kept: usize,
    ) -> Result<Self, Failure> {
        let (mut list, mut after) = (Self::default(), None);
        let policy = open_table.table.policy();
        loop {
            let shards = open_table.settings.shards;
            let DueList { rows, next } =
                open_table.table.get_due_and_postponed_by_date(batch, shards, date, today, after, PAGE_ROWS).await?;
            for row in open_table.table.get_subscriptions_of_due_rows(rows).await? {
                match row {
                    Err(error) => list.unreadable.push(error.to_string()),
                    // The batch skips a row without a payment, for example because the subscription is paused.
                    Ok(row) => {
                        let Some(payment) = row.due_payment(batch, &policy, today) else { continue };
                        list.count += 1;
                        list.postponed += u64::from(row.due.on > date);
                        list.sums.add(payment.amount);
                        list.rows.push(PrintedDuePayment::new(row.due, payment));
                    }
                }
            }
            if list.rows.len() > rows_kept {
                list.sort();
                list.rows.truncate(rows_kept);
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        list.sort();
        Ok(list)
    }

    /// Sorts the rows of all shards by date, account and subscription.
    fn sort(&mut self) {
        self.rows.sort_by(|a, b| (a.on, &a.account, &a.subscription).cmp(&(b.on, &b.account, &b.subscription)));
    }

    /// Formats the rows as a table. `noun` is `payment` or `reminder`.
    fn text(&self, noun: &str, date: NaiveDate) -> String {
        let verb = if self.count == 1 { "has" } else { "have" };
        let subscriptions = format_count(self.count, "subscription");
        let mut text = format!("{subscriptions} {verb} a {noun} due on or before {date}\n");
        if self.rows.is_empty() {
            return text;
        }
        let rows = self.rows.iter().map(|row| {
            vec![
                row.on.to_string(),
                row.due_date.to_string(),
                row.account.clone(),
                row.product_name.clone(),
                row.amount.decimal(),
                row.amount.currency().to_string(),
            ]
        });
        text += &format_table(&COLUMNS, rows);
        let more = self.count.saturating_sub(u64::try_from(self.rows.len()).unwrap_or(u64::MAX));
        if more > 0 {
            text += &format!("and {} more (--json shows all)\n", HumanCount(more));
        }
        text += &format!("total {}\n", self.sums);
        if self.postponed > 0 {
            text += &format!("{}\n", output::red_text(&days::describe_postponed_payments(self.postponed)));
        }
        text
    }
}
