//! Tables of text that fit the terminal.

use console::{Alignment, Term, measure_text_width, pad_str, style, truncate_str};

/// What stands between two columns.
const GAP: &str = "  ";
/// A text that is cut is left this wide at least.
const MIN_TEXT_WIDTH: usize = 8;

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Always whole: identifiers, dates.
    Whole,
    /// Always whole, aligned to the right.
    Number,
    /// Cut where the terminal is narrow.
    Text,
    /// Left out where the terminal is narrower still.
    Extra,
}

impl Column {
    /// A column that is always shown whole.
    pub const fn whole(name: &'static str) -> Self {
        Self { name, kind: Kind::Whole }
    }

    /// A column of numbers.
    pub const fn number(name: &'static str) -> Self {
        Self { name, kind: Kind::Number }
    }

    /// A column that is cut where the terminal is narrow.
    pub const fn text(name: &'static str) -> Self {
        Self { name, kind: Kind::Text }
    }

    /// A column that is left out where the terminal is narrower still.
    pub const fn extra(name: &'static str) -> Self {
        Self { name, kind: Kind::Extra }
    }
}

/// Rows under their columns' names. On a terminal they fit its width, if what must be whole does.
pub fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let terminal = Term::stdout();
    let width = if terminal.is_term() { usize::from(terminal.size().1) } else { usize::MAX };
    laid_out(columns, &rows, width)
}

fn laid_out(columns: &[Column], rows: &[Vec<String>], width: usize) -> String {
    let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |text| measure_text_width(text));
    let widest = |column: usize| rows.iter().map(|row| cell(row, column)).max().unwrap_or(0);
    // Each column that is shown, with its width.
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
            |(column, width): &(usize, usize)| columns[*column].kind == Kind::Text && *width > MIN_TEXT_WIDTH;
        let is_extra = |(column, _): &(usize, usize)| columns[*column].kind == Kind::Extra;
        if let Some(place) =
            (0..shown.len()).filter(|place| can_shrink(&shown[*place])).max_by_key(|place| shown[*place].1)
        {
            shown[place].1 -= 1;
        } else if let Some(place) = shown.iter().rposition(is_extra) {
            shown.remove(place);
        } else {
            break;
        }
    }
    let line = |text: &dyn Fn(usize) -> String| {
        let cells = shown.iter().map(|&(column, width)| {
            let alignment = if columns[column].kind == Kind::Number { Alignment::Right } else { Alignment::Left };
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
    fn table_fits_the_terminal_and_leaves_identifiers_and_numbers_whole() {
        let columns =
            [Column::whole("id"), Column::text("product"), Column::number("amount"), Column::extra("next payment")];
        let row = |amount: &str| {
            ["01JZXCVBNM", "A very long name of a product", amount, "2027-01-31"].map(str::to_owned).to_vec()
        };
        let rows = [row("12.99"), row("1000.00")];
        let text = |width| laid_out(&columns, &rows, width);
        assert_eq!(
            text(usize::MAX),
            "id          product                         amount  next payment\n\
             01JZXCVBNM  A very long name of a product    12.99  2027-01-31\n\
             01JZXCVBNM  A very long name of a product  1000.00  2027-01-31\n"
        );
        assert_eq!(text(45).lines().nth(1).unwrap(), "01JZXCVBNM  A very lo…    12.99  2027-01-31");
        assert_eq!(text(30).lines().nth(2).unwrap(), "01JZXCVBNM  A very …  1000.00");
        assert_eq!(text(5).lines().nth(2).unwrap(), "01JZXCVBNM  A very …  1000.00", "what must be whole is whole");
    }
}
