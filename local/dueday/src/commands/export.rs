//! `dueday export`: everything of a kind, one by one, to standard output.

use std::io::{self, BufWriter, Stdout, Write};
use std::ops::ControlFlow;

use api::{AccountView, ReceiptView, SubscriptionView};
use billing::{Account, Currency, Money, Receipt, Subscription};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use store::TableError;

use super::values;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::cell::for_spreadsheets;
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Sorted by account; an account's receipts by due date. CSV has amounts as decimals. A cell that a spreadsheet would take \
for a formula (it begins with =, +, -, @, a tab or a carriage return) gets a ' in front. JSON lines have the objects that \
the API answers with, as they are.

Examples:
  dueday export subscriptions > subscriptions.csv
  dueday export receipts --from 2027-01-01 --to 2027-01-31
  dueday export receipts --format jsonl | gzip > receipts.gz")]
pub struct ExportArgs {
    pub what: Exported,
    /// csv, or jsonl: one JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: Format,
    /// Only what is of this day or later: a receipt's due date, else the day of creation
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    pub from: Option<NaiveDate>,
    /// Only what is of this day or earlier
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    pub to: Option<NaiveDate>,
}

impl ExportArgs {
    fn covers(&self, day: NaiveDate) -> bool {
        self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to)
    }
}

/// What is exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Exported {
    Accounts,
    Subscriptions,
    Receipts,
}

/// How it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    Csv,
    Jsonl,
}

/// The columns of CSV files: a name, and where it stands in the object that the API answers with.
type Columns = &'static [(&'static str, &'static str)];

const ACCOUNTS: Columns = &[
    ("account", "/id"),
    ("email", "/email"),
    ("name", "/name"),
    ("locale", "/locale"),
    ("mail_status", "/mail_status"),
    ("created_at", "/created_at"),
];
const SUBSCRIPTIONS: Columns = &[
    ("subscription", "/id"),
    ("account", "/account"),
    ("sku", "/sku"),
    ("product_name", "/product_name"),
    ("email", "/email"),
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
    ("created_at", "/created_at"),
];
const RECEIPTS: Columns = &[
    ("account", "/account"),
    ("receipt", "/id"),
    ("subscription", "/subscription"),
    ("sku", "/sku"),
    ("product_name", "/product_name"),
    ("due_date", "/due_date"),
    ("amount", "/amount"),
    ("refunded_amount", "/refunded_amount"),
    ("reversed_amount", "/reversed_amount"),
    ("reversed_at", "/reversed_at"),
    ("currency", "/currency"),
    ("gateway_payment_id", "/gateway_payment_id"),
    ("processed_at", "/processed_at"),
];

/// Where items go, one after the other.
enum Sink {
    Csv(Box<csv::Writer<Stdout>>, Columns),
    Jsonl(BufWriter<Stdout>),
}

/// Writes items until the reader is gone.
struct Writer {
    sink: Sink,
    failed: Option<io::Error>,
    unreadable: u64,
}

pub async fn export(context: &Context, command: &ExportArgs) -> Result<Exit, Failure> {
    if let (Some(from), Some(to)) = (command.from, command.to)
        && from > to
    {
        return Err(Failure::Refused(format!("--from {from} is later than --to {to}: no day lies between them")));
    }
    let opened = Opened::open(context, Folder::Existing).await?;
    let columns = match command.what {
        Exported::Accounts => ACCOUNTS,
        Exported::Subscriptions => SUBSCRIPTIONS,
        Exported::Receipts => RECEIPTS,
    };
    let mut writer = Writer::begin(command.format, columns);
    let table = &opened.table;
    let created_on = |at: DateTime<Utc>| at.with_timezone(&context.config.billing.zone).date_naive();
    match command.what {
        Exported::Accounts => {
            let covers = |account: &Account| command.covers(created_on(account.created_at));
            table.accounts_in_order(|item| writer.write(item, covers, AccountView::from)).await?;
        }
        Exported::Subscriptions => {
            let covers = |subscription: &Subscription| command.covers(created_on(subscription.created_at));
            table.subscriptions_in_order(|item| writer.write(item, covers, SubscriptionView::from)).await?;
        }
        Exported::Receipts => {
            let covers = |receipt: &Receipt| command.covers(receipt.due_on);
            table.receipts_in_order(context.clock.now(), |item| writer.write(item, covers, ReceiptView::from)).await?;
        }
    }
    let unreadable = writer.end()?;
    Ok(Exit::of(unreadable == 0))
}

impl Sink {
    fn write(&mut self, item: &Value) -> io::Result<()> {
        match self {
            Sink::Csv(out, columns) => {
                out.write_record(columns.iter().map(|(_, place)| cell(item, place))).map_err(as_io)
            }
            Sink::Jsonl(out) => writeln!(out, "{item}"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Csv(out, _) => out.flush(),
            Sink::Jsonl(out) => out.flush(),
        }
    }
}

impl Writer {
    fn begin(format: Format, columns: Columns) -> Self {
        let sink = match format {
            Format::Csv => Sink::Csv(Box::new(csv::Writer::from_writer(io::stdout())), columns),
            Format::Jsonl => Sink::Jsonl(BufWriter::new(io::stdout())),
        };
        let mut writer = Self { sink, failed: None, unreadable: 0 };
        if let Sink::Csv(out, columns) = &mut writer.sink {
            let header = out.write_record(columns.iter().map(|(name, _)| name));
            writer.failed = header.err().map(as_io);
        }
        writer
    }

    /// Writes what an `item` looks like that is covered, or that it cannot be read.
    fn write<T, V: Serialize>(
        &mut self,
        item: Result<T, TableError>,
        covers: impl Fn(&T) -> bool,
        view: impl Fn(T) -> V,
    ) -> ControlFlow<()> {
        match item {
            Ok(item) if !covers(&item) => {}
            Ok(item) => {
                let item = serde_json::to_value(view(item)).expect("a view is representable");
                self.failed = self.failed.take().or_else(|| self.sink.write(&item).err());
            }
            Err(error) => {
                output::tell(format!("unreadable: {error}"));
                self.unreadable += 1;
            }
        }
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Answers how many items could not be read.
    fn end(mut self) -> Result<u64, Failure> {
        let flushed = self.failed.take().map_or_else(|| self.sink.flush(), Err);
        output::unless_closed(flushed)?;
        Ok(self.unreadable)
    }
}

/// The error below: whoever has gone is to be told from a disk that is full.
fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// What stands at `place`, as a cell: nothing for null, amounts as decimals, as an import reads them, and no formulas.
fn cell(item: &Value, place: &str) -> String {
    let money = || {
        let currency: Currency = item["currency"].as_str()?.parse().ok()?;
        Some(Money::new(item.pointer(place)?.as_i64()?, currency).decimal())
    };
    match item.pointer(place) {
        Some(Value::Number(_)) if matches!(place, "/amount" | "/refunded_amount" | "/reversed_amount") => {
            money().unwrap_or_default()
        }
        Some(Value::String(text)) => for_spreadsheets(text).into_owned(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}
