//! Formats rows as a table that fits the width of the terminal.

use console::{Alignment, Term, measure_text_width, pad_str, style, truncate_str};

/// The space between two columns.
const GAP: &str = "  ";
/// The smallest width, in characters, to which a text column is cut.
const MIN_TEXT_WIDTH: usize = 8;

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    name: &'static str,
    kind: ColumnKind,
}

/// The alignment of a column, and what happens to the column if the terminal is too narrow for the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColumnKind {
    /// The column is never cut, for example because it contains identifiers or dates.
    Whole,
    /// The column is never cut, and is aligned to the right.
    Number,
    /// The column is cut if the terminal is too narrow.
    Text,
    /// The column is left out if the table is still too wide after the text columns are cut.
    Extra,
}

impl Column {
    /// Creates a column that is never cut.
    pub const fn whole(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Whole }
    }

    /// Creates a column of numbers: never cut, aligned to the right.
    pub const fn number(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Number }
    }

    /// Creates a column that is cut if the terminal is too narrow.
    pub const fn text(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Text }
    }

    /// Creates a column that is left out if the table is still too wide after the text columns are cut.
    pub const fn extra(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Extra }
    }
}

/// Formats `rows` below the names of the columns. On a terminal, the table is not wider than the terminal, unless the
/// columns that are never cut are already wider.
pub fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let terminal = Term::stdout();
    let width = if terminal.is_term() { usize::from(terminal.size().1) } else { usize::MAX };
    format_table(columns, &rows, width)
}

/// Formats `rows` like [`table`], for a terminal with `width` characters per line.
fn format_table(columns: &[Column], rows: &[Vec<String>], width: usize) -> String {
    let cell_width = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |text| measure_text_width(text));
    let widest = |column: usize| rows.iter().map(|row| cell_width(row, column)).max().unwrap_or(0);
    // The index and the width of each column that is shown.
    let mut shown: Vec<(usize, usize)> = columns
        .iter()
        .enumerate()
        .map(|(column, Column { name, .. })| (column, widest(column).max(measure_text_width(name))))
        .collect();
    let total = |shown: &[(usize, usize)]| {
        shown.iter().map(|(_, width)| width + GAP.len()).sum::<usize>().saturating_sub(GAP.len())
    };
    while total(&shown) > width {
        let can_shrink =
            |(column, width): &(usize, usize)| columns[*column].kind == ColumnKind::Text && *width > MIN_TEXT_WIDTH;
        let is_extra = |(column, _): &(usize, usize)| columns[*column].kind == ColumnKind::Extra;
        if let Some(index) =
            (0..shown.len()).filter(|index| can_shrink(&shown[*index])).max_by_key(|index| shown[*index].1)
        {
            shown[index].1 -= 1;
        } else if let Some(index) = shown.iter().rposition(is_extra) {
            shown.remove(index);
        } else {
            break;
        }
    }
    let line = |text: &dyn Fn(usize) -> String| {
        let cells = shown.iter().map(|&(column, width)| {
            let alignment = if columns[column].kind == ColumnKind::Number { Alignment::Right } else { Alignment::Left };
            pad_str(&truncate_str(&text(column), width, "…"), width, alignment, None).into_owned()
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let header = line(&|column| columns[column].name.to_owned());
    let rows: String = rows.iter().map(|row| line(&|column| row.get(column).cloned().unwrap_or_default())).collect();
    format!("{}\n{rows}", style(header.trim_end()).bold())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_fits_the_terminal_and_never_cuts_identifiers_and_numbers() {
        let columns =
            [Column::whole("id"), Column::text("product"), Column::number("amount"), Column::extra("next payment")];
        let row = |amount: &str| {
            ["01JZXCVBNM", "A very long name of a product", amount, "2027-01-31"].map(str::to_owned).to_vec()
        };
        let rows = [row("12.99"), row("1000.00")];
        let text = |width| format_table(&columns, &rows, width);
        assert_eq!(
            text(usize::MAX),
            "id          product                         amount  next payment\n\
             01JZXCVBNM  A very long name of a product    12.99  2027-01-31\n\
             01JZXCVBNM  A very long name of a product  1000.00  2027-01-31\n"
        );
        assert_eq!(text(45).lines().nth(1).unwrap(), "01JZXCVBNM  A very lo…    12.99  2027-01-31");
        assert_eq!(text(30).lines().nth(2).unwrap(), "01JZXCVBNM  A very …  1000.00");
        let narrow = text(5);
        let line = narrow.lines().nth(2).unwrap();
        assert_eq!(line, "01JZXCVBNM  A very …  1000.00", "identifiers and numbers are never cut");
    }
}
