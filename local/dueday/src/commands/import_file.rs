//! Subscriptions in a CSV file.

use std::fmt;
use std::io::{self, BufRead};
use std::path::Path;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use shared::billing::{
    AccountId, Currency, EmailAddress, ExternalId, GatewayToken, Label, Locale, Money, NO_CARD_NUMBER, PaymentDay,
    PaymentMethod, Sku, contains_card_number,
};

use crate::Failure;

/// The columns, in any order.
pub const COLUMNS: [&str; 13] = [
    "account",
    "email",
    "name",
    "locale",
    "external_id",
    "sku",
    "product_name",
    "payment_day",
    "amount",
    "currency",
    "customer",
    "payment_method",
    "first_payment_date",
];

/// A row as it is read.
#[derive(Debug, Deserialize)]
struct Raw {
    account: String,
    email: String,
    name: String,
    locale: String,
    external_id: String,
    sku: String,
    product_name: String,
    payment_day: String,
    amount: String,
    currency: String,
    customer: String,
    payment_method: String,
    first_payment_date: String,
}

/// A row as it is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub account: AccountId,
    pub email: EmailAddress,
    pub name: Label,
    pub locale: Locale,
    pub external_id: ExternalId,
    pub sku: Sku,
    pub product_name: Label,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    pub first_payment_on: Option<NaiveDate>,
}

/// A row that is not as it must be. It repeats no text of the row: that may be what must not be kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rejected {
    /// The row's first line in the file, the header's being 1.
    pub line: u64,
    /// The column; blank if it is about the whole row.
    pub field: &'static str,
    /// What is allowed.
    pub reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            "" => write!(f, "line {}: {}", self.line, self.reason),
            field => write!(f, "line {}, {field}: {}", self.line, self.reason),
        }
    }
}

/// The rows of a file, one by one: UTF-8, with or without a byte order mark, lines ending in LF or CRLF.
pub struct Rows<R> {
    reader: csv::Reader<R>,
    header: csv::StringRecord,
}

/// A row and its line, or why it is rejected.
pub type Read = Result<(u64, Row), Rejected>;

/// Reads all rows of the file at `path`.
///
/// # Errors
/// [`Failure::File`] with the line, the column and what is allowed.
pub fn read(path: &Path) -> Result<Vec<Row>, Failure> {
    let wrong = |reason: String| Failure::File { path: path.to_owned(), reason };
    parse(&std::fs::read(path).map_err(|error| wrong(error.to_string()))?).map_err(wrong)
}

/// Reads all rows of a file's `bytes`.
///
/// # Errors
/// The line, the column and what is allowed.
pub fn parse(bytes: &[u8]) -> Result<Vec<Row>, String> {
    let mut rows = Rows::new(bytes)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next_row().map_err(|error| error.to_string())? {
        all.push(row.map_err(|rejected| rejected.to_string())?.1);
    }
    Ok(all)
}

impl<R: BufRead> Rows<R> {
    /// The rows of `file`, whose header must name exactly the columns.
    ///
    /// # Errors
    /// What is wrong with the header, and what is allowed.
    pub fn new(mut file: R) -> Result<Self, String> {
        if file.fill_buf().map_err(|error| error.to_string())?.starts_with(b"\xef\xbb\xbf") {
            file.consume(3);
        }
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(file);
        let header = reader.headers().map_err(|error| format!("the header cannot be read: {error}"))?.clone();
        if let Some(place) = header.iter().position(|column| !COLUMNS.contains(&column)) {
            // A file without a header has a customer in its first line, whom no message repeats.
            let is_name = |text: &str| text.len() <= 40 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let unknown = header.get(place).filter(|name| is_name(name)).unwrap_or_default();
            let number = place.saturating_add(1);
            return Err(format!("column {number} {unknown:?} is not known; the columns are {}", COLUMNS.join(",")));
        }
        let times = |column: &str| header.iter().filter(|name| *name == column).count();
        if let Some(twice) = COLUMNS.into_iter().find(|column| times(column) > 1) {
            return Err(format!("the header names {twice} more than once"));
        }
        let missing: Vec<&str> = COLUMNS.into_iter().filter(|column| times(column) == 0).collect();
        if !missing.is_empty() {
            return Err(format!("the header lacks {}; the columns are {}", missing.join(", "), COLUMNS.join(",")));
        }
        Ok(Self { reader, header })
    }

    /// How many bytes of the file have been read.
    pub fn bytes_read(&self) -> u64 {
        self.reader.position().byte()
    }

    /// The column of `record` that holds a card number. Looked for before anything else, so that no reason repeats it.
    fn card_number(&self, record: &csv::StringRecord) -> Option<&'static str> {
        let columns = self.header.iter().zip(record).filter_map(|(name, text)| Some((column(name)?, text)));
        columns
            .filter(|(column, _)| !matches!(*column, "account" | "sku"))
            .find_map(|(column, text)| contains_card_number(text).then_some(column))
    }

    /// The next row.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn next_row(&mut self) -> io::Result<Option<Read>> {
        let mut record = csv::StringRecord::new();
        let line = self.reader.position().line();
        match self.reader.read_record(&mut record) {
            Ok(false) => Ok(None),
            Ok(true) => {
                let line = record.position().map_or(line, csv::Position::line);
                let read = self.card_number(&record).map_or_else(
                    || {
                        let raw: Result<Raw, _> = record.deserialize(Some(&self.header));
                        raw.map_err(|error| ("", error.to_string())).and_then(Raw::read)
                    },
                    |field| Err((field, NO_CARD_NUMBER.to_owned())),
                );
                Ok(Some(read.map(|row| (line, row)).map_err(|(field, reason)| Rejected { line, field, reason })))
            }
            Err(error) => match error.into_kind() {
                csv::ErrorKind::Io(error) => Err(error),
                csv::ErrorKind::Utf8 { pos, err } => {
                    let field = self.header.get(err.field()).and_then(column).unwrap_or_default();
                    Ok(Some(Err(rejected(pos, line, field, "must be UTF-8".to_owned()))))
                }
                csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                    Ok(Some(Err(rejected(pos, line, "", format!("must have {expected_len} fields, not {len}")))))
                }
                other => Err(io::Error::other(format!("{other:?}"))),
            },
        }
    }
}

fn rejected(position: Option<csv::Position>, line: u64, field: &'static str, reason: String) -> Rejected {
    Rejected { line: position.map_or(line, |position| position.line()), field, reason }
}

fn column(name: &str) -> Option<&'static str> {
    COLUMNS.into_iter().find(|column| *column == name)
}

type Wrong = (&'static str, String);

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(column: &'static str, text: &str) -> Result<T, Wrong> {
    text.parse().map_err(|error: T::Err| (column, error.to_string()))
}

impl Raw {
    fn read(self) -> Result<Row, Wrong> {
        let currency: Currency = parsed("currency", &self.currency)?;
        let price = Money::parse(&self.amount, currency).and_then(|amount| currency.price(amount.minor()));
        let token = |column, text: &str| parsed::<GatewayToken>(column, text);
        Ok(Row {
            account: parsed("account", &self.account)?,
            email: parsed("email", &self.email)?,
            name: parsed("name", &self.name)?,
            locale: if self.locale.is_empty() { Locale::default() } else { parsed("locale", &self.locale)? },
            external_id: parsed("external_id", &self.external_id)?,
            sku: parsed("sku", &self.sku)?,
            product_name: parsed("product_name", &self.product_name)?,
            payment_day: PaymentDay::try_from(parsed::<i64>("payment_day", &self.payment_day)?)
                .map_err(|error| ("payment_day", error.to_string()))?,
            price: price.map_err(|error| ("amount", error.to_string()))?,
            payment_method: PaymentMethod {
                customer: token("customer", &self.customer)?,
                payment_method: token("payment_method", &self.payment_method)?,
            },
            first_payment_on: match self.first_payment_date.as_str() {
                "" => None,
                text => Some(
                    parsed::<NaiveDate>("first_payment_date", text)
                        .map_err(|(column, _)| (column, "must be a date like 2026-03-31".to_owned()))?,
                ),
            },
        })
    }
}
