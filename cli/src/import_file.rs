//! Subscriptions in a CSV file.

use std::path::Path;

use chrono::NaiveDate;
use serde::Deserialize;
use shared::billing::{
    AccountId, Currency, EmailAddress, GatewayToken, Label, Locale, Money, PaymentDay, PaymentMethod, Sku,
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
    pub external_id: String,
    pub sku: Sku,
    pub product_name: Label,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    pub first_payment_on: Option<NaiveDate>,
}

/// Reads all rows of the file at `path`: UTF-8, with or without a byte order mark.
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
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let missing: Vec<&str> = COLUMNS.into_iter().filter(|column| !header.iter().any(|h| h == *column)).collect();
    if let Some(unknown) = header.iter().find(|column| !COLUMNS.contains(column)) {
        return Err(format!("unknown column {unknown:?}; the columns are {}", COLUMNS.join(",")));
    }
    if !missing.is_empty() {
        return Err(format!("the header lacks {}; the columns are {}", missing.join(", "), COLUMNS.join(",")));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let raw: Raw = record.deserialize(Some(&header)).map_err(|error| format!("line {line}: {error}"))?;
        rows.push(raw.read().map_err(|(column, reason)| format!("line {line}, {column}: {reason}"))?);
    }
    Ok(rows)
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
        if self.external_id.is_empty() {
            return Err(("external_id", "must not be empty".to_owned()));
        }
        Ok(Row {
            account: parsed("account", &self.account)?,
            email: parsed("email", &self.email)?,
            name: parsed("name", &self.name)?,
            locale: if self.locale.is_empty() { Locale::default() } else { parsed("locale", &self.locale)? },
            external_id: self.external_id,
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
