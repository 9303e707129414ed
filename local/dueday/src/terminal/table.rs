//! Formats rows as a table. If the terminal is too narrow for the table, wraps its texts, or prints a block of lines for
//! each row. No value is cut or left out.

use console::{Alignment, Term, measure_text_width, pad_str, style};

/// The space between two columns.
const GAP: &str = "  ";
/// The smallest width, in characters, to which a text column is wrapped.
const MIN_TEXT_WIDTH: usize = 20;

/// A column of a table. A column without a name belongs to the column before it, such as the currency of an amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableColumn {
    name: &'static str,
    kind: ColumnKind,
}

/// The alignment of a column, and whether its cells may be wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColumnKind {
    /// The cells are never wrapped, for example because a person copies the identifiers in them.
    Whole,
    /// The cells are never wrapped, and are aligned to the right.
    Number,
    /// The cells are wrapped between two words if the terminal is too narrow.
    Text,
}

impl TableColumn {
    /// Creates a column that is never wrapped.
    pub const fn unwrapped(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Whole }
    }

    /// Creates a column of numbers: never wrapped, aligned to the right.
    pub const fn number(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Number }
    }

    /// Creates a column that is wrapped between two words if the terminal is too narrow.
    pub const fn text(name: &'static str) -> Self {
        Self { name, kind: ColumnKind::Text }
    }
}

/// A row of a table: the cells in the order of the columns. Missing cells at the end are empty.
type TableRow = Vec<String>;

/// Formats `rows` below the names of the columns. If standard output is a terminal that is too narrow for the table,
/// prints the same values in less width, see [`format_table_for_width`].
pub fn format_table(columns: &[TableColumn], rows: impl IntoIterator<Item = TableRow>) -> String {
    let rows: Vec<TableRow> = rows.into_iter().collect();
    let terminal = Term::stdout();
    let width = if terminal.is_term() { usize::from(terminal.size().1) } else { usize::MAX };
    format_table_for_width(columns, &rows, width)
}

/// Formats `rows` for a terminal with `width` characters per line. Uses the first of these formats that fits: the whole
/// table; the table without its empty columns; the same table with wrapped texts; a block of lines for each row.
fn format_table_for_width(columns: &[TableColumn], rows: &[TableRow], width: usize) -> String {
    let all: Vec<usize> = (0..columns.len()).collect();
    let natural = |column: &usize| {
        let cells = rows.iter().map(|row| measure_text_width(cell_text(row, *column)));
        (*column, cells.max().unwrap_or(0).max(measure_text_width(columns[*column].name)))
    };
    let whole: Vec<(usize, usize)> = all.iter().map(natural).collect();
    if table_width(&whole) <= width {
        return format_grid(columns, rows, &whole);
    }
    let has_value = |(column, _): &(usize, usize)| rows.iter().any(|row| !cell_text(row, *column).is_empty());
    let mut shown: Vec<(usize, usize)> = whole.into_iter().filter(has_value).collect();
    while table_width(&shown) > width {
        let can_shrink = |(column, width): &(usize, usize)| *width > smallest_column_width(columns, rows, *column);
        let widest = (0..shown.len()).filter(|index| can_shrink(&shown[*index])).max_by_key(|index| shown[*index].1);
        let Some(widest) = widest else {
            let with_value: Vec<usize> = shown.into_iter().map(|(column, _)| column).collect();
            return format_blocks(columns, &with_value, rows, width);
        };
        shown[widest].1 -= 1;
    }
    format_grid(columns, rows, &shown)
}

/// Returns the text of the cell of `row` in the column with the index `column`.
fn cell_text(row: &TableRow, column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// Returns the width of a line with the `shown` columns: each with its index and its width.
fn table_width(shown: &[(usize, usize)]) -> usize {
    shown.iter().map(|(_, width)| width + GAP.len()).sum::<usize>().saturating_sub(GAP.len())
}

/// Returns the smallest width of a column: no word is cut, and a coloured text is not wrapped.
fn smallest_column_width(columns: &[TableColumn], rows: &[TableRow], column: usize) -> usize {
    let TableColumn { name, kind } = columns[column];
    if kind != ColumnKind::Text {
        return usize::MAX;
    }
    let cells = || rows.iter().map(|row| cell_text(row, column));
    let longest = cells().flat_map(split_into_words).map(measure_text_width).max().unwrap_or(0);
    longest.max(MIN_TEXT_WIDTH).max(measure_text_width(name))
}

/// Returns the parts of `text` between which a line may end.
fn split_into_words(text: &str) -> Vec<&str> {
    let is_coloured = text.contains('\u{1b}');
    if is_coloured { vec![text] } else { text.split_whitespace().collect() }
}

/// Wraps `text` between two words into lines of at most `width` characters. A longer word gets a line of its own.
fn wrap_text(text: &str, width: usize) -> Vec<String> {
    if measure_text_width(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in split_into_words(text) {
        match lines.last_mut() {
            Some(line) if measure_text_width(line) + 1 + measure_text_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Formats `rows` as lines below the names of the `shown` columns: each with its index and its width.
fn format_grid(columns: &[TableColumn], rows: &[TableRow], shown: &[(usize, usize)]) -> String {
    let line = |text: &dyn Fn(usize, usize) -> String| {
        let cells = shown.iter().map(|&(column, width)| {
            let alignment = if columns[column].kind == ColumnKind::Number { Alignment::Right } else { Alignment::Left };
            pad_str(&text(column, width), width, alignment, None).into_owned()
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let header = line(&|column, _| columns[column].name.to_owned());
    let lines = |row: &TableRow| -> String {
        let wrapped = |(column, width): &(usize, usize)| wrap_text(cell_text(row, *column), *width).len();
        let height = shown.iter().map(wrapped).max().unwrap_or(1);
        let part = |index: usize| {
            line(&|column, width| wrap_text(cell_text(row, column), width).get(index).cloned().unwrap_or_default())
        };
        (0..height).map(part).collect()
    };
    let rows: String = rows.iter().map(lines).collect();
    format!("{}\n{rows}", style(header.trim_end()).bold())
}

/// Formats each row as a block of lines: a line for each of the `shown` columns in which the row has a value. The first
/// line begins at the margin, and the others are indented.
fn format_blocks(columns: &[TableColumn], shown: &[usize], rows: &[TableRow], width: usize) -> String {
    let label_width = shown.iter().map(|column| measure_text_width(columns[*column].name)).max().unwrap_or(0);
    let block = |row: &TableRow| -> String {
        let mut values: Vec<(&str, String)> = Vec::new();
        for &column in shown.iter().filter(|column| !cell_text(row, **column).is_empty()) {
            let (name, text) = (columns[column].name, cell_text(row, column));
            match values.last_mut() {
                Some((_, value)) if name.is_empty() => *value += &format!(" {text}"),
                _ => values.push((name, text.to_owned())),
            }
        }
        let lines = values.iter().enumerate().map(|(index, (name, value))| {
            let indent = if index == 0 { "" } else { GAP };
            let label = pad_str(name, label_width + GAP.len() - indent.len(), Alignment::Left, None).into_owned();
            let margin = GAP.len() * 2 + label_width;
            let value = wrap_text(value, width.saturating_sub(margin)).join(&format!("\n{}", " ".repeat(margin)));
            format!("{indent}{}{GAP}{value}\n", if index == 0 { style(label).bold().to_string() } else { label })
        });
        lines.collect()
    };
    rows.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [TableColumn; 5] = [
        TableColumn::unwrapped("id"),
        TableColumn::text("product"),
        TableColumn::number("amount"),
        TableColumn::unwrapped(""),
        TableColumn::unwrapped("cancelled on"),
    ];

    fn sample_table_text(width: usize) -> String {
        let row = |id: &str, amount: &str| {
            [id, "A very long name of a product", amount, "EUR", ""].map(str::to_owned).to_vec()
        };
        format_table_for_width(&COLUMNS, &[row("01JZXCVBNM", "12.99"), row("01JZXCVBNN", "1000.00")], width)
    }

    #[test]
    fn table_that_fits_has_all_columns() {
        assert_eq!(
            sample_table_text(usize::MAX),
            "id          product                         amount       cancelled on\n\
             01JZXCVBNM  A very long name of a product    12.99  EUR\n\
             01JZXCVBNN  A very long name of a product  1000.00  EUR\n"
        );
    }

    #[test]
    fn table_that_is_too_wide_loses_its_empty_columns_and_wraps_its_texts_between_words() {
        assert_eq!(
            sample_table_text(60),
            "id          product                         amount\n\
             01JZXCVBNM  A very long name of a product    12.99  EUR\n\
             01JZXCVBNN  A very long name of a product  1000.00  EUR\n"
        );
        assert_eq!(
            sample_table_text(50),
            "id          product                    amount\n\
             01JZXCVBNM  A very long name of a       12.99  EUR\n\
             \u{20}           product\n\
             01JZXCVBNN  A very long name of a     1000.00  EUR\n\
             \u{20}           product\n"
        );
    }

    #[test]
    fn narrow_terminal_gets_a_block_for_each_row_in_which_no_identifier_is_cut() {
        assert_eq!(
            sample_table_text(30),
            "id         01JZXCVBNM\n\
             \u{20} product  A very long name of\n\
             \u{20}          a product\n\
             \u{20} amount   12.99 EUR\n\
             id         01JZXCVBNN\n\
             \u{20} product  A very long name of\n\
             \u{20}          a product\n\
             \u{20} amount   1000.00 EUR\n"
        );
        assert!(sample_table_text(5).contains("01JZXCVBNN\n"));
    }

    #[test]
    fn wrap_keeps_a_coloured_text_and_a_long_word_whole() {
        assert_eq!(wrap_text("\u{1b}[31mpast due\u{1b}[0m", 3), ["\u{1b}[31mpast due\u{1b}[0m"]);
        assert_eq!(wrap_text("to billing@acme.example.com now", 8), ["to", "billing@acme.example.com", "now"]);
    }
}
