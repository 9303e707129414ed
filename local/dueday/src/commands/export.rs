//! `dueday export`: everything of a kind, one by one, to standard output.

use std::io::{self, BufWriter, Stdout, Write};
use std::ops::ControlFlow;

use api::{AccountView, ReceiptView, SubscriptionView};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use shared::billing::{Currency, Money};
use shared::table::TableError;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday export`.
#[derive(Debug, Args)]
#[command(after_help = "\
CSV has amounts as decimals; JSON lines have the objects that the API answers with.

Examples:
  dueday export subscriptions > subscriptions.csv
  dueday export receipts --format jsonl | gzip > receipts.gz")]
pub struct ExportArgs {
    pub what: Exported,
    /// csv, or jsonl: one JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: Format,
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
    ("receipt", "/id"),
    ("subscription", "/subscription"),
    ("sku", "/sku"),
    ("product_name", "/product_name"),
    ("due_date", "/due_date"),
    ("amount", "/amount"),
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
    let opened = Opened::open(context, Folder::Existing).await?;
    let columns = match command.what {
        Exported::Accounts => ACCOUNTS,
        Exported::Subscriptions => SUBSCRIPTIONS,
        Exported::Receipts => RECEIPTS,
    };
    let mut writer = Writer::begin(command.format, columns);
    let table = &opened.table;
    match command.what {
        Exported::Accounts => table.scan_accounts(|item| writer.write(item.map(AccountView::from))).await?,
        Exported::Subscriptions => {
            table.scan_subscriptions(|item| writer.write(item.map(SubscriptionView::from))).await?;
        }
        Exported::Receipts => {
            table.scan_receipts(context.clock.now(), |item| writer.write(item.map(ReceiptView::from))).await?
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

    fn write(&mut self, item: Result<impl Serialize, TableError>) -> ControlFlow<()> {
        match item {
            Ok(item) => {
                let item = serde_json::to_value(item).expect("a view is representable");
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

/// What stands at `place`, as a cell: nothing for null, and amounts as decimals, as an import reads them.
fn cell(item: &Value, place: &str) -> String {
    let money = || {
        let currency: Currency = item["currency"].as_str()?.parse().ok()?;
        Some(Money::new(item["amount"].as_i64()?, currency).decimal())
    };
    match item.pointer(place) {
        Some(Value::Number(_)) if place == "/amount" => money().unwrap_or_default(),
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}
