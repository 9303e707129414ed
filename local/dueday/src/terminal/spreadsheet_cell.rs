//! Cells of CSV files that are opened in a spreadsheet program.

use std::borrow::Cow;

/// The characters at which a spreadsheet program may begin a new cell, although the files are separated by commas. In
/// many countries, spreadsheet programs expect the semicolon. They then also split a cell in double quotes, because the
/// quotes are not at the start of what the program takes for the cell.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// The characters with which a formula begins ("CSV Injection" of OWASP). Some spreadsheet programs also accept the
/// full-width forms.
const FORMULA_STARTS: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Returns `text` with a `'` in front of each part that a spreadsheet program would evaluate as a formula: the whole text,
/// and each part after a character at which the program may begin a new cell.
pub fn escape_formulas(text: &str) -> Cow<'_, str> {
    if !cell_start_positions(text).any(|start| is_formula(&text[start..])) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 1);
    let mut is_start = true;
    for (position, character) in text.char_indices() {
        if is_start && is_formula(&text[position..]) {
            escaped.push('\'');
        }
        escaped.push(character);
        is_start = SEPARATORS.contains(&character);
    }
    escaped.into()
}

/// Returns `text` without each `'` that [`escape_formulas`] has added.
pub fn unescape_formulas(text: &str) -> Cow<'_, str> {
    if !text.contains('\'') {
        return text.into();
    }
    let mut original = String::with_capacity(text.len());
    let mut is_start = true;
    for (position, character) in text.char_indices() {
        let rest = &text[position..];
        if is_start && rest.strip_prefix('\'').is_some_and(is_formula) {
            is_start = false;
            continue;
        }
        original.push(character);
        is_start = SEPARATORS.contains(&character);
    }
    original.into()
}

/// Returns the positions in `text` at which a spreadsheet program may begin a cell.
fn cell_start_positions(text: &str) -> impl Iterator<Item = usize> {
    let after_separators = text.char_indices().filter(|(_, character)| SEPARATORS.contains(character));
    std::iter::once(0).chain(after_separators.map(|(position, separator)| position + separator.len_utf8()))
}

/// Returns whether a spreadsheet program would evaluate `text` as a formula. Quotes and spaces before the formula do not
/// count, because some programs remove them. A `'` does not count either: so a text that already has a `'` gets another
/// one, and [`unescape_formulas`] returns it unchanged.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches(['\'', '"', ' ']).starts_with(FORMULA_STARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_formulas_adds_a_quote_to_formulas_only() {
        for formula in ["=1+1", "+49 30", "-2", "@SUM(A1)", "\t=1", "\r=1", "＝1", "＋1", "－1", "＠A1", "'=1", " =1"]
        {
            assert!(escape_formulas(formula).starts_with('\''), "{formula:?}");
            assert_eq!(unescape_formulas(&escape_formulas(formula)), formula);
        }
        for text in ["", "12.99", "a=b", "2027-01-31", "'quoted'", "a;b", "a; b - c", "a-b;"] {
            assert_eq!(escape_formulas(text), text);
            assert_eq!(unescape_formulas(text), text);
        }
        assert_eq!(unescape_formulas("'=1"), "=1", "a formula that a person has escaped");
    }

    #[test]
    fn escape_formulas_adds_a_quote_after_each_separator_before_a_formula() {
        for (text, escaped) in [
            ("a;=1", "a;'=1"),
            ("a;b;\"@c", "a;b;'\"@c"),
            ("=a;＝b", "'=a;'＝b"),
            ("a\t-1", "a\t'-1"),
            ("a;'=1", "a;''=1"),
            ("=;=;=", "'=;'=;'="),
        ] {
            assert_eq!(escape_formulas(text), escaped);
            assert_eq!(unescape_formulas(escaped), text);
        }
    }
}
