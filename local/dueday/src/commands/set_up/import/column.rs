//! The columns of a CSV file with subscriptions to import.

use strum::{Display, IntoStaticStr, VariantArray};

/// A column of the file. Each file must have all columns except the [optional](ImportColumn::is_optional) ones, in
/// any order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ImportColumn {
    Account,
    Email,
    Name,
    Locale,
    ExternalId,
    Sku,
    ProductName,
    PaymentDay,
    Amount,
    Currency,
    Customer,
    PaymentMethod,
    FirstPaymentDate,
    AllowSecond,
    /// The id of the subscription; blank to compute it from the account and the external id.
    Subscription,
    /// The own address of the subscription for mails.
    OwnEmail,
    Status,
    /// The due date of the first payment that is not charged because of a planned cancellation.
    CancelDate,
    /// Why the table from which the subscription was exported must settle something first; blank if it need not.
    ImportObstacle,
}

/// Further columns that `dueday export subscriptions` writes. An import ignores them, because the new system computes
/// their values.
const IGNORED_COLUMNS: [&str; 5] =
    ["next_payment_date", "next_reminder_date", "last_payment_at", "failed_attempts", "created_at"];

/// The name under which an export writes the first payment date: the due date of the next payment.
const EXPORTED_FIRST_PAYMENT_DATE: &str = "due_date";

impl ImportColumn {
    /// Returns whether a file may lack the column.
    fn is_optional(self) -> bool {
        matches!(
            self,
            Self::AllowSecond
                | Self::Subscription
                | Self::OwnEmail
                | Self::Status
                | Self::CancelDate
                | Self::ImportObstacle
        )
    }
}

/// The length of the longest unknown column name that an error message contains. A longer text may be personal data: if
/// a file has no header, its first line describes a customer.
const MAX_NAME_CHARS: usize = 40;

/// The header of a file: the position of each column in a row.
#[derive(Clone, Debug)]
pub struct ImportHeader {
    positions: [Option<usize>; ImportColumn::VARIANTS.len()],
    /// The number of cells in each row. Further cells at the end of a row must be blank.
    pub width: usize,
}

impl ImportHeader {
    /// Reads the cells of the first line. Ignores case, spaces, `_` and `-`, so `Payment Day` means `payment_day`. Ignores
    /// blank cells at the end, which spreadsheet programs write.
    ///
    /// # Errors
    /// If the first line does not contain the name of every required column exactly once, or contains any other name.
    /// The message states the problem and the allowed columns.
    pub fn parse_first_line<'a>(cells: impl Iterator<Item = &'a [u8]>) -> Result<Self, String> {
        let join = |columns: &[ImportColumn], separator| {
            columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
        };
        let allowed = || format!("the columns are {}", join(ImportColumn::VARIANTS, ","));
        let mut names: Vec<String> = cells.map(|cell| normalize_column_name(&String::from_utf8_lossy(cell))).collect();
        names.truncate(names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last.saturating_add(1)));
        let columns: Vec<Option<ImportColumn>> = names.iter().map(|name| column_by_name(name)).collect();
        if columns.iter().all(Option::is_none) {
            return Err(format!("the first line must contain the column names, but contains none; {}", allowed()));
        }
        let is_unknown =
            |(name, column): (&String, &Option<ImportColumn>)| column.is_none() && !is_ignored_column(name);
        if let Some(index) = names.iter().zip(&columns).position(is_unknown) {
            let shown = names.get(index).filter(|name| may_be_column_name(name)).map_or("", String::as_str);
            return Err(format!("column {} {shown:?} is unknown; {}", index.saturating_add(1), allowed()));
        }
        let positions = |wanted: ImportColumn| (0..).zip(&columns).filter(move |(_, column)| **column == Some(wanted));
        if let Some(repeated) = ImportColumn::VARIANTS.iter().find(|column| positions(**column).count() > 1) {
            return Err(format!("the header contains {repeated} more than once"));
        }
        let position = |column: ImportColumn| positions(column).next().map(|(index, _)| index);
        let is_missing = |column: &ImportColumn| !column.is_optional() && position(*column).is_none();
        let missing: Vec<ImportColumn> = ImportColumn::VARIANTS.iter().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(format!("the header lacks {}; {}", join(&missing, ", "), allowed()));
        }
        let mut header = Self { positions: Default::default(), width: columns.len() };
        for (index, column) in header.positions.iter_mut().zip(ImportColumn::VARIANTS) {
            *index = position(*column);
        }
        Ok(header)
    }

    /// Returns the index of the cell of `column` in a row; `None` if the file does not have this column.
    pub fn column_index(&self, column: ImportColumn) -> Option<usize> {
        self.positions[column as usize]
    }
}

/// Returns the name in `cell` in lower case, without spaces, `_` and `-`.
fn normalize_column_name(cell: &str) -> String {
    cell.chars().filter(|c| !matches!(c, '_' | '-') && !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Returns the column with the normalized name `name`.
fn column_by_name(name: &str) -> Option<ImportColumn> {
    if name == normalize_column_name(EXPORTED_FIRST_PAYMENT_DATE) {
        return Some(ImportColumn::FirstPaymentDate);
    }
    ImportColumn::VARIANTS.iter().copied().find(|column| normalize_column_name(&column.to_string()) == name)
}

/// Returns whether the column with the normalized name `name` is ignored.
fn is_ignored_column(name: &str) -> bool {
    IGNORED_COLUMNS.iter().any(|ignored| normalize_column_name(ignored) == name)
}

/// Returns whether an error message may contain `text`: a short text of lower-case letters is no personal data.
fn may_be_column_name(text: &str) -> bool {
    text.len() <= MAX_NAME_CHARS && text.bytes().all(|b| b.is_ascii_lowercase())
}
