//! The columns of a file to import.

use strum::{Display, IntoStaticStr, VariantArray};

/// A column; a file has all of them, in any order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Column {
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
}

/// The header's word for nothing that is known is repeated only if it looks like a column: a file without a header has a
/// customer in its first line.
const MAX_NAME_CHARS: usize = 40;

/// Where each column stands.
#[derive(Clone, Debug)]
pub struct Header {
    places: [usize; Column::VARIANTS.len()],
    pub width: usize,
}

impl Header {
    /// Reads the cells of the first line: the columns' names by their letters, so that `Payment Day` is `payment_day`.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn read<'a>(cells: impl Iterator<Item = &'a [u8]>) -> Result<Self, String> {
        let listed =
            |columns: &[Column], between| columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(between);
        let allowed = || format!("the columns are {}", listed(Column::VARIANTS, ","));
        let names: Vec<String> = cells.map(|cell| name_of(&String::from_utf8_lossy(cell))).collect();
        let columns: Vec<Option<Column>> = names.iter().map(|name| column_of(name)).collect();
        if columns.iter().all(Option::is_none) {
            return Err(format!("the first line must name the columns, and names none of them; {}", allowed()));
        }
        if let Some(place) = columns.iter().position(Option::is_none) {
            let shown = names.get(place).filter(|name| is_name(name)).map_or("", String::as_str);
            return Err(format!("column {} {shown:?} is not known; {}", place.saturating_add(1), allowed()));
        }
        let places = |wanted: Column| (0..).zip(&columns).filter(move |(_, column)| **column == Some(wanted));
        if let Some(twice) = Column::VARIANTS.iter().find(|column| places(**column).count() > 1) {
            return Err(format!("the header names {twice} more than once"));
        }
        let place = |column: Column| places(column).next().map(|(place, _)| place);
        let missing: Vec<Column> = Column::VARIANTS.iter().copied().filter(|column| place(*column).is_none()).collect();
        if !missing.is_empty() {
            return Err(format!("the header lacks {}; {}", listed(&missing, ", "), allowed()));
        }
        let mut header = Self { places: Default::default(), width: columns.len() };
        for (at, column) in header.places.iter_mut().zip(Column::VARIANTS) {
            *at = place(*column).unwrap_or_default();
        }
        Ok(header)
    }

    /// Where `column` stands in a row.
    pub fn place(&self, column: Column) -> usize {
        self.places[column as usize]
    }
}

fn name_of(cell: &str) -> String {
    cell.chars().filter(|c| !matches!(c, '_' | '-') && !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

fn column_of(name: &str) -> Option<Column> {
    Column::VARIANTS.iter().copied().find(|column| name_of(&column.to_string()) == name)
}

fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME_CHARS && text.bytes().all(|b| b.is_ascii_lowercase())
}
