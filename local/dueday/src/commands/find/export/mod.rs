//! `dueday export`: writes all accounts, subscriptions, receipts or refunds to standard output.

mod exported_subscription;

use std::io::{self, BufWriter, Stdout, Write};
use std::ops::ControlFlow;

use api::{AccountView, ReceiptView, RefundView};
use billing::{Account, AccountId, Currency, GatewayToken, Label, Money, Receipt, Refund, Sku, Subscription};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use store::{Table, TableError};

use crate::commands::value_parsers;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::csv_writer::{CsvCell, CsvWriter};
use crate::terminal::output;
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};
use exported_subscription::ExportedSubscription;

/// The arguments of `dueday export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The output is sorted by account; the receipts and refunds of an account are sorted by due date. In CSV, amounts are decimals, every \
text is in double quotes, and a text that a spreadsheet would treat as a formula (it begins with =, +, -, @ or a full-width \
form of them, or with a tab or a line break) gets a ' in front, also after a semicolon. The format jsonl contains the same objects as the responses of the API; receipts also have the customer's name, \
and subscriptions the e-mail address, the name and the locale of their account.

`dueday import` reads the CSV file of the subscriptions.

If an export ends early, its last line begins with INCOMPLETE, and the command fails.

Examples:
  dueday export subscriptions > subscriptions.csv
  dueday export receipts --from 2027-01-01 --to 2027-01-31
  dueday export refunds --from 2027-01-01 --to 2027-01-31
  dueday export receipts --format jsonl | gzip > receipts.gz")]
pub struct ExportArgs {
    /// The kind of items to export
    #[arg(value_name = "WHAT")]
    pub kind: ExportKind,
    /// csv, or jsonl: one JSON object per line
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: ExportFormat,
    /// Only items of this day or a later one: the day of the payment of receipts, the day of the request of
    /// refunds (both as in `dueday report`), the day of creation of accounts and subscriptions
    #[arg(long, value_name = "DATE", value_parser = value_parsers::parse_date)]
    pub from: Option<NaiveDate>,
    /// Only items of this day or an earlier one
    #[arg(long, value_name = "DATE", value_parser = value_parsers::parse_date)]
    pub to: Option<NaiveDate>,
}

impl ExportArgs {
    /// Returns whether `day` is in the requested period.
    fn covers_day(&self, day: NaiveDate) -> bool {
        self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to)
    }
}

/// The kind of items to export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportKind {
    Accounts,
    Subscriptions,
    Receipts,
    Refunds,
}

impl ExportKind {
    /// Returns the plural noun of these items.
    fn plural_noun(self) -> &'static str {
        match self {
            ExportKind::Accounts => "accounts",
            ExportKind::Subscriptions => "subscriptions",
            ExportKind::Receipts => "receipts",
            ExportKind::Refunds => "refunds",
        }
    }
}

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportFormat {
    Csv,
    Jsonl,
}

/// The columns of a CSV file: the name, and the JSON pointer to the value in the object that the API returns.
type Columns = &'static [(&'static str, &'static str)];

/// The columns of a CSV file of accounts.
const ACCOUNT_COLUMNS: Columns = &[
    ("account", "/id"),
    ("email", "/email"),
    ("name", "/name"),
    ("locale", "/locale"),
    ("mail_status", "/mail_status"),
    ("created_at", "/created_at"),
];
/// The columns of a CSV file of subscriptions.
const SUBSCRIPTION_COLUMNS: Columns = &[
    ("subscription", "/id"),
    ("account", "/account"),
    ("email", "/account_email"),
    ("name", "/account_name"),
    ("locale", "/account_locale"),
    ("external_id", "/external_id"),
    ("sku", "/sku"),
    ("product_name", "/product_name"),
    ("own_email", "/email"),
    ("status", "/status"),
    ("payment_day", "/payment_day"),
    ("amount", "/amount"),
    ("currency", "/currency"),
    ("customer", "/payment_method/customer"),
    ("payment_method", "/payment_method/payment_method"),
    ("due_date", "/due_date"),
    ("next_payment_date", "/next_payment_date"),
    ("next_reminder_date", "/next_reminder_date"),
    ("last_payment_at", "/last_payment_at"),
    ("failed_attempts", "/failed_attempts"),
    ("cancel_date", "/cancel_date"),
    ("import_obstacle", "/import_obstacle"),
    ("created_at", "/created_at"),
];
/// The columns of a CSV file of receipts.
const RECEIPT_COLUMNS: Columns = &[
    ("account", "/account"),
    ("receipt", "/id"),
    ("number", "/number"),
    ("customer_name", "/customer_name"),
    ("subscription", "/subscription"),
    ("sku", "/sku"),
    ("product_name", "/product_name"),
    ("due_date", "/due_date"),
    ("amount", "/amount"),
    ("refunded_amount", "/refunded_amount"),
    ("refunded_at", "/refunded_at"),
    ("reversed_amount", "/reversed_amount"),
    ("reversed_at", "/reversed_at"),
    ("net_amount", "/net_amount"),
    ("currency", "/currency"),
    ("gateway_payment_id", "/gateway_payment_id"),
    ("processed_at", "/processed_at"),
];

/// The columns of a CSV file of refunds.
const REFUND_COLUMNS: Columns = &[
    ("account", "/account"),
    ("refund", "/id"),
    ("receipt", "/receipt"),
    ("sku", "/sku"),
    ("amount", "/amount"),
    ("currency", "/currency"),
    ("status", "/status"),
    ("code", "/code"),
    ("gateway_payment_id", "/gateway_payment_id"),
    ("gateway_refund_id", "/gateway_refund_id"),
    ("created_at", "/created_at"),
    ("settled_at", "/settled_at"),
];

/// Writes items to standard output, as CSV or as JSON lines.
enum ItemWriter {
    Csv(Box<CsvWriter<Stdout>>, Columns),
    Jsonl(BufWriter<Stdout>),
}

/// Writes the items of an export. Stops at the first error of standard output, such as a closed pipe.
struct ExportWriter {
    items: ItemWriter,
    /// The first error of standard output.
    output_error: Option<io::Error>,
    /// The number of items that cannot be read.
    unreadable: u64,
    progress: ProgressDisplay,
}

/// A receipt with the name of the customer.
#[derive(Serialize)]
struct ExportedReceipt {
    #[serde(flatten)]
    receipt: ReceiptView,
    /// The name in the account; null if the account does not exist.
    customer_name: Option<Label>,
}

/// A refund with the data of its payment.
#[derive(Serialize)]
struct ExportedRefund {
    account: AccountId,
    sku: Sku,
    gateway_payment_id: GatewayToken,
    /// When the refund succeeded or failed; null while it is pending.
    settled_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    refund: RefundView,
}

impl From<Refund> for ExportedRefund {
    fn from(refund: Refund) -> Self {
        Self {
            account: refund.account.clone(),
            sku: refund.receipt.sku.clone(),
            gateway_payment_id: refund.payment.clone(),
            settled_at: refund.settled_at,
            refund: refund.into(),
        }
    }
}

/// Runs `dueday export`.
pub async fn run_export_command(context: &CommandContext, command: &ExportArgs) -> Result<Exit, Failure> {
    if let (Some(from), Some(to)) = (command.from, command.to)
        && from > to
    {
        return Err(Failure::Refused(format!("--from {from} is later than --to {to}: no day lies between them")));
    }
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let columns = match command.kind {
        ExportKind::Accounts => ACCOUNT_COLUMNS,
        ExportKind::Subscriptions => SUBSCRIPTION_COLUMNS,
        ExportKind::Receipts => RECEIPT_COLUMNS,
        ExportKind::Refunds => REFUND_COLUMNS,
    };
    let mut writer = ExportWriter::new(command.format, columns, command.kind.plural_noun());
    let written = tokio::select! {
        written = write_exported_items(context, command, &open_table.table, &mut writer) => written,
        _ = tokio::signal::ctrl_c() => Err(Failure::Refused("the export was interrupted".to_owned())),
    };
    if let Err(failure) = written {
        writer.mark_incomplete(&failure.message());
        return Err(failure);
    }
    let unreadable = writer.finish_and_count_unreadable()?;
    Ok(Exit::done_if(unreadable == 0))
}

/// Writes all items of the requested kind and period with `writer`.
async fn write_exported_items(
    context: &CommandContext,
    command: &ExportArgs,
    table: &Table,
    writer: &mut ExportWriter,
) -> Result<(), Failure> {
    let day_of = |at: DateTime<Utc>| table.policy().date_at(at);
    match command.kind {
        ExportKind::Accounts => {
            let covers = |account: &Account| command.covers_day(day_of(account.created_at));
            table.accounts_in_order(|item| writer.write(item, covers, AccountView::from)).await?;
        }
        ExportKind::Subscriptions => {
            let covers = |(subscription, _): &(Subscription, Option<Account>)| {
                command.covers_day(day_of(subscription.created_at))
            };
            let today = day_of(context.clock.now());
            let view = |(subscription, account)| ExportedSubscription::new(subscription, account, today);
            table.subscriptions_in_order(|item| writer.write(item, covers, view)).await?;
        }
        ExportKind::Receipts => {
            let covers = |(receipt, _): &(Receipt, Option<Label>)| command.covers_day(day_of(receipt.processed_at));
            let view = |(receipt, customer_name): (Receipt, Option<Label>)| ExportedReceipt {
                receipt: receipt.into(),
                customer_name,
            };
            table.receipts_in_order(context.clock.now(), |item| writer.write(item, covers, view)).await?;
        }
        ExportKind::Refunds => {
            let covers = |refund: &Refund| command.covers_day(day_of(refund.created_at));
            table
                .refunds_in_order(context.clock.now(), |item| writer.write(item, covers, ExportedRefund::from))
                .await?;
        }
    }
    Ok(())
}

impl ItemWriter {
    /// Writes `item`, a JSON object in the format of the API.
    fn write(&mut self, item: &Value) -> io::Result<()> {
        match self {
            ItemWriter::Csv(out, columns) => out.write_row(columns.iter().map(|(_, pointer)| csv_cell(item, pointer))),
            ItemWriter::Jsonl(out) => writeln!(out, "{item}"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ItemWriter::Csv(out, _) => out.flush(),
            ItemWriter::Jsonl(out) => out.flush(),
        }
    }
}

impl ExportWriter {
    /// Creates the writer. For CSV, writes the header with the names of `columns`.
    fn new(format: ExportFormat, columns: Columns, noun: &'static str) -> Self {
        let items = match format {
            ExportFormat::Csv => ItemWriter::Csv(Box::new(CsvWriter::new(io::stdout())), columns),
            ExportFormat::Jsonl => ItemWriter::Jsonl(BufWriter::new(io::stdout())),
        };
        let progress = ProgressDisplay::of_read_items(noun);
        let mut writer = Self { items, output_error: None, unreadable: 0, progress };
        if let ItemWriter::Csv(out, columns) = &mut writer.items {
            writer.output_error = out.write_row(columns.iter().map(|(name, _)| CsvCell::from(*name))).err();
        }
        writer
    }

    /// Writes the `view` of an item if `covers` accepts the item. Prints a message if the item cannot be read.
    fn write<T, V: Serialize>(
        &mut self,
        item: Result<T, TableError>,
        covers: impl Fn(&T) -> bool,
        view: impl Fn(T) -> V,
    ) -> ControlFlow<()> {
        self.progress.inc(1);
        match item {
            Ok(item) if !covers(&item) => {}
            Ok(item) => {
                let item = serde_json::to_value(view(item)).expect("an exported item can be written as JSON");
                self.output_error = self.output_error.take().or_else(|| self.items.write(&item).err());
            }
            Err(error) => {
                output::print_message(format!("unreadable: {error}"));
                self.unreadable += 1;
            }
        }
        if self.output_error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes a last line that states that the export is incomplete, and the reason. An error of the output is ignored,
    /// because the command fails in any case.
    fn mark_incomplete(&mut self, reason: &str) {
        let _ = match &mut self.items {
            ItemWriter::Csv(out, _) => out.flush().and_then(|()| writeln!(out.output(), "INCOMPLETE: {reason}")),
            ItemWriter::Jsonl(out) => writeln!(out, "INCOMPLETE: {reason}").and_then(|()| out.flush()),
        };
    }

    /// Flushes the output, and returns the number of items that could not be read.
    fn finish_and_count_unreadable(mut self) -> Result<u64, Failure> {
        let flushed = self.output_error.take().map_or_else(|| self.items.flush(), Err);
        output::ignore_closed_output(flushed)?;
        Ok(self.unreadable)
    }
}

/// Returns the CSV cell for the value at the JSON pointer `pointer` in `item`: an empty text for null, and an amount as a
/// decimal (the format that an import reads).
fn csv_cell<'a>(item: &'a Value, pointer: &str) -> CsvCell<'a> {
    let money = || {
        let currency: Currency = item["currency"].as_str()?.parse().ok()?;
        Some(Money::new(item.pointer(pointer)?.as_i64()?, currency).decimal())
    };
    match item.pointer(pointer) {
        Some(Value::Number(_))
            if matches!(pointer, "/amount" | "/refunded_amount" | "/reversed_amount" | "/net_amount") =>
        {
            CsvCell::Number(money().unwrap_or_default())
        }
        Some(Value::Number(number)) => CsvCell::Number(number.to_string()),
        Some(Value::String(text)) => CsvCell::from(text.as_str()),
        None | Some(Value::Null) => CsvCell::from(""),
        Some(other) => CsvCell::from(other.to_string()),
    }
}
