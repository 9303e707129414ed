//! Cells of CSV files that are opened in a spreadsheet program.

use std::borrow::Cow;

/// Returns `text` with a `'` in front if a spreadsheet program would evaluate the text as a formula ("CSV injection",
/// OWASP).
pub fn escape_formula(text: &str) -> Cow<'_, str> {
    if is_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// Returns `text` without the `'` that [`escape_formula`] has added.
pub fn unescape_formula(text: &str) -> &str {
    text.strip_prefix('\'').filter(|formula| is_formula(formula)).unwrap_or(text)
}

/// Returns whether a spreadsheet program would evaluate `text` as a formula.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_formula_adds_a_quote_to_formulas_only() {
        for formula in ["=1+1", "+49 30", "-2", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(escape_formula(formula), format!("'{formula}"));
            assert_eq!(unescape_formula(&escape_formula(formula)), formula);
        }
        for text in ["", "12.99", "a=b", "2027-01-31", "'=1"] {
            assert_eq!(escape_formula(text), text);
            assert_eq!(unescape_formula("'quoted'"), "'quoted'");
        }
    }
}
