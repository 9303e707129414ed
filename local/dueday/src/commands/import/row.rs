//! A row, cell by cell: all that is wrong with it is found at once.

use billing::{
    Account, AccountId, EmailAddress, ExternalId, GatewayToken, Label, Locale, MailStatus, Money, NO_CARD_NUMBER,
    NewSubscription, PaymentDay, PaymentMethod, Sku, SubscriptionId, contains_card_number, first_due_on,
};
use chrono::{DateTime, NaiveDate, Utc};
use csv::ByteRecord;

use super::column::{Column, Header};
use super::mended;
use super::rejects::Rejected;

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

impl Row {
    /// Its subscription, to be known as `id`.
    pub fn subscription(self, id: SubscriptionId) -> NewSubscription {
        NewSubscription {
            account: self.account,
            id,
            sku: self.sku,
            product_name: self.product_name,
            email: None,
            payment_day: self.payment_day,
            price: self.price,
            payment_method: self.payment_method,
            first_payment_on: self.first_payment_on,
        }
    }

    /// The account it is of, as it is created.
    pub fn new_account(&self, now: DateTime<Utc>) -> Account {
        Account {
            id: self.account.clone(),
            email: self.email.clone(),
            name: self.name.clone(),
            locale: self.locale.clone(),
            mail_status: MailStatus::default(),
            created_at: now,
            version: 1,
        }
    }

    /// Reads `record`, which begins on `line`.
    ///
    /// # Errors
    /// Every cell that is not as it must be. Of a row that is to be mended anyhow, also what creating it on `today`
    /// would refuse.
    pub(super) fn read(
        header: &Header,
        record: &ByteRecord,
        line: u64,
        today: NaiveDate,
    ) -> Result<Self, Vec<Rejected>> {
        let mut cells = Cells { header, record, line, wrong: Vec::new() };
        let row = cells.row();
        if row.is_none()
            && let Some(day) = cells.peek(Column::PaymentDay, mended::payment_day)
            && let Some(named) = cells.peek(Column::FirstPaymentDate, mended::date)
            && let Err(refusal) = first_due_on(day, Some(named), today)
        {
            cells.refuse(Column::FirstPaymentDate, &named.to_string(), refusal.to_string());
        }
        row.filter(|_| cells.wrong.is_empty()).ok_or(cells.wrong)
    }
}

/// The cells of one row, and what is wrong with them.
struct Cells<'a> {
    header: &'a Header,
    record: &'a ByteRecord,
    line: u64,
    wrong: Vec<Rejected>,
}

impl<'a> Cells<'a> {
    /// The row; `None` if anything is wrong.
    fn row(&mut self) -> Option<Row> {
        // Every cell is read before any is missed.
        let account = self.cell(Column::Account, plain);
        let email = self.cell(Column::Email, plain);
        let name = self.cell(Column::Name, plain);
        let locale = self.cell(Column::Locale, mended::locale);
        let external_id = self.cell(Column::ExternalId, plain);
        let sku = self.cell(Column::Sku, plain);
        let product_name = self.cell(Column::ProductName, plain);
        let payment_day = self.cell(Column::PaymentDay, mended::payment_day);
        let currency = self.cell(Column::Currency, mended::currency);
        let meant = currency.or_else(|| self.peek(Column::Currency, |text| mended::currency(&text.to_uppercase())));
        let price = meant.and_then(|currency| self.cell(Column::Amount, |text| mended::price(text, currency)));
        let customer = self.cell(Column::Customer, plain::<GatewayToken>);
        let payment_method = self.cell(Column::PaymentMethod, plain::<GatewayToken>);
        let first_payment_on = self.cell(Column::FirstPaymentDate, |text| match text {
            "" => Ok(None),
            text => mended::date(text).map(Some),
        });
        currency?;
        Some(Row {
            account: account?,
            email: email?,
            name: name?,
            locale: locale?,
            external_id: external_id?,
            sku: sku?,
            product_name: product_name?,
            payment_day: payment_day?,
            price: price?,
            payment_method: PaymentMethod { customer: customer?, payment_method: payment_method? },
            first_payment_on: first_payment_on?,
        })
    }

    fn bytes(&self, column: Column) -> &'a [u8] {
        self.record.get(self.header.place(column)).unwrap_or_default()
    }

    fn peek<T>(&self, column: Column, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        read(std::str::from_utf8(self.bytes(column)).ok()?.trim()).ok()
    }

    fn cell<T>(&mut self, column: Column, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let Ok(text) = std::str::from_utf8(self.bytes(column)) else {
            let reason = "must be UTF-8: save the file as \"CSV UTF-8\"";
            self.refuse(column, &String::from_utf8_lossy(self.bytes(column)), reason.to_owned());
            return None;
        };
        let text = text.trim();
        let is_free = !matches!(column, Column::Account | Column::Sku);
        let read = if is_free && contains_card_number(text) {
            self.wrong.push(Rejected::secret(self.line, column, NO_CARD_NUMBER.to_owned()));
            return None;
        } else if text.contains(char::REPLACEMENT_CHARACTER) {
            Err("holds a character that was lost when the file was written: write it again".to_owned())
        } else {
            read(text)
        };
        read.map_err(|reason| self.refuse(column, text, reason)).ok()
    }

    fn refuse(&mut self, column: Column, text: &str, reason: String) {
        self.wrong.push(Rejected::cell(self.line, column, text, reason));
    }
}

fn plain<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
