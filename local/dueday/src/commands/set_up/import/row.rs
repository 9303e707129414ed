//! Reads the cells of a row, and reports all invalid cells at once.

use billing::{
    Account, AccountId, EmailAddress, ExternalId, GatewayToken, Label, Locale, MailStatus, Money, NO_CARD_NUMBER,
    NewSubscription, PaymentDay, PaymentMethod, Sku, Subscription, SubscriptionId, SubscriptionStatus,
    contains_card_number, first_due_on,
};
use chrono::{DateTime, NaiveDate, Utc};
use csv::ByteRecord;

use super::column::{ImportColumn, ImportHeader};
use super::parse_cell;
use super::rejects::Rejected;
use crate::commands::value_parsers;
use crate::terminal::spreadsheet_cell::unescape_formulas;

/// A valid row of an import: a subscription, and the account that it belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportRow {
    pub account: AccountId,
    pub email: EmailAddress,
    pub name: Label,
    pub locale: Locale,
    /// The id of the subscription: from the file, or computed from the account and the external id.
    pub id: SubscriptionId,
    pub external_id: Option<ExternalId>,
    /// The own address of the subscription for mails; `None` if the file contains none.
    pub own_email: Option<EmailAddress>,
    pub sku: Sku,
    pub product_name: Label,
    pub payment_day: PaymentDay,
    pub price: Money,
    pub payment_method: PaymentMethod,
    pub first_payment_on: Option<NaiveDate>,
    /// Whether the account may have another subscription of the same SKU.
    pub allow_second: bool,
    /// The status; `None` if the file contains none, so a new subscription is active.
    pub status: Option<SubscriptionStatus>,
    /// The date of the planned cancellation; `None` if the file contains none.
    pub cancel_on: Option<NaiveDate>,
}

impl ImportRow {
    /// Returns the data to create the row's subscription with the id `id`.
    pub fn subscription(self, id: SubscriptionId) -> NewSubscription {
        NewSubscription {
            account: self.account,
            id,
            external_id: self.external_id,
            sku: self.sku,
            product_name: self.product_name,
            email: self.own_email,
            payment_day: self.payment_day,
            price: self.price,
            payment_method: self.payment_method,
            first_payment_on: self.first_payment_on,
            allow_second: self.allow_second,
        }
    }

    /// Checks that a subscription can be created with the status of the row.
    ///
    /// # Errors
    /// The cell with the status, if it is neither active nor paused.
    pub fn check_status(&self, line: u64) -> Result<(), Rejected> {
        match self.status {
            None | Some(SubscriptionStatus::Active | SubscriptionStatus::Paused) => Ok(()),
            Some(
                status @ (SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid | SubscriptionStatus::Cancelled),
            ) => {
                let reason = "only subscriptions that are active or paused can be created by an import";
                Err(Rejected::cell(line, ImportColumn::Status, &status.to_string(), reason.to_owned()))
            }
        }
    }

    /// Returns `created`, the new subscription of this row, with the status and the planned cancellation of the row.
    ///
    /// # Errors
    /// The invalid cell: a subscription that cannot be paused, or a date on which it cannot end.
    pub fn with_initial_state(
        &self,
        created: Subscription,
        line: u64,
        today: NaiveDate,
    ) -> Result<Subscription, Rejected> {
        let created = match self.cancel_on {
            None => created,
            Some(on) => created.ending_on(on).map_err(|refusal| {
                Rejected::cell(line, ImportColumn::CancelDate, &on.to_string(), refusal.to_string())
            })?,
        };
        if self.status != Some(SubscriptionStatus::Paused) {
            return Ok(created);
        }
        created.pause(today).map_err(|refusal| {
            Rejected::cell(line, ImportColumn::Status, &SubscriptionStatus::Paused.to_string(), refusal.to_string())
        })
    }

    /// Returns the row's account as a new account that is created at `now`.
    pub fn new_account(&self, now: DateTime<Utc>) -> Account {
        Account {
            id: self.account.clone(),
            email: self.email.clone(),
            name: self.name.clone(),
            locale: self.locale.clone(),
            mail_status: MailStatus::default(),
            created_at: now,
            erasure_requested_at: None,
            version: 1,
        }
    }

    /// Reads the row in `record`, which begins on line `line` of the file.
    ///
    /// # Errors
    /// All invalid cells. If the row has an invalid cell, its first payment date is also checked against `today`;
    /// otherwise the creation of the subscription checks the date.
    pub(super) fn parse_record(
        header: &ImportHeader,
        record: &ByteRecord,
        line: u64,
        today: Option<NaiveDate>,
    ) -> Result<Self, Vec<Rejected>> {
        let mut cells = RowCells { header, record, line, rejections: Vec::new() };
        let row = cells.parse_row();
        if row.is_none()
            && let Some(day) = cells.parse_if_valid(ImportColumn::PaymentDay, value_parsers::parse_payment_day)
            && let Some(named) = cells.parse_if_valid(ImportColumn::FirstPaymentDate, parse_cell::parse_date_cell)
            && let Some(today) = today
            && let Err(refusal) = first_due_on(day, Some(named), today)
        {
            cells.reject_cell(ImportColumn::FirstPaymentDate, &named.to_string(), refusal.to_string());
        }
        row.filter(|_| cells.rejections.is_empty()).ok_or(cells.rejections)
    }
}

/// The cells of one row, and the reasons to reject it.
struct RowCells<'a> {
    header: &'a ImportHeader,
    record: &'a ByteRecord,
    line: u64,
    rejections: Vec<Rejected>,
}

impl<'a> RowCells<'a> {
    /// Parses all cells of the row; `None` if a cell is invalid.
    fn parse_row(&mut self) -> Option<ImportRow> {
        // Read all cells before returning, so that all invalid cells are reported.
        let account = self.parse_or_reject(ImportColumn::Account, parse_cell_text);
        let email = self.parse_or_reject(ImportColumn::Email, parse_cell_text);
        let name = self.parse_or_reject(ImportColumn::Name, parse_cell_text);
        let locale = self.parse_or_reject(ImportColumn::Locale, parse_cell::parse_locale);
        let id = self
            .parse_or_reject(ImportColumn::Subscription, parser_of_optional_cell(parse_cell_text::<SubscriptionId>));
        // A row with the id of its subscription needs no external id.
        let is_optional = id.as_ref().is_some_and(Option::is_some);
        let external_id = self.parse_or_reject(ImportColumn::ExternalId, |text| match text {
            "" if is_optional => Ok(None),
            text => parse_cell::parse_external_id(text).map(Some),
        });
        let own_email =
            self.parse_or_reject(ImportColumn::OwnEmail, parser_of_optional_cell(parse_cell_text::<EmailAddress>));
        let sku = self.parse_or_reject(ImportColumn::Sku, parse_cell_text);
        let product_name = self.parse_or_reject(ImportColumn::ProductName, parse_cell_text);
        let payment_day = self.parse_or_reject(ImportColumn::PaymentDay, value_parsers::parse_payment_day);
        let currency = self.parse_or_reject(ImportColumn::Currency, parse_cell::parse_currency);
        let intended = currency.or_else(|| {
            self.parse_if_valid(ImportColumn::Currency, |text| parse_cell::parse_currency(&text.to_uppercase()))
        });
        let price = intended.and_then(|currency| {
            self.parse_or_reject(ImportColumn::Amount, |text| parse_cell::parse_price(text, currency))
        });
        let customer = self.parse_or_reject(ImportColumn::Customer, parse_cell_text::<GatewayToken>);
        let payment_method = self.parse_or_reject(ImportColumn::PaymentMethod, parse_cell_text::<GatewayToken>);
        let first_payment_on =
            self.parse_or_reject(ImportColumn::FirstPaymentDate, parser_of_optional_cell(parse_cell::parse_date_cell));
        let allow_second = self.parse_or_reject(ImportColumn::AllowSecond, parse_cell::parse_flag);
        let status = self.parse_or_reject(ImportColumn::Status, parser_of_optional_cell(parse_cell::parse_status_cell));
        let cancel_on =
            self.parse_or_reject(ImportColumn::CancelDate, parser_of_optional_cell(parse_cell::parse_date_cell));
        let no_obstacle = self.parse_or_reject(ImportColumn::ImportObstacle, parse_cell::check_no_obstacle);
        currency?;
        no_obstacle?;
        let (account, external_id) = (account?, external_id?);
        let id = self.subscription_id(id?, external_id.as_ref(), &account)?;
        Some(ImportRow {
            account,
            id,
            email: email?,
            name: name?,
            locale: locale?,
            external_id,
            own_email: own_email?,
            sku: sku?,
            product_name: product_name?,
            payment_day: payment_day?,
            price: price?,
            payment_method: PaymentMethod { customer: customer?, payment_method: payment_method? },
            first_payment_on: first_payment_on?,
            allow_second: allow_second?,
            status: status?,
            cancel_on: cancel_on?,
        })
    }

    /// Returns the id of the row's subscription: the `given` id, or the id that is computed from the account and the
    /// external id. If both exist and differ, adds the cell to the rejections and returns `None`.
    fn subscription_id(
        &mut self,
        given: Option<SubscriptionId>,
        external_id: Option<&ExternalId>,
        account: &AccountId,
    ) -> Option<SubscriptionId> {
        let computed = external_id.map(|external_id| external_id.subscription_id(account));
        if let (Some(given), Some(computed)) = (given, computed)
            && given != computed
        {
            let reason =
                "is not the id that belongs to account and external_id: leave subscription or external_id blank";
            self.reject_cell(ImportColumn::Subscription, &given.to_string(), reason.to_owned());
            return None;
        }
        given.or(computed)
    }

    /// Returns the bytes of the cell of `column`; none if the file does not have this column.
    fn cell_bytes(&self, column: ImportColumn) -> &'a [u8] {
        self.header.column_index(column).and_then(|index| self.record.get(index)).unwrap_or_default()
    }

    /// Parses the cell of `column` with `read`; `None` if the cell is invalid. Does not add an invalid cell to the
    /// rejections.
    fn parse_if_valid<T>(&self, column: ImportColumn, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = std::str::from_utf8(self.cell_bytes(column)).ok()?;
        read(&unescape_formulas(text.trim())).ok()
    }

    /// Parses the cell of `column` with `read`. If the cell is invalid, adds it to the rejections and returns `None`.
    fn parse_or_reject<T>(&mut self, column: ImportColumn, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let Ok(text) = std::str::from_utf8(self.cell_bytes(column)) else {
            let reason = "must be UTF-8: save the file as \"CSV UTF-8\"";
            self.reject_cell(column, &String::from_utf8_lossy(self.cell_bytes(column)), reason.to_owned());
            return None;
        };
        let text = &*unescape_formulas(text.trim());
        // Ids and tokens may look like card numbers, so they are not checked for card numbers.
        let is_id = matches!(
            column,
            ImportColumn::Account
                | ImportColumn::Subscription
                | ImportColumn::Sku
                | ImportColumn::ExternalId
                | ImportColumn::Customer
                | ImportColumn::PaymentMethod
        );
        let read = if !is_id && contains_card_number(text) {
            self.rejections.push(Rejected::private_cell(self.line, column, NO_CARD_NUMBER.to_owned()));
            return None;
        } else if text.contains(char::REPLACEMENT_CHARACTER) {
            Err("contains a character that was lost when the file was saved: correct it".to_owned())
        } else {
            read(text)
        };
        read.map_err(|reason| self.reject_cell(column, text, reason)).ok()
    }

    /// Adds the cell of `column` with the content `text` to the rejections.
    fn reject_cell(&mut self, column: ImportColumn, text: &str, reason: String) {
        self.rejections.push(Rejected::cell(self.line, column, text, reason));
    }
}

/// Returns a parser for cells that may be blank: `None` for a blank cell, otherwise the value that `parse` returns.
fn parser_of_optional_cell<T>(
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> impl FnOnce(&str) -> Result<Option<T>, String> {
    |text| if text.is_empty() { Ok(None) } else { parse(text).map(Some) }
}

/// Parses `text`; an error becomes the text of the message.
fn parse_cell_text<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
